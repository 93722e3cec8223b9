//! The systems of Newton's method, one per norm.
//!
//! Norm of the weights, in the space of `u` itself:
//!
//! ```text
//! (λI + RᵀB̂R)·δu = −g
//! ```
//!
//! Norm of the function, in the space of scores, with `g = r + λW` in the inner product of `K`:
//!
//! ```text
//! δW = −(g + SΠy)/λ        (λI + ΠSᵀKSΠ)·y = −ΠSᵀKg
//! ```
//!
//! Here `W + δW` is `−(r + B·δf)/λ`, so the weights are those of the representer theorem after every step, also in
//! directions that a kernel of low rank does not see. A solution with the residual `ϱ` misses the minimum of the quadratic
//! model by `‖ϱ‖²/2λ²` at most, and the minimum is `½⟨g, −δW⟩` below: their ratio decides when to stop.

use super::curvature::Curvature;
use super::precondition::{Leading, Preconditioner};
use super::solve::System;
use super::space::{Space, Vector, dot};
use crate::error::Result;
use crate::surrogate::machine::PenaltyNorm;
use mercer_run::Context;
use ndarray::Array2;

/// Products per step.
const PRODUCTS: usize = 500;
/// A residual that is this part of the right-hand side consists of rounding errors.
const ROUNDING: f64 = 1e-15;

pub(super) struct Systems<'k, 'a> {
    pub(super) space: &'a Space<'k>,
    pub(super) curvature: &'a Curvature<'a>,
    pub(super) leading: Option<&'a Leading>,
    pub(super) penalty: f64,
    pub(super) tolerance: f64,
}

impl Systems<'_, '_> {
    /// `δu`, and whether it is as accurate as requested.
    pub(super) fn solve(&self, gradient: &Vector, context: &Context) -> Result<(Vector, bool)> {
        let (norm, penalty) = (self.space.norm, self.penalty);
        // If rounding spoils it, the iteration is slower, and ends at the same place.
        let own = |leading| Preconditioner::new(leading, norm, self.curvature, penalty).ok();
        let precondition = self.leading.and_then(own);
        match norm {
            PenaltyNorm::Weights => self.primal(gradient, precondition.as_ref(), context),
            PenaltyNorm::Function => self.dual(gradient, precondition.as_ref(), context),
        }
    }

    fn primal(
        &self,
        gradient: &Vector,
        precondition: Option<&Preconditioner<'_>>,
        context: &Context,
    ) -> Result<(Vector, bool)> {
        let mut downhill = gradient.clone();
        downhill.scale(-1.0);
        let judge = |x: &Vector| precondition.map_or_else(|| Ok(x.clone()), |own| own.apply(x));
        let goal = self.tolerance * self.tolerance * dot(&downhill.own, &judge(&downhill)?.own);
        let system = System {
            times: |x: &Vector| {
                let mut image = self.space.adjoint(self.curvature.eliminated(&x.image));
                image.add(self.penalty, x);
                image
            },
            precondition: judge,
            done: |_: &Vector, _: &Vector, square: f64| square <= goal,
            max_products: PRODUCTS,
        };
        system.solve(downhill, context)
    }

    fn dual(
        &self,
        gradient: &Vector,
        precondition: Option<&Preconditioner<'_>>,
        context: &Context,
    ) -> Result<(Vector, bool)> {
        let (penalty, curvature) = (self.penalty, self.curvature);
        let alone = |own: Array2<f64>| Vector { own, image: Array2::zeros((0, 0)) };
        let projected = |mut own: Array2<f64>| {
            curvature.project(&mut own);
            alone(own)
        };
        let through = |y: &Array2<f64>| self.space.rows.times(curvature.root(y).view());
        let rhs = projected(-curvature.root_transposed(&gradient.image));
        let (first, floor) = (dot(&gradient.own, &gradient.image), ROUNDING * dot(&rhs.own, &rhs.own).sqrt());
        let goal = rhs.clone();
        let system = System {
            times: |y: &Vector| {
                let mut image = projected(curvature.root_transposed(&through(&y.own)));
                image.own.scaled_add(penalty, &y.own);
                image
            },
            precondition: |y: &Vector| match precondition {
                Some(own) => Ok(projected(own.apply(y)?.own)),
                None => Ok(y.clone()),
            },
            done: |y: &Vector, residual: &Vector, _: f64| {
                let square = dot(&residual.own, &residual.own);
                let decrease = (first - dot(&goal.own, &y.own)) / penalty;
                let enough = self.tolerance * self.tolerance * decrease.max(0.0);
                square <= penalty * penalty * enough || square.sqrt() <= floor
            },
            max_products: PRODUCTS,
        };
        let (y, solved) = system.solve(rhs, context)?;
        let mut step = gradient.clone();
        step.own += &curvature.root(&y.own);
        step.image += &through(&y.own);
        step.scale(-1.0 / penalty);
        Ok((step, solved))
    }
}
