//! Saved functions on new samples.

use crate::Error;
use crate::spec::{DataSpec, Opening, Precision, Samples};
use mercer_data::Columns;
use mercer_data::folder::Folder;
use mercer_kernel::{Real, SavedKernel};
use mercer_net::Network;
use mercer_run::Context;
use mercer_spectral::{BEFORE, EigenDescription, Eigenfunctions, KIND};
use ndarray::Array2;
use serde_json::Value;
use std::path::Path;

/// Functions of a folder, and how to read new samples in the same way as the original ones.
#[derive(Debug)]
pub struct SavedFunctions<T: Real> {
    /// The functions.
    pub functions: Eigenfunctions<T>,
    network: Option<Network>,
    columns: Vec<Option<Columns>>,
    fingerprint: String,
}

/// The folder of the functions, and whether to use those before the Rayleigh–Ritz step.
pub(crate) fn located(folder: &Path) -> (&Path, bool) {
    match folder.parent() {
        Some(outer) if folder.file_name().is_some_and(|name| name == BEFORE) && !folder.exists() => (outer, true),
        _ => (folder, false),
    }
}

/// The precision in a description.
pub(crate) fn precision_of(description: &EigenDescription) -> Precision {
    if description.precision == "f32" { Precision::F32 } else { Precision::F64 }
}

impl<T: Real> SavedFunctions<T> {
    /// A digest of the saved contents.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Opens the functions of a folder, or of its part `before`.
    ///
    /// # Errors
    /// If the folder holds no eigenfunctions, or damaged ones.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (path, before) = located(folder);
        Self::read(&Folder::open(path, Some(KIND))?, before)
    }

    /// The functions of an opened folder, or those before the Rayleigh–Ritz step.
    pub(crate) fn read(folder: &Folder, before: bool) -> Result<Self, Error> {
        let (objects, content): (_, Value) = (folder.objects(), folder.content()?);
        let functions = match (before, content.get(BEFORE)) {
            (false, _) => Eigenfunctions::read(&objects, &content, None)?,
            (true, Some(content)) => Eigenfunctions::read(&objects.part(BEFORE), content, None)?,
            (true, None) => {
                return Err(Error::new(format!("{}: these functions had no Rayleigh–Ritz step", folder.place())));
            }
        };
        let fingerprint = folder.fingerprint();
        let network = functions.saved_kernel().map(SavedKernel::open).transpose()?.flatten();
        let columns = Samples::columns_of_note(functions.notes().get("columns"))?;
        Ok(Self { functions, network, columns, fingerprint })
    }

    /// Opens samples, with the preprocessing of the folder unless another one is requested.
    ///
    /// # Errors
    /// If the samples cannot be read or do not fit.
    pub fn samples(&self, setting: &str, spec: &DataSpec, opening: Opening<'_>) -> Result<Samples, Error> {
        let samples = match &self.network {
            Some(network) => Samples::given(setting, &spec.data, spec, network, &self.columns, opening)?,
            None => Samples::plain(setting, &spec.data, spec, &self.columns, opening)?,
        };
        let stored = self.functions.notes().get("preprocess");
        let samples = samples.preprocessed_as(&spec.preprocess, stored, opening)?;
        samples.hint(self.network.as_ref(), opening)?;
        Ok(samples)
    }

    /// The functions of samples: a row per sample, or per sample and output.
    ///
    /// # Errors
    /// If the samples have a different shape.
    pub fn evaluate(&self, samples: &Samples, context: &Context) -> Result<Array2<T>, Error> {
        Ok(self.functions.eval_data(&samples.inputs, context)?)
    }
}
