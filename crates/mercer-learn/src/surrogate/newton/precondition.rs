//! Approximate inverses of the systems of Newton's method, exact in the leading directions of the kernel.
//!
//! ```text
//! (λI + RᵀB̂R)⁻¹   ≈ (I − VVᵀ)²/λ + V·(λI + FᵀB̂F)⁻¹·Vᵀ              weights
//! (λI + ΠSᵀKSΠ)⁻¹ ≈ (I − ΠSᵀF·(λI + FᵀB̂F)⁻¹·FᵀSΠ)/λ                function
//! ```
//!
//! `V` are the leading right singular vectors of `R`, found once, and `F = RV`, so that `RRᵀ ≈ FFᵀ`. The inner matrix couples
//! the classes, as the Hessian does: without that, conjugate gradients take many times as many products where the penalty is
//! weak. Its side is limited, so there are fewer directions for more classes. Kernels have a few eigenvalues that are many
//! orders of magnitude above the others; plain conjugate gradients spend their time on these.

use super::curvature::Curvature;
use super::space::{Space, Vector};
use crate::error::{Result, setting};
use crate::surrogate::machine::PenaltyNorm;
use mercer_linalg::{Cholesky, LinalgError, Randomised, Watched, cholesky_shifted, matmul, matmul_into};
use mercer_run::Context;
use ndarray::{Array1, Array2, s};

/// The largest number of leading directions, and the side of the inner matrix that it should not exceed.
const DIRECTIONS: usize = 128;
const SIDE: usize = 640;
/// The least number of directions.
const LEAST: usize = 4;
/// Directions below this part of the largest eigenvalue are not orthogonal any more, by rounding.
const ROUNDING: f64 = 1e-10;
/// A kernel with an eigenvalue below minus this part of the largest is not positive semidefinite, and has no norm.
const INDEFINITE: f64 = 1e-6;

/// `V` and `F`, as columns.
pub(crate) struct Leading(Vector);

impl Leading {
    /// `None` if they cannot be computed; the iteration is slower without them, and ends at the same place.
    pub(crate) fn new(space: &Space<'_>, n_classes: usize, context: &Context) -> Result<Option<Self>> {
        let directions = (SIDE / n_classes.max(1)).clamp(LEAST, DIRECTIONS);
        let method = Randomised::new(space.rows.n_samples().min(directions)).products(1);
        let found = method.run(&Watched::new(space, context));
        context.check()?;
        let Ok(top) = found else { return Ok(None) };
        let most = top.values.iter().chain(&top.others).fold(0.0, |most: f64, value| most.max(value.abs()));
        if let Some(&curvature) = top.values.iter().chain(&top.others).find(|value| **value < -INDEFINITE * most) {
            return Err(LinalgError::Indefinite { routine: "the Gram matrix", iteration: 0, curvature }.into());
        }
        let least = ROUNDING * most;
        let kept = top.values.iter().take_while(|value| **value > least).count();
        if kept == 0 {
            return Ok(None);
        }
        let roots = top.values.slice(s![..kept]).mapv(|value| 1.0 / value.sqrt());
        Ok(Some(Self(space.adjoint(&top.vectors.slice(s![.., ..kept]) * &roots))))
    }
}

pub(crate) struct Preconditioner<'a> {
    leading: &'a Vector,
    norm: PenaltyNorm,
    curvature: &'a Curvature<'a>,
    /// `λI + FᵀB̂F`, all directions of a class after those of another.
    inner: Cholesky<f64>,
    penalty: f64,
}

impl<'a> Preconditioner<'a> {
    pub(crate) fn new(
        leading: &'a Leading,
        norm: PenaltyNorm,
        curvature: &'a Curvature<'a>,
        penalty: f64,
    ) -> Result<Self> {
        let inner = cholesky_shifted(curvature.between(&leading.0.image).view(), penalty)?;
        Ok(Self { leading: &leading.0, norm, curvature, inner, penalty })
    }

    pub(crate) fn apply(&self, x: &Vector) -> Result<Vector> {
        match self.norm {
            PenaltyNorm::Function => self.explain(x),
            PenaltyNorm::Weights => self.deflate(x),
        }
    }

    /// `x` satisfies `x = Πx`.
    fn explain(&self, x: &Vector) -> Result<Vector> {
        let factor = &self.leading.image;
        let along = self.solve(&matmul(factor.t(), self.curvature.root(&x.own).view()))?;
        let mut explained = self.curvature.root_transposed(&matmul(factor.view(), along.view()));
        self.curvature.project(&mut explained);
        Ok(Vector { own: (&x.own - &explained) / self.penalty, image: Array2::zeros((0, 0)) })
    }

    fn deflate(&self, x: &Vector) -> Result<Vector> {
        let mut y = x.clone();
        let along = matmul(self.leading.own.t(), x.own.view());
        self.add(-1.0, &along, &mut y);
        // Twice, so that the result is positive however orthogonal the directions are.
        let rest = matmul(self.leading.own.t(), y.own.view());
        self.add(-1.0, &rest, &mut y);
        y.scale(1.0 / self.penalty);
        self.add(1.0, &self.solve(&along)?, &mut y);
        Ok(y)
    }

    /// The inverse of the inner matrix times a column per class.
    fn solve(&self, columns: &Array2<f64>) -> Result<Array2<f64>> {
        let flat: Array1<f64> = columns.t().iter().copied().collect();
        let solved = self.inner.solve_vector(flat.view())?;
        let turned = solved.into_shape_with_order((columns.ncols(), columns.nrows()));
        let turned = turned.map_err(|error| setting("the preconditioner", error, "its shape does not fit"))?;
        Ok(turned.reversed_axes())
    }

    /// Adds `±V·c`.
    fn add(&self, sign: f64, c: &Array2<f64>, y: &mut Vector) {
        matmul_into(sign, self.leading.own.view(), c.view(), true, y.own.view_mut());
        matmul_into(sign, self.leading.image.view(), c.view(), true, y.image.view_mut());
    }
}
