//! A saved posterior, which predicts from its folder alone.

use super::choice::Predictive;
use super::labels::as_numbers;
use super::predictions::Predictions;
use crate::Error;
use crate::spec::{DataSpec, Opening, Precision, Samples};
use mercer_data::ClassOrder;
use mercer_data::folder::Folder;
use mercer_learn::conformal::Conformal;
use mercer_learn::laplace::{KIND, Posterior};
use mercer_net::Network;
use mercer_net::network::TrainedOn;
use mercer_run::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The manifest of a folder: the posterior, and how probabilities are computed from it.
#[derive(Serialize, Deserialize)]
pub(super) struct Content {
    #[serde(flatten)]
    pub(super) posterior: Value,
    #[serde(default)]
    pub(super) predictive: Predictive,
}

/// The part of it that is needed before the arrays are read.
#[derive(Deserialize)]
struct Glance {
    laplace: Laplace,
    #[serde(default)]
    predictive: Predictive,
}

#[derive(Deserialize)]
struct Laplace {
    precision: Precision,
}

/// A posterior from a folder that [`UncertaintyJob`](super::UncertaintyJob) has written.
///
/// It predicts the same bits as the run that made it. The network's file and the data may have been deleted, and the
/// folder may have been moved.
#[derive(Debug)]
pub struct SavedPosterior {
    posterior: Either,
    predictive: Predictive,
    network: Network,
}

#[derive(Debug)]
enum Either {
    F32(Box<Posterior<f32>>),
    F64(Box<Posterior<f64>>),
}

impl SavedPosterior {
    /// Whether a folder claims to hold a posterior.
    pub fn is_in(folder: &Path) -> bool {
        mercer_data::folder::holds(folder, KIND)
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// If files are missing or damaged, of another kind, or of a newer version.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::read(&Folder::open(folder, Some(KIND))?)
    }

    /// Reads an open folder.
    pub(crate) fn read(folder: &Folder) -> Result<Self, Error> {
        let Glance { laplace: Laplace { precision }, predictive } = folder.content()?;
        predictive.check()?;
        let (posterior, network) = match precision {
            Precision::F32 => {
                let posterior = Posterior::read(folder)?;
                let network = posterior.network()?;
                (Either::F32(Box::new(posterior)), network)
            }
            Precision::F64 => {
                let posterior = Posterior::read(folder)?;
                let network = posterior.network()?;
                (Either::F64(Box::new(posterior)), network)
            }
        };
        Ok(Self { posterior, predictive, network })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The precision of the network.
    pub fn precision(&self) -> Precision {
        match self.posterior {
            Either::F32(_) => Precision::F32,
            Either::F64(_) => Precision::F64,
        }
    }

    /// The classes of the outputs, and the columns and preprocessing of the inputs.
    pub fn trained_on(&self) -> &TrainedOn {
        match &self.posterior {
            Either::F32(posterior) => &posterior.trained_on,
            Either::F64(posterior) => &posterior.trained_on,
        }
    }

    /// The number of outputs, and whether they are regression values instead of logits.
    fn outputs(&self) -> (usize, bool) {
        match &self.posterior {
            Either::F32(posterior) => (posterior.laplace.n_outputs(), posterior.laplace.noise().is_some()),
            Either::F64(posterior) => (posterior.laplace.n_outputs(), posterior.laplace.noise().is_some()),
        }
    }

    /// Opens samples in the same way as the training samples of the posterior: with their columns and their
    /// preprocessing. If other steps are requested, those are used, with a note. Labels are in the order of its
    /// classes.
    ///
    /// # Errors
    /// If the samples cannot be read or do not fit.
    pub fn samples(&self, data: &DataSpec, opening: Opening<'_>) -> Result<Samples, Error> {
        let TrainedOn { classes, columns, preprocess } = self.trained_on();
        let steps = preprocess.as_ref().map(serde_json::to_value).transpose();
        let steps = steps.map_err(|error| Error::new(format!("the preprocessing cannot be written: {error}")))?;
        let samples = Samples::given("data", &data.data, data, &self.network, columns, opening)?;
        let mut samples = samples.preprocessed_as(&data.preprocess, steps.as_ref(), opening)?;
        samples.labels = match (samples.labels, self.outputs()) {
            (Some(labels), (outputs, true)) => Some(as_numbers("labels", labels, outputs)?),
            (Some(labels), (outputs, false)) => {
                let given = data.class_names()?;
                let outputs = Some(outputs).filter(|&outputs| outputs > 1);
                let order = ClassOrder::resolve(given.as_deref(), classes.as_deref(), outputs)?;
                Some(order.map_or(Ok(labels.clone()), |order| labels.ordered("‹labels›", &order))?)
            }
            (None, _) => None,
        };
        Ok(samples)
    }

    /// How sets and intervals were calibrated, if they were.
    pub fn conformal(&self) -> Option<&Conformal> {
        self.predictive.conformal.as_ref()
    }

    /// Predicts samples.
    ///
    /// # Errors
    /// If the samples have a different shape or are not finite, or the run is cancelled.
    pub fn predict(&self, samples: &Samples, context: &Context) -> Result<Predictions, Error> {
        let draws = self.predictive.draws();
        let found = match &self.posterior {
            Either::F32(posterior) => posterior.marginals(&samples.inputs, draws.as_ref(), context)?,
            Either::F64(posterior) => posterior.marginals(&samples.inputs, draws.as_ref(), context)?,
        };
        Predictions::new(found, &self.predictive, self.trained_on().classes.as_deref())
    }
}
