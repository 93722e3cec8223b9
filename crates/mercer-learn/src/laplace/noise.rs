//! The observation noise of a regression, by the evidence.
//!
//! With the precision `β = 1/σ²` of the noise, `r = δ/β`, the curvature `H = βG`, the sum `E` of squared errors and the
//! number `M` of targets,
//!
//! ```text
//! ln p(y) = ½ (M ln β/2π − βE − ln det(G/r + I) − rβ‖θ‖²)
//! ```
//!
//! At a given `r` its maximum is at `β = M/(E + r‖θ‖²)`. What remains is a function of `r` alone, whose derivative
//! vanishes where `γ(r) = M r‖θ‖²/(E + r‖θ‖²)`, with the effective number of parameters `γ(r) = tr G(G + rI)⁻¹`: one
//! side falls with `r` and the other grows, so there is one maximum. At a given `δ` the maximum is where
//! `βE = M − γ(δ/β)`, and it is unique for the same reason. Both are MacKay's (1992) fixed points `δ = γ/‖θ‖²` and
//! `σ² = E/(M − γ)`, found without iterating one against the other.

use super::likelihood::Likelihood;
use super::machine::Laplace;
use crate::error::{LearnError, Result, check_positive, setting};
use mercer_kernel::Real;
use mercer_run::Context;

/// Logarithms are found to this accuracy.
const TOLERANCE: f64 = 1e-9;

/// The most evaluations for bracketing and finding a zero.
const STEPS: usize = 200;

/// Below this fraction of the noise variance, errors are rounding.
const EXACT: f64 = 1e-12;

impl<T: Real> Laplace<T> {
    /// The standard deviation of the observation noise of a regression.
    pub fn noise(&self) -> Option<f64> {
        self.settings.likelihood.noise()
    }

    /// Changes the standard deviation of the observation noise, without another pass over the data.
    ///
    /// # Errors
    /// For a classifier, and for a value that is not positive.
    pub fn set_noise(&mut self, noise: f64) -> Result<()> {
        check_positive("the observation noise", noise)?;
        let (before, errors) = self.observed()?;
        let factor = (before / noise).powi(2);
        self.scale_curvature(factor);
        self.log_likelihood = -0.5 * errors / (noise * noise) - self.n_targets() * per_target(noise);
        self.settings.likelihood = Likelihood::Gaussian { noise };
        Ok(())
    }

    /// Sets the observation noise to that of highest evidence, keeping the prior.
    ///
    /// # Errors
    /// For a classifier, and for a network that reproduces its targets without error.
    pub fn maximise_noise(&mut self, context: &Context) -> Result<f64> {
        let (before, errors) = self.inexact()?;
        let (targets, precision) = (self.n_targets(), self.prior_precision());
        let excess = |log_beta: f64| -> Result<f64> {
            context.check()?;
            // The current curvature belongs to the current noise.
            let effective = self.effective_parameters(precision * (-log_beta).exp() / before.powi(2))?;
            Ok((targets - effective).max(f64::MIN_POSITIVE).ln() - log_beta - errors.ln())
        };
        let log_beta = zero_of_falling(-2.0 * before.ln(), excess)?;
        self.set_noise((-0.5 * log_beta).exp())?;
        Ok((-0.5 * log_beta).exp())
    }

    /// Sets the prior precision and the observation noise jointly to those of highest evidence.
    ///
    /// # Errors
    /// As [`maximise_noise`](Self::maximise_noise) and [`maximise_evidence`](Self::maximise_evidence).
    pub fn maximise_evidence_and_noise(&mut self, context: &Context) -> Result<(f64, f64)> {
        let (before, errors) = self.inexact()?;
        let (targets, norm) = (self.n_targets(), self.squared_norm());
        if norm == 0.0 {
            let reason = "all parameters are zero, so no precision is too high";
            return Err(LearnError::Undefined { metric: "the prior precision of highest evidence", reason });
        }
        let excess = |log_ratio: f64| -> Result<f64> {
            context.check()?;
            let ratio = log_ratio.exp();
            let effective = self.effective_parameters(ratio / before.powi(2))?;
            if effective.is_nan() || effective <= 0.0 {
                let reason = "the data do not inform the parameters: the curvature is zero";
                return Err(LearnError::Undefined { metric: "the prior precision of highest evidence", reason });
            }
            Ok(effective.ln() - (targets * ratio * norm / (errors + ratio * norm)).ln())
        };
        let start = (self.prior_precision() * before * before).ln();
        let ratio = zero_of_falling(start, excess)?.exp();
        let variance = (errors + ratio * norm) / targets;
        self.set_noise(variance.sqrt())?;
        self.set_prior_precision(ratio / variance)?;
        Ok((ratio / variance, variance.sqrt()))
    }

    fn n_targets(&self) -> f64 {
        (self.train_size() * self.n_outputs()) as f64
    }

    /// The current noise and the sum of squared errors.
    fn observed(&self) -> Result<(f64, f64)> {
        let Some(noise) = self.noise() else {
            return Err(setting("the likelihood", "categorical", "classes have no observation noise"));
        };
        let errors = -2.0 * noise * noise * (self.log_likelihood() + self.n_targets() * per_target(noise));
        Ok((noise, errors.max(0.0)))
    }

    fn inexact(&self) -> Result<(f64, f64)> {
        let (noise, errors) = self.observed()?;
        if errors <= EXACT * noise * noise * self.n_targets() {
            let reason = "the network reproduces its targets exactly, so the noise must be given";
            return Err(LearnError::Undefined { metric: "the noise of highest evidence", reason });
        }
        Ok((noise, errors))
    }
}

/// `ln σ√2π`.
fn per_target(noise: f64) -> f64 {
    (noise * (2.0 * std::f64::consts::PI).sqrt()).ln()
}

/// The zero of a continuous decreasing function: bracketed by doubling steps, then found by the secant method with the
/// Illinois rule, which halves the value at the end that stays, so that both ends move.
fn zero_of_falling(start: f64, function: impl Fn(f64) -> Result<f64>) -> Result<f64> {
    let undefined = LearnError::Undefined { metric: "the noise of highest evidence", reason: "it has no bound" };
    let (mut a, mut fa) = (start, function(start)?);
    let mut step = if fa > 0.0 { 1.0 } else { -1.0 };
    let (mut b, mut fb) = (a + step, function(a + step)?);
    let mut steps = 0;
    while fa * fb > 0.0 {
        step *= 2.0;
        steps += 1;
        if steps > 9 {
            return Err(undefined);
        }
        (a, fa) = (b, fb);
        b += step;
        fb = function(b)?;
    }
    for _ in 0..STEPS {
        if fb == 0.0 || (b - a).abs() < TOLERANCE {
            break;
        }
        let c = b - fb * (b - a) / (fb - fa);
        let fc = function(c)?;
        let moved = (c - b).abs();
        if fc * fb < 0.0 {
            (a, fa) = (b, fb);
        } else {
            fa *= 0.5;
        }
        (b, fb) = (c, fc);
        if moved < TOLERANCE {
            break;
        }
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_steep_and_flat_functions() {
        for (at, steepness) in [(0.3, 1.0), (-40.0, 0.01), (100.0, 3.0)] {
            let found = zero_of_falling(1.0, |x| Ok(-(steepness * (x - at)).sinh())).expect("a zero");
            // Ten times the step at which the search ends.
            assert!((found - at).abs() < 1e-8, "{found} instead of {at}");
        }
        assert!(zero_of_falling(0.0, |_| Ok(1.0)).is_err());
    }
}
