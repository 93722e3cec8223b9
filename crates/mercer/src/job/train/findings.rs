//! The findings of a training run, also written to `result.json`.

use crate::spec::Precision;
use mercer_data::Preprocess;
use mercer_net::train::{Epoch, Loss, Metrics, Optimiser, TrainingSettings};
use serde::Serialize;

/// The planned training and its cost.
#[derive(Clone, Debug, Serialize)]
pub struct TrainPlan {
    /// The description of the network.
    pub network: String,
    /// The precision to compute in.
    pub precision: Precision,
    /// The number of trainable scalars.
    pub n_params: usize,
    /// Samples to train on.
    pub n_samples: usize,
    /// Samples to measure on after every epoch.
    pub n_evaluation_samples: Option<usize>,
    /// Length, order and learning rates.
    pub settings: TrainingSettings,
    /// The loss.
    pub loss: Loss,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// Steps of one epoch.
    pub steps_per_epoch: usize,
    /// Operations of the forward passes of all epochs, in 10⁹. The reverse passes take about twice as many.
    pub forward_gflop: f64,
    /// The approximate memory of a step.
    pub bytes: usize,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct TrainFindings {
    /// What this is: `training`.
    pub kind: &'static str,
    /// The files that were written with it.
    pub files: Vec<String>,
    /// The network, within the folder.
    pub model: String,
    /// Its weights alone, within the folder.
    pub weights: String,
    /// The precision to compute in.
    pub precision: Precision,
    /// The number of trainable scalars.
    pub n_params: usize,
    /// Samples that it was trained on.
    pub n_samples: usize,
    /// Samples that it was measured on.
    pub n_evaluation_samples: Option<usize>,
    /// Length, order and learning rates.
    pub settings: TrainingSettings,
    /// The loss.
    pub loss: Loss,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The preprocessing of the data, which new data need as well.
    pub preprocess: Preprocess,
    /// The classes in the order of the outputs; of a single output, the one below 0 and the one above.
    pub class_names: Option<Vec<String>>,
    /// The epoch after which the run stopped, because its loss was below the one to stop at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_after: Option<usize>,
    /// All epochs, including those before the run was resumed.
    pub history: Vec<EpochFindings>,
}

/// One epoch.
#[derive(Clone, Debug, Serialize)]
pub struct EpochFindings {
    /// Its number, from 1.
    pub epoch: usize,
    /// The learning rate of its last step.
    pub learning_rate: f64,
    /// The mean loss over its steps, each before its update.
    pub loss: f64,
    /// The share of samples classified correctly.
    pub accuracy: Option<f64>,
    /// On the evaluation set, after the epoch.
    pub evaluation_loss: Option<f64>,
    /// On the evaluation set, after the epoch.
    pub evaluation_accuracy: Option<f64>,
}

impl EpochFindings {
    /// The findings of an epoch.
    pub fn new(epoch: &Epoch) -> Self {
        let Metrics { loss, accuracy } = epoch.training;
        Self {
            epoch: epoch.epoch,
            learning_rate: epoch.learning_rate,
            loss,
            accuracy,
            evaluation_loss: epoch.evaluation.map(|metrics| metrics.loss),
            evaluation_accuracy: epoch.evaluation.and_then(|metrics| metrics.accuracy),
        }
    }
}

impl TrainFindings {
    /// The last measured accuracy: on the evaluation set if there is one.
    pub fn accuracy(&self) -> Option<f64> {
        let last = self.history.last()?;
        last.evaluation_accuracy.or(last.accuracy)
    }
}
