//! Approximate inverses of the systems of Newton's method.
//!
//! ```text
//! (λI + RᵀB̂R)⁻¹ ≈ (I − VVᵀ)²/λ + V·(λI + Fᵀ·B̂_c·F)⁻¹·Vᵀ                   weights
//! (λI + SᵀKS)⁻¹ ≈ (I − D_cF·(λI + Fᵀ·D_c²·F)⁻¹·FᵀD_c)/λ,  D² = diag SᵀS     function
//! ```
//!
//! for every class c. `V` are the leading right singular vectors of `R`, found once, and `F = RV`, so that `RRᵀ ≈ FFᵀ`. The
//! weights `B̂_c` and `D_c` of a class, without the others, follow the iteration. Kernels have a few eigenvalues that are
//! many orders of magnitude above the others; plain conjugate gradients spend their time on these.

use super::curvature::Curvature;
use super::space::{Space, Vector};
use crate::error::Result;
use crate::surrogate::machine::PenaltyNorm;
use mercer_linalg::{Cholesky, LinalgError, Randomised, Watched, cholesky_shifted, matmul, matmul_into, syrk};
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, Axis, s};
use rayon::prelude::*;

/// The number of leading directions.
const DIRECTIONS: usize = 128;
/// Directions below this part of the largest eigenvalue are not orthogonal any more, by rounding.
const ROUNDING: f64 = 1e-10;
/// A kernel with an eigenvalue below minus this part of the largest is not positive semidefinite, and has no norm.
const INDEFINITE: f64 = 1e-6;

/// `V` and `F`, as columns.
pub(crate) struct Leading(Vector);

impl Leading {
    /// `None` if they cannot be computed; the iteration is slower without them, and ends at the same place.
    pub(crate) fn new(space: &Space<'_>, context: &Context) -> Result<Option<Self>> {
        let method = Randomised::new(space.rows.n_samples().min(DIRECTIONS)).products(1);
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
    /// `D`.
    weights: Array2<f64>,
    inner: Vec<Cholesky<f64>>,
    penalty: f64,
}

impl<'a> Preconditioner<'a> {
    pub(crate) fn new(
        leading: &'a Leading,
        norm: PenaltyNorm,
        curvature: &Curvature<'_>,
        penalty: f64,
    ) -> Result<Self> {
        let squares = match norm {
            PenaltyNorm::Function => curvature.root_diagonal(),
            PenaltyNorm::Weights => curvature.diagonal(),
        };
        let centred = norm == PenaltyNorm::Weights;
        let factor = |class: usize| {
            let inner = weighted(&leading.0.image, squares.column(class), centred);
            Ok(cholesky_shifted(inner.view(), penalty)?)
        };
        let inner = (0..squares.ncols()).into_par_iter().map(factor).collect::<Result<_>>()?;
        Ok(Self { leading: &leading.0, norm, weights: squares.mapv_into(f64::sqrt), inner, penalty })
    }

    pub(crate) fn apply(&self, x: &Vector) -> Result<Vector> {
        match self.norm {
            PenaltyNorm::Function => self.explain(x),
            PenaltyNorm::Weights => self.deflate(x),
        }
    }

    fn explain(&self, x: &Vector) -> Result<Vector> {
        let factor = &self.leading.image;
        let along = self.solve(matmul(factor.t(), (&x.own * &self.weights).view()))?;
        let explained = matmul(factor.view(), along.view()) * &self.weights;
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
        self.add(1.0, &self.solve(along)?, &mut y);
        Ok(y)
    }

    /// Every column with the factor of its class.
    fn solve(&self, mut columns: Array2<f64>) -> Result<Array2<f64>> {
        for (mut column, factor) in columns.columns_mut().into_iter().zip(&self.inner) {
            let solved = factor.solve_vector(column.view())?;
            column.assign(&solved);
        }
        Ok(columns)
    }

    /// Adds `±V·c`.
    fn add(&self, sign: f64, c: &Array2<f64>, y: &mut Vector) {
        matmul_into(sign, self.leading.own.view(), c.view(), true, y.own.view_mut());
        matmul_into(sign, self.leading.image.view(), c.view(), true, y.image.view_mut());
    }
}

/// `Fᵀ·diag(w)·F`, centred: `Fᵀ·(diag(w) − wwᵀ/1ᵀw)·F`.
fn weighted(factor: &Array2<f64>, weights: ArrayView1<'_, f64>, centred: bool) -> Array2<f64> {
    let scaled = factor * &weights.mapv(f64::sqrt).insert_axis(Axis(1));
    let mut inner = syrk(scaled.t());
    let total = weights.sum();
    if centred && total > 0.0 {
        let means = matmul(factor.t(), weights.insert_axis(Axis(1)));
        matmul_into(-1.0 / total, means.view(), means.t(), true, inner.view_mut());
        mercer_linalg::mirror_lower(inner.view_mut());
    }
    inner
}
