//! A posterior in the form in which it is saved: it can predict later without any other file.

use super::machine::Laplace;
use crate::error::{LearnError, Result};
use mercer_data::folder::{Folder, FolderKind, FolderWriter};
use mercer_data::{Columns, Dataset, Existing, Preprocess};
use mercer_kernel::Real;
use mercer_net::Network;
use mercer_net::network::{SavedNetwork, TrainedOn};
use mercer_run::Context;
use mercer_spectral::Eigenfunctions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

use super::marginals::Marginals;
use super::predictive::{Functional, PredictiveDraws};
use super::spanned::features_of;
use super::stored::stored_outputs;

/// A Laplace approximation with its network, its features if it has any, and what is known about its data.
#[derive(Debug)]
pub struct Posterior<T: Real> {
    /// The approximation: curvature, likelihood, prior and noise.
    pub laplace: Laplace<T>,
    /// Its network.
    pub network: SavedNetwork,
    /// The eigenfunctions through which it was fitted, with their kernels: none, one set, or one for every output.
    pub functions: Vec<Eigenfunctions<T>>,
    /// The classes of its outputs, and the columns and preprocessing of its inputs.
    pub trained_on: TrainedOn,
}

/// What the manifest says.
#[derive(Serialize, Deserialize)]
struct Content {
    laplace: Value,
    network: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    functions: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    other_functions: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<Option<Columns>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preprocess: Option<Vec<Preprocess>>,
}

/// The folder kind of posteriors.
pub const KIND: FolderKind = FolderKind { name: "posterior", version: 1 };

impl<T: Real> Posterior<T> {
    /// Saves the posterior in a folder and creates it if necessary.
    ///
    /// # Errors
    /// As [`FolderWriter::create`] and [`FolderWriter::commit`].
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let writer = FolderWriter::create(folder, KIND, existing)?;
        let content = self.write(&writer)?;
        Ok(writer.commit(&content)?)
    }

    /// Writes all parts into a folder, on disk or in memory, and returns its content.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, writer: &FolderWriter) -> Result<Value> {
        let objects = writer.objects();
        let written = self.functions.iter().enumerate().map(|(at, own)| own.write(&objects.part(&part_of(at))));
        let mut functions = written.collect::<Result<Vec<_>, _>>().map_err(of_functions)?.into_iter();
        let TrainedOn { classes, columns, preprocess } = self.trained_on.clone();
        let content = Content {
            laplace: self.laplace.write(&objects)?,
            network: self.network.write(&objects)?,
            functions: functions.next(),
            other_functions: functions.collect(),
            classes,
            columns,
            preprocess,
        };
        Ok(objects.content(&content)?)
    }

    /// Loads a posterior from a folder.
    ///
    /// # Errors
    /// For files that are missing or damaged, of another kind or a newer version, or inconsistent.
    pub fn load(folder: &Path) -> Result<Self> {
        Self::read(&Folder::open(folder, Some(KIND))?)
    }

    /// Reads a posterior from an open folder.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(folder: &Folder) -> Result<Self> {
        let (objects, content) = (folder.objects(), folder.content::<Content>()?);
        let saved = SavedNetwork::read(&objects, &content.network)?;
        let entries = content.functions.iter().chain(&content.other_functions).enumerate();
        let read =
            |(at, content): (usize, &Value)| Eigenfunctions::<T>::read(&objects.part(&part_of(at)), content, None);
        let functions = entries.map(read).collect::<Result<Vec<_>, _>>().map_err(of_functions)?;
        let network = saved.open()?;
        let map = match &functions[..] {
            [] => None,
            some => Some(features_of(some, stored_outputs(&objects, &content.laplace, &network)?)?),
        };
        let laplace = Laplace::read(&objects, &content.laplace, &network, map)?;
        let Content { classes, columns, preprocess, .. } = content;
        Ok(Self { laplace, network: saved, functions, trained_on: TrainedOn { classes, columns, preprocess } })
    }

    /// The network, for opening samples.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn network(&self) -> Result<Network> {
        Ok(self.network.open()?)
    }

    /// The posterior over every output by itself at other samples, which must already be preprocessed.
    ///
    /// # Errors
    /// As [`Laplace::marginals`].
    pub fn marginals(&self, data: &[Dataset], draws: Option<&PredictiveDraws>, context: &Context) -> Result<Marginals> {
        self.laplace.marginals(data, draws, context)
    }

    /// The posterior over the outputs at other samples, which must already be preprocessed.
    ///
    /// # Errors
    /// As [`Laplace::predict`].
    pub fn predict(&self, data: &[Dataset], context: &Context) -> Result<Functional> {
        self.laplace.predict(data, context)
    }
}

/// The part with the functions: all, or those of an output.
fn part_of(at: usize) -> String {
    if at == 0 { "functions".to_owned() } else { format!("functions{at}") }
}

fn of_functions(error: mercer_spectral::SpectralError) -> LearnError {
    use mercer_spectral::SpectralError;
    match error {
        SpectralError::Data(error) => LearnError::Data(error),
        SpectralError::Kernel(error) => LearnError::Kernel(error),
        SpectralError::Network(error) => LearnError::Network(error),
        other => mercer_kernel::KernelError::Setting(other.to_string()).into(),
    }
}
