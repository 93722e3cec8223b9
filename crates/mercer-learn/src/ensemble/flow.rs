//! One eigendecomposition of the training kernel, for all times.

use crate::error::{LearnError, Result, check_not_negative, check_positive};
use crate::repair::Repair;
use mercer_linalg::{check_finite, matmul, symmetric_eigen};
use ndarray::{Array1, Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// How a kernel machine is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSettings {
    /// The learning rate `η`.
    pub learning_rate: f64,
    /// The amount added to the diagonal of the training kernel, relative to its mean.
    pub regularisation: f64,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self { learning_rate: 1.0, regularisation: 0.0 }
    }
}

/// `Θ + ρI = U·diag(λ)·Uᵀ` and the rate at which a direction is learnt.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) settings: FlowSettings,
    pub(super) values: Array1<f64>,
    pub(super) vectors: Array2<f64>,
    /// The number of samples over which the loss is averaged.
    pub(super) n_samples: usize,
}

impl Flow {
    pub(super) fn new(gram: ArrayView2<'_, f64>, n_samples: usize, settings: FlowSettings) -> Result<Self> {
        check_positive("the learning rate", settings.learning_rate)?;
        check_not_negative("the regularisation", settings.regularisation)?;
        if gram.is_empty() {
            return Err(LearnError::Empty { what: "fit" });
        }
        check_finite("the training kernel", gram)?;
        let eigen = symmetric_eigen(gram)?;
        let shift = settings.regularisation * eigen.values.mean().unwrap_or(0.0);
        // Row-major, as when they are read back: the memory order affects the last bits of products.
        let vectors = eigen.vectors.as_standard_layout().into_owned();
        Ok(Self { settings, values: eigen.values + shift, vectors, n_samples })
    }

    /// Eigenvalues below this are rounding.
    fn noise(&self) -> f64 {
        let largest = self.values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        self.values.len() as f64 * f64::EPSILON * largest
    }

    /// `(1 − e^{−multiple·ηλt/N})/λ` for every eigenvalue. Directions with negligible eigenvalues are learnt at the
    /// limit of that rate at finite times, and not at all at infinite time, which gives the pseudo-inverse.
    pub(super) fn filter(&self, time: f64, multiple: f64) -> Result<Array1<f64>> {
        if time.is_nan() || time < 0.0 {
            let reason = "it must be zero or above, or infinite";
            return Err(crate::error::setting("the time", time, reason));
        }
        let (rate, noise) = (multiple * self.settings.learning_rate * time / self.n_samples as f64, self.noise());
        Ok(self.values.mapv(|value| match value > noise {
            true => -(-rate * value).exp_m1() / value,
            false if rate.is_finite() => rate,
            false => 0.0,
        }))
    }

    /// Directions that are not learnt at infinite time.
    pub(super) fn repairs(&self) -> Vec<Repair> {
        let noise = self.noise();
        let (kept, of) = (self.values.iter().filter(|&&value| value > noise).count(), self.values.len());
        let cutoff = of as f64 * f64::EPSILON;
        if kept < of { vec![Repair::Truncated { kept, of, cutoff }] } else { Vec::new() }
    }

    /// `U·diag(filter)·Uᵀ·y`.
    pub(super) fn apply(&self, filter: &Array1<f64>, y: ArrayView2<'_, f64>) -> Array2<f64> {
        let mut turned = matmul(self.vectors.t(), y);
        turned.outer_iter_mut().zip(filter).for_each(|(mut row, &factor)| row *= factor);
        matmul(self.vectors.view(), turned.view())
    }
}
