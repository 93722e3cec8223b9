//! The precision of the prior: given, by the evidence, or by validation.
//!
//! The evidence's derivative vanishes where `γ(δ) = δ‖θ‖²` (MacKay 1992). In `u = ln δ` the function
//! `ln γ − u − ln ‖θ‖²` falls with a slope between −1 and −2, because `γ = Σ λ/(λ + δ)` does not grow with `δ` and
//! falls no faster than `1/δ`. So there is one maximum, and a single value of the function brackets it.

use super::machine::Laplace;
use super::marginals::Marginals;
use crate::error::{LearnError, Result, check_positive};
use crate::metrics::{gaussian_log_likelihood, negative_log_likelihood};
use mercer_data::{Dataset, Labels};
use mercer_kernel::Real;
use mercer_run::Context;
use serde::Serialize;
use std::collections::VecDeque;

/// The relative accuracy of the precision, far better than a prior warrants.
const TOLERANCE: f64 = 1e-8;

/// Enough steps for any curvature: each at least halves the logarithm of the interval.
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
    pub fn maximise_evidence(&mut self, context: &Context) -> Result<f64> {
        let undefined = |reason| LearnError::Undefined { metric: "the prior precision of highest evidence", reason };
        let norm = self.squared_norm();
        if norm == 0.0 {
            return Err(undefined("all parameters are zero, so no precision is too high"));
        }
        let excess = |u: f64| -> Result<f64> {
            context.check()?;
            let effective = self.effective_parameters(u.exp())?;
            if effective.is_nan() || effective <= 0.0 {
                return Err(undefined("the data do not inform the parameters: the curvature is zero"));
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
            // Within the bounds of the slope, a secant brackets the maximum.
            slope = ((next - value) / step).clamp(-2.0, -1.0);
            (u, value) = (u + step, next);
        }
        self.set_prior_precision(u.exp())?;
        Ok(u.exp())
    }

    /// Sets the prior precision to the one on a logarithmic grid that predicts other data best, by the probit
    /// probabilities of the classes or the density of the targets. The grid runs from 10⁻⁴ to 10⁴. If an end is best,
    /// it is extended beyond that end, to 10⁻¹² or 10¹² at most.
    pub fn validate(&mut self, data: &[Dataset], labels: &Labels, context: &Context) -> Result<Validation> {
        let mut search = Search { first: -FIRST, losses: VecDeque::new() };
        while let Some(step) = search.next() {
            self.set_prior_precision(precision_of(step))?;
            search.put(step, self.loss(&self.marginals(data, None, context)?, labels)?);
        }
        let found = search.result();
        self.set_prior_precision(found.precision)?;
        Ok(found)
    }

    /// The mean negative log density of labels.
    fn loss(&self, found: &Marginals, labels: &Labels) -> Result<f64> {
        match labels {
            Labels::Classes(classes) => negative_log_likelihood(found.probit().view(), classes.indices()),
            Labels::Targets(targets) => {
                let noise = found.noise().unwrap_or(1.0);
                let variances = &found.variance + noise * noise;
                let mut loss = 0.0;
                for ((mean, variance), target) in
                    found.mean.columns().into_iter().zip(variances.columns()).zip(targets.columns())
                {
                    loss -= gaussian_log_likelihood(mean, variance, target)?;
                }
                Ok(loss)
            }
        }
    }
}

/// A precision chosen by validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// The best of those tried.
    pub precision: f64,
    /// The mean negative log density of the validation data at the best precision.
    pub loss: f64,
    /// The lowest and the highest precision tried.
    pub tried: (f64, f64),
}

impl Validation {
    /// A note if the best precision is the lowest or highest one tried: the data do not bound it.
    pub fn note(&self) -> Option<String> {
        let (least, highest) = self.tried;
        let end = |what: &str, reason: &str| {
            let precision = self.precision;
            Some(format!("validation: {what} precision tried, {precision:.0e}, is the best: {reason}"))
        };
        match self.precision {
            own if own >= highest => end("the highest", "these data prefer the network without uncertainty"),
            own if own <= least => end("the lowest", "these data prefer more uncertainty than any prior gives"),
            _ => None,
        }
    }
}

/// The steps of the grid per two decades; the ends of the first and of the largest grid, in steps from precision one.
const PER_TWO_DECADES: i32 = 5;
const FIRST: i32 = 10;
const LAST: i32 = 30;

/// Beyond the first grid, the search stops once a step improves the loss by less than this fraction.
const WORTH: f64 = 1e-6;

fn precision_of(step: i32) -> f64 {
    10f64.powf(2.0 * f64::from(step) / f64::from(PER_TWO_DECADES))
}

/// Losses on a grid that is extended at the end that is best.
struct Search {
    first: i32,
    losses: VecDeque<f64>,
}

impl Search {
    fn last(&self) -> i32 {
        self.first + self.losses.len() as i32 - 1
    }

    fn best(&self) -> (usize, f64) {
        let least = |best: (usize, f64), (at, &loss): (usize, &f64)| if loss < best.1 { (at, loss) } else { best };
        self.losses.iter().enumerate().fold((0, f64::INFINITY), least)
    }

    /// The next step to try; `None` if the best one has neighbours on both sides, or the grid cannot grow.
    fn next(&self) -> Option<i32> {
        if self.last() < FIRST {
            return Some(self.last() + 1);
        }
        let (at, loss) = self.best();
        let falls = |neighbour: usize| self.losses[neighbour] - loss > WORTH * loss.abs().max(1.0);
        if at + 1 == self.losses.len() && self.last() < LAST && falls(at - 1) {
            return Some(self.last() + 1);
        }
        (at == 0 && self.first > -LAST && falls(1)).then_some(self.first - 1)
    }

    fn put(&mut self, step: i32, loss: f64) {
        if step < self.first {
            self.first = step;
            self.losses.push_front(loss);
        } else {
            self.losses.push_back(loss);
        }
    }

    fn result(&self) -> Validation {
        let (at, loss) = self.best();
        let tried = (precision_of(self.first), precision_of(self.last()));
        Validation { precision: precision_of(self.first + at as i32), loss, tried }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(loss: impl Fn(f64) -> f64) -> Validation {
        let mut search = Search { first: -FIRST, losses: VecDeque::new() };
        while let Some(step) = search.next() {
            search.put(step, loss(precision_of(step).log10()));
        }
        search.result()
    }

    #[test]
    fn the_grid_grows_until_the_best_is_inside() {
        for wanted in [-9.2, -4.0, 0.4, 4.0, 7.6] {
            let found = search(|u| (u - wanted).powi(2));
            assert!((found.precision.log10() - wanted).abs() < 1e-9, "{found:?}");
            assert_eq!(found.note(), None);
        }
        let inside = search(|u| (u - 0.4).powi(2));
        assert!((inside.tried.0 - 1e-4).abs() < 1e-12 && (inside.tried.1 - 1e4).abs() < 1e-4);
    }

    #[test]
    fn an_end_that_stays_the_best_is_told() {
        // Without a bound, up to the last step; towards a limit, until there is no improvement.
        let found = search(|u| -u);
        assert!(
            (found.precision / 1e12 - 1.0).abs() < 1e-9 && found.note().is_some_and(|note| note.contains("highest"))
        );
        let found = search(|u| u);
        assert!(
            (found.precision / 1e-12 - 1.0).abs() < 1e-9 && found.note().is_some_and(|note| note.contains("lowest"))
        );
        let found = search(|u| (-3.0 * u).exp());
        assert!(found.precision < 1e8 && found.note().is_some(), "{found:?}");
    }
}
