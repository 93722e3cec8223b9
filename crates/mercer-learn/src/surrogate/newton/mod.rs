//! Newton's method for the multinomial model.
//!
//! ```text
//! min Σᵢ vᵢ·CE(Tᵢ, softmax(fᵢ)) + ½λ‖u‖²,    f = R·u + 1bᵀ        g = Rᵀr + λu,  r = (P − T)∘v
//! ```
//!
//! `space` says what `u` and `R` are for the two norms. The biases have no penalty and are eliminated exactly:
//! `δb = −(1ᵀB1)⁺·1ᵀ(r + B·R·δu)`. Steps are solved by preconditioned conjugate gradients, more accurately from step to step
//! (Dembo, Eisenstat and Steihaug 1982). Products with `K` are the whole cost: one per iteration with the norm of the
//! function, two with that of the weights, and no matrix of side N is formed for features.
//!
//! We chose this over a factorisation of `K` because at ten thousand samples a factorisation costs as much as thousands of
//! products, and has to be repaired for kernels of low rank; and over L-BFGS because its last digits come slowly, and dual
//! weights need them. With the norm of the function the weights are `W = −r/λ` at the optimum, those of the representer
//! theorem (Yeh et al. 2018, arXiv 1811.09720). The scores of these weights differ from those of the iteration by `K·g/λ`,
//! which has to be below the tolerance, too.

mod curvature;
mod precondition;
mod solve;
mod space;
mod step;

pub(crate) use precondition::Leading;
pub(crate) use space::{Space, Vector};

use super::machine::PenaltyNorm;
use crate::classification::log_loss;
use crate::error::{LearnError, Result};
use crate::softmax::softmax;
use curvature::Curvature;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use step::Systems;

/// The first relative residual of a step. Later ones follow the size of the steps.
const LOOSE: f64 = 0.1;
/// The last one.
const TIGHT: f64 = 1e-10;
/// Sufficient decrease.
const DECREASE: f64 = 1e-4;
/// Relative differences of the objective up to this may be rounding.
const ROUNDING: f64 = 1e-13;
/// Steps that may run out of products before the iteration gives up.
const UNSOLVED: usize = 10;
/// How damping changes: if no part of a step is lower, and in all.
const HARDER: f64 = 10.0;
const HARDEST: f64 = 1e12;

/// A point.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) vector: Vector,
    pub(crate) bias: Array1<f64>,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    /// No score changes by more than this, relative to the largest score.
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) place: Place,
    /// `W`.
    pub(crate) weights: Array2<f64>,
    pub(crate) objective: f64,
    pub(crate) iterations: usize,
    pub(crate) converged: bool,
}

/// The problem. Samples without importance have no loss.
pub(crate) struct Problem<'k, 'a> {
    pub(crate) space: Space<'k>,
    pub(crate) targets: &'a Array2<f64>,
    pub(crate) importance: &'a [f64],
    pub(crate) penalty: f64,
    pub(crate) leading: Option<&'a Leading>,
}

/// The first and second derivatives at a place.
struct Slopes<'a> {
    curvature: Curvature<'a>,
    /// `r`.
    residual: Array2<f64>,
    /// `1ᵀr`.
    balance: Array1<f64>,
    /// What the biases answer: `B1·(1ᵀB1)⁺·1ᵀr`.
    answered: Array2<f64>,
    /// `g`, with the biases eliminated.
    gradient: Vector,
}

/// A step from a place.
struct Step {
    vector: Vector,
    bias: Array1<f64>,
    /// The derivative of the objective along it.
    slope: f64,
    /// Whether the system was solved to its tolerance.
    solved: bool,
    /// `r + B·δf`: the residual after the step, to first order.
    residual: Array2<f64>,
}

impl Problem<'_, '_> {
    /// Without weights; the biases give every class its share.
    pub(crate) fn start(&self) -> Place {
        let weighted = self.targets * &ArrayView1::from(self.importance).insert_axis(Axis(1));
        let logs = weighted.sum_axis(Axis(0)).mapv(|share| share.max(f64::MIN_POSITIVE).ln());
        let mean = logs.mean().unwrap_or(0.0);
        Place { vector: Vector::zeros(self.targets.dim()), bias: logs - mean }
    }

    /// The objective and `r`.
    fn evaluate(&self, place: &Place) -> (f64, Array2<f64>) {
        let mut scores = place.scores();
        let mut residual = Array2::zeros(scores.dim());
        let n_classes = self.targets.ncols();
        let loss = match (scores.as_slice_mut(), self.targets.as_slice(), residual.as_slice_mut()) {
            (Some(scores), Some(targets), Some(residual)) => {
                log_loss(scores, targets, self.importance, n_classes, residual)
            }
            _ => f64::NAN,
        };
        (loss + 0.5 * self.penalty * self.space.inner(&place.vector, &place.vector), residual)
    }

    /// What a step needs to know about a place.
    fn slopes(&self, place: &Place, residual: Array2<f64>) -> Result<Slopes<'_>> {
        let curvature = Curvature::new(softmax(place.scores().view()), self.importance)?;
        let balance = residual.sum_axis(Axis(0));
        let answered = curvature.of_bias(&curvature.bias(&balance));
        let mut gradient = self.space.adjoint(&residual - &answered);
        gradient.add(self.penalty, &place.vector);
        Ok(Slopes { curvature, residual, balance, answered, gradient })
    }

    /// Newton's step, solved to this tolerance. A damping above the penalty makes it shorter.
    fn step(&self, slopes: &Slopes<'_>, damping: f64, tolerance: f64, context: &Context) -> Result<Step> {
        let Slopes { curvature, residual, balance, answered, gradient } = slopes;
        let systems = Systems { space: &self.space, curvature, leading: self.leading, penalty: damping, tolerance };
        let (vector, solved) = systems.solve(gradient, context)?;
        let curved = curvature.times(&vector.image);
        let bias = curvature.bias(&-(balance + &curved.sum_axis(Axis(0))));
        let slope = self.space.inner(gradient, &vector) + space::dot(answered, &vector.image) + balance.dot(&bias);
        let residual = residual + &curved + curvature.of_bias(&bias);
        Ok(Step { vector, bias, slope, solved, residual })
    }

    /// One full step, solved as accurately as possible.
    pub(crate) fn one_step(&self, place: &Place, context: &Context) -> Result<Ended> {
        let (_, residual) = self.evaluate(place);
        let step = self.step(&self.slopes(place, residual)?, self.penalty, TIGHT, context)?;
        let place = place.moved(&step, 1.0);
        let (objective, _) = self.evaluate(&place);
        let weights = self.weights(&place, &step.residual);
        Ok(Ended { place, weights, objective, iterations: 1, converged: true })
    }

    /// The weights of training samples that belong to a place with this residual.
    fn weights(&self, place: &Place, residual: &Array2<f64>) -> Array2<f64> {
        match self.space.norm {
            PenaltyNorm::Function => residual / -self.penalty,
            PenaltyNorm::Weights => place.vector.own.clone(),
        }
    }

    /// Steps until the scores stay the same.
    pub(crate) fn minimise(&self, mut place: Place, stop: Stop, context: &Context) -> Result<Ended> {
        let (mut objective, mut residual) = self.evaluate(&place);
        let (mut iterations, mut converged, mut accuracy, mut damping) = (0, false, LOOSE, self.penalty);
        let mut unsolved = 0;
        while iterations < stop.max_iterations && !converged && unsolved < UNSOLVED {
            context.check()?;
            if !objective.is_finite() {
                return Err(LearnError::NotFinite { what: "scores" });
            }
            let scale = 1.0 + largest(&place.scores());
            let slopes = self.slopes(&place, residual.clone())?;
            // No score is further from its optimum than this.
            let far = largest(&slopes.gradient.image) / self.penalty;
            let shift = slopes.curvature.bias(&slopes.balance).iter().fold(0.0, |most: f64, b| most.max(b.abs()));
            if far.max(shift) <= stop.tolerance * scale {
                converged = true;
                break;
            }
            let step = self.step(&slopes, damping, accuracy, context)?;
            let change = largest(&(&step.vector.image + &step.bias)) / scale;
            iterations += 1;
            unsolved += usize::from(!step.solved);
            let Some((next, length)) = self.search(&place, objective, &step) else {
                damping *= HARDER;
                if damping > self.penalty * HARDEST {
                    break;
                }
                continue;
            };
            place = next;
            (objective, residual) = self.evaluate(&place);
            let whole = length == 1.0 && damping <= self.penalty;
            converged = whole && step.solved && change <= stop.tolerance && self.space.norm == PenaltyNorm::Weights;
            accuracy = if whole { change.clamp(TIGHT, LOOSE) } else { LOOSE };
            damping = (damping / HARDER).max(self.penalty);
        }
        let weights = self.weights(&place, &residual);
        Ok(Ended { place, weights, objective, iterations, converged })
    }

    /// The step or a part of it that is lower.
    fn search(&self, place: &Place, objective: f64, step: &Step) -> Option<(Place, f64)> {
        let mut length = 1.0;
        while length > 1e-10 {
            let next = place.moved(step, length);
            let (value, _) = self.evaluate(&next);
            if value <= objective + DECREASE * length * step.slope.min(0.0) + ROUNDING * objective.abs() {
                return Some((next, length));
            }
            length *= 0.5;
        }
        None
    }
}

impl Place {
    /// `f`.
    fn scores(&self) -> Array2<f64> {
        &self.vector.image + &self.bias
    }

    fn moved(&self, step: &Step, length: f64) -> Self {
        let mut vector = self.vector.clone();
        vector.add(length, &step.vector);
        Self { vector, bias: &self.bias + &(&step.bias * length) }
    }
}

fn largest(values: &Array2<f64>) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}
