//! Kernels given by features.

use super::{Between, Coupling, CouplingForm, digest};
use crate::error::{Result, SpectralError};
use mercer_kernel::Real;
use ndarray::{Array2, ArrayView2};
use serde_json::{Value, json};

/// Kernels given by features: `κ(x, x') = φ(x)·φ(x')`, which is never formed.
#[derive(Debug)]
pub struct FeatureRows<T> {
    features: Vec<Array2<T>>,
    per_sample: usize,
    left: Vec<T>,
    right: Vec<T>,
}

impl<T: Real> FeatureRows<T> {
    /// Features with `per_sample` rows for every sample.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if there are none, or a number is not finite.
    pub fn new(features: Array2<T>, per_sample: usize) -> Result<Self> {
        if features.is_empty() || per_sample == 0 || !features.nrows().is_multiple_of(per_sample) {
            let text = format!("features of shape {:?} with {per_sample} rows per sample", features.shape());
            return Err(SpectralError::Setting(text));
        }
        mercer_linalg::check_finite("features", features.view())?;
        let features = vec![features.as_standard_layout().into_owned()];
        Ok(Self { features, per_sample, left: Vec::new(), right: Vec::new() })
    }
}

/// The rows of some samples, one after the other.
fn gather<T: Copy>(from: ArrayView2<'_, T>, each: usize, samples: &[usize], to: &mut Vec<T>) {
    to.clear();
    for &sample in samples {
        for row in sample * each..(sample + 1) * each {
            to.extend_from_slice(from.row(row).to_slice().expect("features are kept row by row"));
        }
    }
}

impl<T: Real> Coupling<T> for FeatureRows<T> {
    fn n_samples(&self) -> usize {
        self.features[0].nrows() / self.per_sample
    }

    fn per_sample(&self) -> usize {
        self.per_sample
    }

    fn between(&mut self, kernel: usize, rows: &[usize], columns: &[usize]) -> Result<Between<'_, T>> {
        let (each, features) = (self.per_sample, self.features[kernel].view());
        gather(features, each, columns, &mut self.right);
        let right = &self.right[..];
        let left = if rows == columns {
            right
        } else {
            gather(features, each, rows, &mut self.left);
            &self.left
        };
        let form = CouplingForm::Features { left, right, width: features.ncols() };
        Ok(Between { rows: rows.len() * each, columns: columns.len() * each, form })
    }

    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64> {
        let features = &self.features[kernel];
        Ok(features.iter().map(|x| x.wide() * x.wide()).sum::<f64>() / features.nrows() as f64)
    }

    fn identity(&self) -> Result<Value> {
        Ok(json!({ "coupling": "features", "per_sample": self.per_sample, "digest": digest(&self.features) }))
    }
}
