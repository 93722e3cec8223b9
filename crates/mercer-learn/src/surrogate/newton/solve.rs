//! Preconditioned conjugate gradients for the step of an inexact Newton method.
//!
//! Hestenes and Stiefel 1952. Unlike `mercer_linalg`'s it is told when to stop, and returns the place that it reached when
//! it runs out of products.

use super::space::{Vector, dot};
use crate::error::{LearnError, Result};
use mercer_run::Context;

/// What the system is made of.
pub(crate) struct System<H, P, D> {
    /// The matrix.
    pub(crate) times: H,
    pub(crate) precondition: P,
    /// Whether a solution with this residual, and its square in the norm of the preconditioner, is good enough.
    pub(crate) done: D,
    pub(crate) max_products: usize,
}

impl<H, P, D> System<H, P, D>
where
    H: Fn(&Vector) -> Vector,
    P: Fn(&Vector) -> Result<Vector>,
    D: Fn(&Vector, &Vector, f64) -> bool,
{
    /// The solution, and whether it was good enough.
    pub(crate) fn solve(&self, rhs: Vector, context: &Context) -> Result<(Vector, bool)> {
        let mut residual = rhs;
        let mut direction = (self.precondition)(&residual)?;
        let mut solution = residual.clone();
        solution.scale(0.0);
        let mut square = dot(&residual.own, &direction.own);
        for _ in 0..self.max_products {
            if (self.done)(&solution, &residual, square) {
                return Ok((solution, true));
            }
            context.check()?;
            let image = (self.times)(&direction);
            let curvature = dot(&direction.own, &image.own);
            if !curvature.is_finite() {
                return Err(LearnError::NotFinite { what: "scores" });
            }
            if curvature <= 0.0 || square <= 0.0 {
                // Rounding has used up the residual.
                break;
            }
            let step = square / curvature;
            solution.add(step, &direction);
            residual.add(-step, &image);
            let next = (self.precondition)(&residual)?;
            let squared = dot(&residual.own, &next.own);
            direction.scale(squared / square);
            direction.add(1.0, &next);
            square = squared;
        }
        let done = (self.done)(&solution, &residual, square);
        Ok((solution, done))
    }
}
