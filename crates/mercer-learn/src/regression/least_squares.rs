//! Weighted least squares through the pseudo-inverse, in the kernel form and in the Jacobian form.
//!
//! ```text
//! kernel:    f(z) = yᵀ·W^½·(W^½ H W^½)⁺·W^½·κ(X, z)        H = Φ·Φᵀ
//! features:  f(z) = γᵀφ(z),   γ = (W^½ Φ)⁺·W^½·y
//! ```
//!
//! Qadeer, Engel, Howard, Tsou, Vargas, Stinis and Chiang 2023, arXiv 2310.18612, equations 13 to 18 and appendix B.
//! Both are the same projection in exact arithmetic. The kernel form squares the singular values, so a cut-off at
//! rounding drops directions below `√ε` of the largest; the features (CKJ in the paper, when they are those of the
//! conjugate kernel) keep twice the digits.

use super::filter::Decomposition;
use crate::error::{LearnError, Result, check_size, setting};
use crate::linear::Linear;
use crate::repair::Repair;
use crate::samples::{SampleKind, SampleRows};
use crate::traits::Fit;
use mercer_linalg::matmul;
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis};

/// Weighted least squares.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastSquares {
    cutoff: Option<f64>,
    weights: Option<Array1<f64>>,
}

impl LeastSquares {
    /// With equal weights, and a cut-off at rounding: the number of samples times `ε`, relative to the largest
    /// eigenvalue of the Gram matrix or the largest singular value of the features.
    pub fn new() -> Self {
        Self { cutoff: None, weights: None }
    }

    /// Drops directions whose eigenvalue (Gram) or singular value (features) is not above this fraction of the largest.
    pub fn with_cutoff(self, cutoff: f64) -> Result<Self> {
        if !(0.0..1.0).contains(&cutoff) {
            return Err(setting("the cut-off", cutoff, "it must be at least 0 and below 1"));
        }
        Ok(Self { cutoff: Some(cutoff), ..self })
    }

    /// Sets the weight of each sample's squared error.
    pub fn with_weights(self, weights: Array1<f64>) -> Result<Self> {
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(setting("a weight", weight, "weights must be finite positive numbers"));
        }
        Ok(Self { weights: Some(weights), ..self })
    }
}

impl Default for LeastSquares {
    fn default() -> Self {
        Self::new()
    }
}

impl Fit<Array2<f64>> for LeastSquares {
    type Machine = Linear;

    fn learn(&self, samples: &SampleRows<'_>, targets: &Array2<f64>, _: &Context) -> Result<Linear> {
        super::check(samples, targets.view())?;
        let n_samples = samples.n_samples();
        let roots = match &self.weights {
            Some(weights) => weights.mapv(f64::sqrt),
            None => Array1::ones(n_samples),
        };
        check_size("the number of weights", n_samples, roots.len())?;
        let column = roots.view().insert_axis(Axis(1));
        let (rows, weighted) = (&samples.rows() * &column, targets * &column);
        let rows = if samples.basis() == SampleKind::Gram { rows * &roots } else { rows };
        let spectrum = Decomposition::of_rows(samples.basis(), rows.view())?;
        let values = spectrum.values();
        let largest = values.first().copied().unwrap_or(0.0);
        let cutoff = self.cutoff.unwrap_or(n_samples as f64 * f64::EPSILON);
        // Values are squares of the singular values of features.
        let least = if samples.basis() == SampleKind::Gram { cutoff } else { cutoff * cutoff } * largest;
        let kept = values.iter().take_while(|value| **value > least).count();
        if kept == 0 {
            let reason = "all samples are zero, so nothing can be fitted";
            return Err(LearnError::Undefined { metric: "least squares", reason });
        }
        let of = values.len();
        let repairs = if kept < of { vec![Repair::Truncated { kept, of, cutoff }] } else { Vec::new() };
        let coordinates = matmul(spectrum.left(), weighted.view());
        let mut machine =
            spectrum.machine(coordinates, |at| if at < kept { 1.0 / spectrum.values()[at] } else { 0.0 }, repairs);
        if samples.basis() == SampleKind::Gram {
            machine.weights *= &column;
        }
        Ok(machine)
    }
}
