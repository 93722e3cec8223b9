//! The data and the settings of a run, and its measurements.

use super::{Augmentation, Metrics, Schedule};
use crate::error::{NetError, Result};
use mercer_data::{Dataset, Labels};
use serde::{Deserialize, Serialize};

/// Samples with their labels.
#[derive(Clone, Copy, Debug)]
pub struct TrainingSamples<'a> {
    /// The samples, one set per input of the network; [`Dataset::from_array`] makes them from arrays.
    pub inputs: &'a [Dataset],
    /// Their labels.
    pub labels: &'a Labels,
}

impl<'a> TrainingSamples<'a> {
    /// Of a network with one input.
    pub fn one(inputs: &'a Dataset, labels: &'a Labels) -> Self {
        Self { inputs: std::slice::from_ref(inputs), labels }
    }

    /// How many there are.
    pub fn n_samples(&self) -> usize {
        self.inputs.first().map_or(0, Dataset::n_samples)
    }

    /// The file of the first input, as errors show it.
    pub(super) fn place(&self) -> &'a str {
        self.inputs.first().map_or("", Dataset::place)
    }

    /// Some of the samples with their labels, in the given order. The samples are not copied. Training on them gives the
    /// same bits as training on an array of these rows.
    ///
    /// ```
    /// use mercer_data::{Dataset, Labels, shuffled, synthetic};
    /// use mercer_net::train::TrainingSamples;
    ///
    /// let (points, classes) = synthetic::two_moons(200, 0.1, 0)?;
    /// let (inputs, labels) = (Dataset::from_array("moons", points.into_dyn().view())?, Labels::Classes(classes));
    /// let half = &shuffled(200, 7, 0)[..100];
    /// let (inputs, labels) = TrainingSamples::one(&inputs, &labels).subset(half)?;
    /// assert_eq!((inputs[0].n_samples(), labels.n_samples()), (100, 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// For a row that does not exist.
    pub fn subset(&self, rows: &[usize]) -> Result<(Vec<Dataset>, Labels)> {
        let inputs = self.inputs.iter().map(|set| Ok(set.subset(rows)?)).collect::<Result<_>>()?;
        Ok((inputs, self.labels.select(rows)?))
    }
}

/// The settings of a run.
///
/// ```
/// use mercer_net::train::{Schedule, TrainingSettings};
///
/// let settings = TrainingSettings { stop_loss: Some(1e-3), ..TrainingSettings::new(100, Schedule::constant(0.1)) };
/// settings.check()?;
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingSettings {
    /// Passes over the data.
    pub epochs: usize,
    /// Samples per step; `None` takes the whole set.
    pub batch_size: Option<usize>,
    /// The seed of the order of the samples, and of crops and flips.
    #[serde(default)]
    pub seed: u64,
    /// The learning rates.
    pub schedule: Schedule,
    /// Epochs after which the weights are saved in the folder; 0 for the initial weights.
    #[serde(default)]
    pub checkpoints: Vec<usize>,
    /// Stop after the first epoch whose mean training loss is below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_loss: Option<f64>,
    /// Random changes of images.
    #[serde(default, skip_serializing_if = "Augmentation::is_none")]
    pub augmentation: Augmentation,
}

impl TrainingSettings {
    /// So many passes over the data, in one batch, without anything else.
    pub fn new(epochs: usize, schedule: Schedule) -> Self {
        let (batch_size, seed, checkpoints, stop_loss) = (None, 0, Vec::new(), None);
        Self { epochs, batch_size, seed, schedule, checkpoints, stop_loss, augmentation: Augmentation::default() }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`NetError::Setting`] names the invalid setting.
    pub fn check(&self) -> Result<()> {
        let refuse = |text: String| Err(NetError::Setting(text));
        self.schedule.check()?;
        if self.batch_size == Some(0) {
            return refuse("batch_size = 0; accepted: whole numbers from 1".into());
        }
        if let Some(loss) = self.stop_loss.filter(|loss| !(*loss > 0.0 && loss.is_finite())) {
            return refuse(format!("stop_loss = {loss}; accepted: numbers above 0"));
        }
        match self.checkpoints.iter().find(|&&epoch| epoch > self.epochs) {
            Some(epoch) => refuse(format!("checkpoints: {epoch} is beyond the {} epochs", self.epochs)),
            None => Ok(()),
        }
    }

    /// The first epoch whose loss is below the one to stop at.
    pub fn stopped_after(&self, history: &[Epoch]) -> Option<usize> {
        let wanted = self.stop_loss?;
        history.iter().find(|epoch| epoch.training.loss < wanted).map(|epoch| epoch.epoch)
    }

    /// Whether a run with this history has ended.
    pub(super) fn is_complete(&self, history: &[Epoch]) -> bool {
        history.len() >= self.epochs || self.stopped_after(history).is_some()
    }
}

/// What was measured in one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// Its number, from 1.
    pub epoch: usize,
    /// The learning rate of its last step.
    pub learning_rate: f64,
    /// The mean over its steps, each before its update.
    pub training: Metrics,
    /// On the evaluation set, after the epoch.
    pub evaluation: Option<Metrics>,
}
