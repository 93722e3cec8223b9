//! Batches in memory.

use super::{Answers, Targets, TrainingSamples};
use crate::element::Element;
use crate::error::Result;
use mercer_data::Labels;

/// A batch in memory.
pub(super) struct Loaded<T> {
    pub(super) inputs: Vec<T>,
    classes: Vec<usize>,
    values: Option<Vec<T>>,
}

impl<T: Element + mercer_data::DataScalar> Loaded<T> {
    pub(super) fn range(samples: TrainingSamples<'_>, rows: std::ops::Range<usize>) -> Result<Self> {
        let inputs = samples.inputs.rows::<T>(rows.clone())?.into_raw_vec_and_offset().0;
        Ok(Self::new(inputs, samples.labels, rows))
    }

    pub(super) fn select(samples: TrainingSamples<'_>, rows: &[usize]) -> Result<Self> {
        let inputs = samples.inputs.select::<T>(rows)?.into_raw_vec_and_offset().0;
        Ok(Self::new(inputs, samples.labels, rows.iter().copied()))
    }

    fn new(inputs: Vec<T>, labels: &Labels, rows: impl Iterator<Item = usize>) -> Self {
        match labels {
            Labels::Classes(classes) => {
                Self { inputs, classes: rows.map(|row| classes.indices()[row]).collect(), values: None }
            }
            Labels::Targets(targets) => {
                let values = rows.flat_map(|row| targets.row(row).to_owned()).map(T::narrow).collect();
                Self { inputs, classes: Vec::new(), values: Some(values) }
            }
        }
    }

    pub(super) fn targets(&self) -> Targets<'_, T> {
        let answers = match &self.values {
            Some(values) => Answers::Values(values),
            None => Answers::Classes(&self.classes),
        };
        Targets { answers, weights: None }
    }
}
