//! What `mercer fit` says.

use super::settings::{Fitted, Known, MachineName};
use crate::failure::Failure;
use crate::format::{count, duration};
use mercer::learn::metrics::{accuracy, r_squared};
use mercer::learn::{Predict, Samples};
use serde::Serialize;
use std::path::Path;

/// What `--json` shows.
#[derive(Debug, Serialize)]
pub(super) struct FitReport {
    machine: MachineName,
    data: String,
    n_samples: usize,
    folder: String,
    /// On the samples it learnt from.
    training_accuracy: Option<f64>,
    training_r_squared: Option<Vec<Option<f64>>>,
    notes: Vec<String>,
    repairs: Vec<String>,
    seconds: f64,
}

impl FitReport {
    pub(super) fn new(
        machine: MachineName,
        fitted: &Fitted,
        samples: &Samples<'_>,
        known: &Known,
        data: &str,
        folder: &Path,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let predicted = fitted.machine.predict(samples)?;
        let (mut training_accuracy, mut training_r_squared) = (None, None);
        match known {
            Known::Classes(classes) => {
                if let Some(classifier) = fitted.machine.as_classifier() {
                    let decided = classifier.classes().decide(predicted.view());
                    training_accuracy = Some(accuracy(&decided, classes.indices())?);
                }
            }
            Known::Numbers(targets) => {
                // A target that does not vary has none.
                let each = predicted.columns().into_iter().zip(targets.columns());
                training_r_squared = Some(each.map(|(found, truth)| r_squared(found, truth).ok()).collect());
            }
        }
        Ok(Self {
            machine,
            data: data.to_owned(),
            n_samples: samples.n_samples(),
            folder: folder.display().to_string(),
            training_accuracy,
            training_r_squared,
            notes: fitted.notes.clone(),
            repairs: fitted.machine.repairs().iter().map(ToString::to_string).collect(),
            seconds,
        })
    }

    pub(super) fn text(&self) -> String {
        let samples = count(self.n_samples, "sample");
        let mut text = format!("{} on {samples} in {}\n", self.machine.name(), duration(self.seconds));
        if let Some(accuracy) = self.training_accuracy {
            text += &format!("accuracy on them {:.2} %\n", 100.0 * accuracy);
        }
        if let Some(columns) = &self.training_r_squared {
            let value = |r: &Option<f64>| r.map_or_else(|| "–".to_owned(), |r| format!("{r:.6}"));
            text += &format!("R² on them {}\n", columns.iter().map(value).collect::<Vec<_>>().join(", "));
        }
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        for repair in &self.repairs {
            text += &format!("repaired: {repair}\n");
        }
        text + &format!("machine in {}\n", self.folder)
    }
}
