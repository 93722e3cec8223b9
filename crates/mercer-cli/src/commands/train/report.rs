//! What a run of training has to say, also in `result.json`.

use crate::format::{count, duration, table};
use mercer::data::Preprocess;
use mercer::net::train::{Epoch, FitSettings, Loss, Metrics, Optimiser};
use serde::Serialize;

/// The result of a run.
#[derive(Debug, Serialize)]
pub(crate) struct TrainReport {
    pub(crate) kind: &'static str,
    /// The files that were written with it.
    pub(crate) files: Vec<String>,
    pub(crate) model: String,
    pub(crate) weights: String,
    pub(crate) precision: &'static str,
    pub(crate) n_params: usize,
    pub(crate) n_samples: usize,
    pub(crate) n_evaluation_samples: Option<usize>,
    /// Of this run alone, if it was resumed.
    pub(crate) seconds: f64,
    pub(crate) settings: FitSettings,
    pub(crate) loss: Loss,
    pub(crate) optimiser: Optimiser,
    /// What happened to the data before they went into the network, and has to happen again.
    pub(crate) preprocess: Preprocess,
    pub(crate) class_names: Option<Vec<String>>,
    pub(crate) history: Vec<EpochReport>,
}

/// One epoch.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EpochReport {
    epoch: usize,
    learning_rate: f64,
    loss: f64,
    accuracy: Option<f64>,
    evaluation_loss: Option<f64>,
    pub(crate) evaluation_accuracy: Option<f64>,
}

impl EpochReport {
    pub(crate) fn of(epoch: &Epoch) -> Self {
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

    /// What is shown while training goes on.
    pub(crate) fn line(&self) -> String {
        let accuracy = |value: Option<f64>| value.map_or_else(String::new, |v| format!(", {:.2} % right", 100.0 * v));
        let mut line = format!("epoch {}: loss {:.4}{}", self.epoch, self.loss, accuracy(self.accuracy));
        if let Some(loss) = self.evaluation_loss {
            line += &format!("; evaluation {loss:.4}{}", accuracy(self.evaluation_accuracy));
        }
        line
    }

    fn row(&self) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
        let percent = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{:.2} %", 100.0 * value));
        vec![
            self.epoch.to_string(),
            format!("{:.2e}", self.learning_rate),
            number(Some(self.loss)),
            percent(self.accuracy),
            number(self.evaluation_loss),
            percent(self.evaluation_accuracy),
        ]
    }
}

/// The most epochs that are shown line by line.
const MOST_ROWS: usize = 20;

impl TrainReport {
    /// A row per epoch; of a long run, some of them.
    pub(crate) fn table(&self, verbose: bool) -> String {
        let every = if verbose { 1 } else { self.history.len().div_ceil(MOST_ROWS).max(1) };
        let last = self.history.len();
        let titles = ["epoch", "rate", "loss", "accuracy", "eval loss", "eval accuracy"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let shown = self.history.iter().filter(|epoch| epoch.epoch.is_multiple_of(every) || epoch.epoch == last);
        rows.extend(shown.map(EpochReport::row));
        // Leave out what was not measured.
        let measured = |column: usize| rows.iter().skip(1).any(|row| !row[column].is_empty());
        let columns: Vec<usize> = (0..titles.len()).filter(|&column| measured(column)).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| columns.iter().map(|&column| row[column].clone()).collect()).collect();
        table(&rows, &[0, 1, 2, 3, 4, 5])
    }

    /// The last measured accuracy: on the evaluation set if there is one.
    pub(crate) fn accuracy(&self) -> Option<f64> {
        let last = self.history.last()?;
        last.evaluation_accuracy.or(last.accuracy)
    }

    /// How much was done in which time.
    pub(crate) fn summary(&self) -> String {
        let (numbers, samples) = (count(self.n_params, "parameter"), count(self.n_samples, "sample"));
        let epochs = count(self.history.len(), "epoch");
        format!("{numbers} trained on {samples} for {epochs} in {}", duration(self.seconds))
    }
}
