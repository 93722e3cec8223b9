//! A kernel that is computed on demand.

use super::{Between, Coupling, CouplingForm};
use crate::error::Result;
use crate::learnt::draws::same_samples;
use mercer_data::Dataset;
use mercer_kernel::{Block, Kernel, Real};
use serde_json::{Value, json};
use std::sync::Arc;

/// A kernel that is computed for every batch, so the cost does not depend on the number of samples.
#[derive(Debug)]
pub struct PerBatch<'a, T: Real> {
    kernel: Arc<dyn Kernel<T>>,
    data: &'a [Dataset],
    n_samples: usize,
    tile: Vec<T>,
}

impl<'a, T: Real> PerBatch<'a, T> {
    /// A kernel on data, one set per input.
    ///
    /// # Errors
    /// [`SpectralError::Setting`](crate::SpectralError::Setting) if there are no samples, or the inputs differ in their
    /// number.
    pub fn new(kernel: Arc<dyn Kernel<T>>, data: &'a [Dataset]) -> Result<Self> {
        let n_samples = same_samples(data)?;
        Ok(Self { kernel, data, n_samples, tile: Vec::new() })
    }

    fn prepare(&self, samples: &[usize]) -> Result<Block> {
        let read = |set: &Dataset| Ok(set.select::<T>(samples)?.as_standard_layout().into_owned());
        let arrays = self.data.iter().map(read).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<&[T]> = arrays.iter().map(|array| array.as_slice().unwrap_or(&[])).collect();
        Ok(self.kernel.prepare(&inputs, samples.len())?)
    }
}

/// The number of samples for the mean of the diagonal.
const DIAGONAL: usize = 4096;

impl<T: Real> Coupling<T> for PerBatch<'_, T> {
    fn n_samples(&self) -> usize {
        self.n_samples
    }

    fn per_sample(&self) -> usize {
        self.kernel.per_sample()
    }

    fn between(&mut self, _: usize, rows: &[usize], columns: &[usize]) -> Result<Between<'_, T>> {
        let right = self.prepare(columns)?;
        let left = if rows == columns { None } else { Some(self.prepare(rows)?) };
        let each = self.kernel.per_sample();
        let (rows, columns) = (rows.len() * each, columns.len() * each);
        // Matrices beside the parts are not summands.
        let parts = self.kernel.parts().len();
        self.tile.resize((parts + self.kernel.beside().len()) * rows * columns, T::zero());
        self.kernel.contract(left.as_ref().unwrap_or(&right), &right, &mut self.tile);
        Ok(Between { rows, columns, form: CouplingForm::Entries(&self.tile[..parts * rows * columns]) })
    }

    fn mean_diagonal(&mut self, _: usize) -> Result<f64> {
        // Evenly spaced samples, because a set may be sorted.
        let step = self.n_samples.div_ceil(DIAGONAL).max(1);
        let samples: Vec<usize> = (0..self.n_samples).step_by(step).collect();
        let (mut sum, mut count) = (0.0, 0);
        for piece in samples.chunks(256) {
            let diagonal = self.kernel.diagonal(&self.prepare(piece)?);
            sum += diagonal.iter().map(|x| x.wide()).sum::<f64>();
            count += diagonal.len();
        }
        Ok(sum / count.max(1) as f64)
    }

    fn identity(&self) -> Result<Value> {
        let data = self.data.iter().map(Dataset::fingerprint).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({ "coupling": "kernel", "kernel": self.kernel.identity(), "data": data }))
    }
}
