//! Batches in memory.

use super::{Answers, Targets, TrainingSamples};
use crate::element::Element;
use crate::error::Result;
use mercer_data::{Dataset, Labels};

/// A batch in memory.
pub(super) struct Loaded<T> {
    /// One array per input of the network.
    pub(super) inputs: Vec<Vec<T>>,
    classes: Vec<usize>,
    values: Option<Vec<T>>,
}

impl<T: Element + mercer_data::DataScalar> Loaded<T> {
    pub(super) fn range(samples: TrainingSamples<'_>, rows: std::ops::Range<usize>) -> Result<Self> {
        let read = |set: &Dataset| Ok(set.rows::<T>(rows.clone())?.into_raw_vec_and_offset().0);
        let inputs = samples.inputs.iter().map(read).collect::<Result<_>>()?;
        Ok(Self::new(inputs, samples.labels, rows))
    }

    pub(super) fn select(samples: TrainingSamples<'_>, rows: &[usize]) -> Result<Self> {
        let read = |set: &Dataset| Ok(set.select::<T>(rows)?.into_raw_vec_and_offset().0);
        let inputs = samples.inputs.iter().map(read).collect::<Result<_>>()?;
        Ok(Self::new(inputs, samples.labels, rows.iter().copied()))
    }

    fn new(inputs: Vec<Vec<T>>, labels: &Labels, rows: impl Iterator<Item = usize>) -> Self {
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

    /// The numbers of each input.
    pub(super) fn slices(&self) -> Vec<&[T]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    pub(super) fn targets(&self) -> Targets<'_, T> {
        let answers = match &self.values {
            Some(values) => Answers::Values(values),
            None => Answers::Classes(&self.classes),
        };
        Targets { answers, weights: None }
    }
}
