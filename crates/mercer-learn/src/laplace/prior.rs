//! The precision of the prior: given, by the evidence, or by validation.
//!
//! The evidence's derivative vanishes where `γ(δ) = δ‖θ‖²` (MacKay 1992). In `u = ln δ` the function `ln γ − u − ln ‖θ‖²` falls with
//! a slope between −1 and −2, because `γ = Σ λ/(λ + δ)` does not grow with `δ` and falls no faster than `1/δ`. So there is one maximum, and a
//! single value of the function encloses it.

use super::machine::Laplace;
use super::predictive::Functional;
use crate::error::{LearnError, Result, check_positive};
use crate::metrics::{gaussian_log_likelihood, negative_log_likelihood};
use mercer_data::{Dataset, Labels};
use mercer_kernel::Real;
use mercer_net::progress::Progress;

/// The precision is found to this relative accuracy: far more than a prior means.
const TOLERANCE: f64 = 1e-8;

/// Steps that suffice for any curvature: every one at least halves the interval's logarithm.
const STEPS: usize = 60;

impl<T: Real> Laplace<T> {
    /// `ln p(y)` in Laplace's approximation, for a prior of this precision.
    pub fn log_evidence(&self, precision: f64) -> Result<f64> {
        check_positive("the prior precision", precision)?;
        let complexity = self.log_det_ratio(precision)? + precision * self.squared_norm();
        Ok(self.log_likelihood() - 0.5 * complexity)
    }

    /// The derivative of [`log_evidence`](Self::log_evidence) with respect to the precision.
    pub fn log_evidence_slope(&self, precision: f64) -> Result<f64> {
        check_positive("the prior precision", precision)?;
        Ok(0.5 * (self.effective_parameters(precision)? / precision - self.squared_norm()))
    }

    /// Sets the precision of the prior to that of highest evidence.
    pub fn maximise_evidence(&mut self) -> Result<f64> {
        let undefined = |reason| LearnError::Undefined { metric: "the prior precision of highest evidence", reason };
        let norm = self.squared_norm();
        if norm == 0.0 {
            return Err(undefined("all parameters are zero, so that no precision is too high"));
        }
        let excess = |u: f64| -> Result<f64> {
            let effective = self.effective_parameters(u.exp())?;
            if effective.is_nan() || effective <= 0.0 {
                return Err(undefined("the data say nothing about the parameters: the curvature is zero"));
            }
            Ok(effective.ln() - u - norm.ln())
        };
        let mut u = self.prior_precision().ln();
        let mut value = excess(u)?;
        let mut slope: f64 = -1.5;
        for _ in 0..STEPS {
            let step = -value / slope;
            if step.abs() < TOLERANCE {
                break;
            }
            let next = excess(u + step)?;
            // Within the bounds of the slope a secant encloses the maximum.
            slope = ((next - value) / step).clamp(-2.0, -1.0);
            (u, value) = (u + step, next);
        }
        self.set_prior_precision(u.exp())?;
        Ok(u.exp())
    }

    /// Sets the precision of the prior to the one on a logarithmic grid from 10⁻⁴ to 10⁴ that predicts other data best: by the
    /// probit probabilities of the classes, or the density of the targets.
    pub fn validate(&mut self, data: &[Dataset], labels: &Labels, progress: &dyn Progress) -> Result<f64> {
        let mut best: Option<(f64, f64)> = None;
        for step in 0..GRID {
            let precision = 10f64.powf(-4.0 + 8.0 * step as f64 / (GRID - 1) as f64);
            self.set_prior_precision(precision)?;
            let loss = self.loss(&self.predict(data, progress)?, labels)?;
            if best.is_none_or(|(least, _)| loss < least) {
                best = Some((loss, precision));
            }
        }
        let precision = best.map_or(1.0, |(_, precision)| precision);
        self.set_prior_precision(precision)?;
        Ok(precision)
    }

    /// The mean negative log density of labels.
    fn loss(&self, functional: &Functional, labels: &Labels) -> Result<f64> {
        match labels {
            Labels::Classes(classes) => negative_log_likelihood(functional.probit().view(), classes.indices()),
            Labels::Targets(targets) => {
                let noise = functional.noise().unwrap_or(1.0);
                let variances = functional.variances() + noise * noise;
                let mut loss = 0.0;
                for ((mean, variance), target) in
                    functional.mean.columns().into_iter().zip(variances.columns()).zip(targets.columns())
                {
                    loss -= gaussian_log_likelihood(mean, variance, target)?;
                }
                Ok(loss)
            }
        }
    }
}

/// Five precisions in every two decades.
const GRID: usize = 21;
