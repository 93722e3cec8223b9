//! Regression as a spectral filter: one eigendecomposition, any regularisation.
//!
//! ```text
//! K = U·diag(λ)·Uᵀ     ŷ = U·diag(g(λ))·Uᵀ·y
//! ridge: g = λ/(λ+α)    truncation: g = [λ among the k largest]    gradient flow: g = 1 − exp(−ηλt/N)
//! ```
//!
//! The flow is gradient descent with vanishing steps on half the mean squared loss, from zero: early stopping is a form
//! of regularisation. (Notes on kernel learning, "A functional view" and "More magic in least square regression", where
//! the ridge objective has a wrong sign and lacks a square.)
//!
//! Cross-validation in closed form, for `G = (K + αI)⁻¹` and a linear smoother `S` (Golub, Heath and Wahba 1979):
//!
//! ```text
//! leave one out: mean ((G·y)ᵢ/Gᵢᵢ)²        generalised: N·‖y − S·y‖² / (N − tr S)²
//! ```

use crate::error::{LearnError, Result, check_not_negative, check_positive, check_size, setting};
use crate::linear::Linear;
use crate::repair::Repair;
use crate::samples::{SampleKind, SampleRows};
use crate::selection::{Selected, Strongest};
use crate::traits::finite;
use mercer_linalg::{matmul, symmetric_eigen, thin_svd};
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// How much of each eigendirection is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// `λ/(λ+α)`.
    Ridge {
        /// `α`, zero or positive.
        alpha: f64,
    },
    /// The largest directions in full, nothing of the others.
    Truncate {
        /// How many are kept.
        components: usize,
    },
    /// `1 − exp(−ηλt/N)`.
    Flow {
        /// `η·t`.
        time: f64,
    },
}

impl Filter {
    fn check(&self, of: usize) -> Result<()> {
        match *self {
            Self::Ridge { alpha } => check_not_negative("alpha", alpha).map(|_| ()),
            Self::Flow { time } => check_not_negative("the time", time).map(|_| ()),
            Self::Truncate { components } if components > of => {
                Err(setting("the number of components", components, "there are fewer directions"))
            }
            Self::Truncate { .. } => Ok(()),
        }
    }

    /// `g(λ)/λ`, with its limit at zero.
    fn inverse(&self, at: usize, value: f64, n_samples: usize) -> f64 {
        match *self {
            Self::Ridge { alpha } if value + alpha > 0.0 => 1.0 / (value + alpha),
            Self::Truncate { components } if at < components && value > 0.0 => 1.0 / value,
            Self::Flow { time } => {
                let rate = time / n_samples as f64;
                if value * rate > 1e-12 { -(-value * rate).exp_m1() / value } else { rate }
            }
            _ => 0.0,
        }
    }
}

/// The eigendecomposition of a Gram matrix, or the singular value decomposition of features.
#[derive(Clone, Debug)]
pub struct Decomposition {
    basis: SampleKind,
    /// `λ`, descending; values that rounding made negative are set to zero.
    values: Array1<f64>,
    /// `U`.
    left: Array2<f64>,
    /// `V` with `Φ = U·diag(√λ)·Vᵀ`, of features.
    right: Option<Array2<f64>>,
    repairs: Vec<Repair>,
}

impl Decomposition {
    /// From training samples.
    pub fn new(samples: &SampleRows<'_>) -> Result<Self> {
        samples.check_for_fit()?;
        Self::of_rows(samples.basis(), samples.rows())
    }

    pub(crate) fn of_rows(basis: SampleKind, rows: ArrayView2<'_, f64>) -> Result<Self> {
        if basis == SampleKind::Features {
            let svd = thin_svd(rows)?;
            let values = svd.values.mapv(|v| v * v);
            return Ok(Self { basis, values, left: svd.left, right: Some(svd.right), repairs: Vec::new() });
        }
        let mut eigen = symmetric_eigen(rows)?;
        let count = eigen.values.iter().filter(|v| **v < 0.0).count();
        let least = eigen.values.last().copied().unwrap_or(0.0);
        let repairs = if count > 0 { vec![Repair::Clipped { count, least }] } else { Vec::new() };
        eigen.values.mapv_inplace(|v| v.max(0.0));
        Ok(Self { basis, values: eigen.values, left: eigen.vectors, right: None, repairs })
    }

    /// The eigenvalues of the Gram matrix, descending; for features, as many as the smaller side.
    pub fn values(&self) -> &Array1<f64> {
        &self.values
    }

    /// `Uᵀ`.
    pub(crate) fn left(&self) -> ArrayView2<'_, f64> {
        self.left.t()
    }

    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.left.nrows()
    }

    /// The machine of a filter.
    pub fn fit(&self, filter: &Filter, targets: ArrayView2<'_, f64>) -> Result<Linear> {
        let coordinates = self.coordinates(filter, targets)?;
        let factors = |at: usize| filter.inverse(at, self.values[at], self.n_samples());
        finite(self.machine(coordinates, factors, self.repairs.clone()))
    }

    /// `W = U·diag(f)·Uᵀy`, or `V·diag(f√λ)·Uᵀy` for features.
    pub(crate) fn machine(
        &self,
        mut coordinates: Array2<f64>,
        factors: impl Fn(usize) -> f64,
        repairs: Vec<Repair>,
    ) -> Linear {
        for (at, mut row) in coordinates.outer_iter_mut().enumerate() {
            let root = if self.right.is_some() { self.values[at].sqrt() } else { 1.0 };
            let factor = factors(at) * root;
            row.mapv_inplace(|v| v * factor);
        }
        let weights = matmul(self.right.as_ref().unwrap_or(&self.left).view(), coordinates.view());
        Linear { basis: self.basis, bias: Array1::zeros(weights.ncols()), weights, repairs }
    }

    /// `Uᵀ·y`, checked.
    fn coordinates(&self, filter: &Filter, targets: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        filter.check(self.values.len())?;
        check_size("the number of targets", self.n_samples(), targets.nrows())?;
        mercer_linalg::check_finite("the targets", targets)?;
        Ok(matmul(self.left(), targets))
    }

    /// `y − S·y` and `tr S`.
    fn residual(&self, filter: &Filter, targets: ArrayView2<'_, f64>) -> Result<(Array2<f64>, f64)> {
        let mut coordinates = self.coordinates(filter, targets)?;
        let mut trace = 0.0;
        for (at, mut row) in coordinates.outer_iter_mut().enumerate() {
            let kept = self.values[at] * filter.inverse(at, self.values[at], self.n_samples());
            trace += kept;
            row.mapv_inplace(|v| v * kept);
        }
        Ok((&targets - &matmul(self.left.view(), coordinates.view()), trace))
    }

    /// The leave-one-out mean squared error of ridge regression, over all targets.
    pub fn leave_one_out(&self, alpha: f64, targets: ArrayView2<'_, f64>) -> Result<f64> {
        let filter = Filter::Ridge { alpha: check_positive("alpha", alpha)? };
        let (residual, _) = self.residual(&filter, targets)?;
        // αG = I − S, so α cancels: the residual over one minus the leverage.
        let kept = |at: usize| self.values[at] / (self.values[at] + alpha);
        let mut sum = 0.0;
        for (u, r) in self.left.outer_iter().zip(residual.outer_iter()) {
            let leverage: f64 = u.iter().enumerate().map(|(at, u)| u * u * kept(at)).sum();
            // Rounding may make a leverage one where α is far below the smallest eigenvalue.
            let left = (1.0 - leverage).max(f64::EPSILON);
            sum += r.iter().map(|r| (r / left).powi(2)).sum::<f64>();
        }
        Ok(sum / residual.len().max(1) as f64)
    }

    /// The generalised cross-validation score of a filter, over all targets.
    pub fn generalised(&self, filter: &Filter, targets: ArrayView2<'_, f64>) -> Result<f64> {
        let (residual, trace) = self.residual(filter, targets)?;
        let n = self.n_samples() as f64;
        let left = n - trace;
        if left <= n * f64::EPSILON * 8.0 {
            let reason = "the filter keeps everything, so there is no residual";
            return Err(LearnError::Undefined { metric: "generalised cross-validation", reason });
        }
        Ok(n * residual.mapv(|r| r * r).sum() / targets.ncols().max(1) as f64 / (left * left))
    }

    /// The penalty with the smallest leave-one-out error; of equal ones the largest.
    pub fn best_penalty(&self, penalties: &[f64], targets: ArrayView2<'_, f64>) -> Result<Selected> {
        Selected::least(penalties, Strongest::Largest, |penalty| self.leave_one_out(penalty, targets))
    }

    /// The stopping time of the flow: the candidate with the smallest mean squared error on other samples, and that
    /// error.
    pub fn early_stopping(
        &self,
        times: &[f64],
        targets: ArrayView2<'_, f64>,
        validation: &SampleRows<'_>,
        validation_targets: ArrayView2<'_, f64>,
    ) -> Result<(f64, f64)> {
        use crate::traits::Predict;
        check_size("the number of validation targets", validation.n_samples(), validation_targets.nrows())?;
        let error = |&time: &f64| -> Result<(f64, f64)> {
            let predicted = self.fit(&Filter::Flow { time }, targets)?.predict(validation)?;
            let squares = (&predicted - &validation_targets).mapv(|d| d * d);
            Ok((time, squares.mean_axis(Axis(0)).map_or(f64::NAN, |columns| columns.sum())))
        };
        least(times.iter().map(error).collect::<Result<Vec<_>>>()?, "the times")
    }
}

fn least(errors: Vec<(f64, f64)>, name: &'static str) -> Result<(f64, f64)> {
    let best = errors.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    best.ok_or_else(|| setting(name, "empty", "there must be at least one candidate"))
}
