//! Accuracy of predictions.

use crate::Error;
use crate::text::{count, grouped};
use mercer_data::{Classes, DataScalar, Labels};
use mercer_net::network::largest;
use ndarray::{ArrayViewD, Axis};
use serde::Serialize;
use std::fmt;

/// The predicted class is the one with the largest output; the first one if several are equal. A single output stands
/// for the second of two classes where it is above a threshold.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The share of correct predictions.
    pub accuracy: f64,
    /// The number of correct predictions.
    pub n_correct: usize,
    #[serde(skip)]
    n_seen: usize,
    #[serde(skip)]
    classes: Classes,
    #[serde(skip)]
    threshold: f64,
}

impl Score {
    /// Begins to count. The threshold is that of a single output.
    pub(crate) fn start(labels: &Labels, threshold: f64) -> Result<Self, Error> {
        match labels {
            Labels::Classes(classes) => {
                Ok(Self { accuracy: 0.0, n_correct: 0, n_seen: 0, classes: classes.clone(), threshold })
            }
            Labels::Targets(targets) => {
                let what = format!(
                    "‹labels›: accuracy needs one class per sample, these are {} numbers each",
                    targets.ncols()
                );
                Err(Error::new(what).hint("labels are whole numbers or, in a CSV file, texts"))
            }
        }
    }

    /// Counts the predictions of samples from `start` on.
    pub(crate) fn add<T: DataScalar>(&mut self, values: ArrayViewD<'_, T>, start: usize) -> Result<(), Error> {
        let n_outputs = values.len() / values.len_of(Axis(0)).max(1);
        let n_classes = self.classes.n_classes();
        if n_outputs.max(2) < n_classes || n_outputs == 0 {
            let outputs = count(n_outputs, "output");
            let what = format!("‹labels›: there are {n_classes} classes, but {outputs} per sample");
            return Err(Error::new(what)
                .hint("accuracy needs one output per class; leave out ‹labels›, or choose another ‹node›"));
        }
        let single = n_outputs == 1;
        let truth = self.classes.indices().get(start..).unwrap_or_default();
        for (row, &class) in values.outer_iter().zip(truth) {
            let row: Vec<T> = row.iter().copied().collect();
            let predicted = if single { usize::from(row[0].wide() > self.threshold) } else { largest(&row) };
            self.n_correct += usize::from(predicted == class);
            self.n_seen += 1;
        }
        self.accuracy = self.n_correct as f64 / self.n_seen.max(1) as f64;
        Ok(())
    }
}

impl fmt::Display for Score {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (right, all) = (grouped(self.n_correct), grouped(self.n_seen));
        write!(formatter, "accuracy {:.2} % ({right} of {all} right)", 100.0 * self.accuracy)
    }
}
