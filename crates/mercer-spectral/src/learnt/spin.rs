//! Spectral inference networks (Pfau, Petersen, Agarwal, Barrett and Stachenfeld 2019, arXiv 1806.02215).
//!
//! With `Σ = E[u uᵀ]`, `Π = E[u κ uᵀ]`, `Σ = LLᵀ` and `Λ = L⁻¹ΠL⁻ᵀ`, the functions `v = L⁻¹u` are orthonormal and
//! `Λ_jj` is the Rayleigh quotient of `v_j`, which depends only on `u_1 … u_j`. Maximising `tr Λ = tr Σ⁻¹Π` finds the
//! right space without an order. Masking the gradient orders it: `u_j` follows only the gradient of `Λ_jj`, not of
//! later ones. With `D = diag(L)⁻¹`,
//!
//! ```text
//! ∂Λ_jj/∂u_j(x_b) = (2/n) [ (1/n) K U A − U B ]_bj,    A = L⁻ᵀD,   B = L⁻ᵀ triu(ΛD)
//! ```
//!
//! `A` and `−B` are the cotangents of `Π` and `Σ`; both are upper triangular, and column `j` goes to `u_j`. A batch
//! gives an unbiased estimate of `(Σ, Π, ∂Σ, ∂Π)` but not of the gradient, which is a non-linear function of them.
//! However, the gradient is linear in `Π` and `∂Π`, so only `Σ` and its Jacobian
//! `J_ij = (2/n) Σ_b u_i(x_b) ∂u_j(x_b)/∂θ` need to be moving averages (two time scales). `Π` and `∂Π` are those of the
//! batch:
//!
//! ```text
//! Σ̄ ← keep·Σ̄ + (1 − keep)·Σ,    J̄ ← keep·J̄ + (1 − keep)·J,    Σ̄ = LLᵀ,    Λ = L⁻¹ΠL⁻ᵀ
//! ∇ = −Σ_ij A_ij ∂Π_ij + Σ_ij B_ij J̄_ij
//! ```
//!
//! [`LearningSettings`](super::LearningSettings) defines how much of the averages is kept. The reported eigenvalues are a moving
//! average of `diag Λ`, which does not enter the gradient.
//!
//! Functions that start nearly equal make `Σ` ill-conditioned, and `L⁻¹` amplifies the rounding of `Π`: with ten
//! networks on the line, only the first function survives single precision. Use `f64`.
//!
//! If functions do not share weights, `J_ij` has entries only for the parameters of function `j`, and one reverse pass
//! gives row `i` for all of them. Otherwise every pair `i ≤ j` needs a pass.

use super::objective::{Average, Objective, Rows, SecondPass, Sizes, average, inner};
use crate::error::Result;
use mercer_kernel::Real;
use mercer_linalg::simd::dispatch;
use mercer_linalg::{Triangle, cholesky, gemm, matmul, solve_triangular};
use ndarray::{Array2, ArrayView2};

/// The averages and the buffers of the method.
#[derive(Debug)]
pub(super) struct Spin<T> {
    keep: f64,
    /// `Σ̄`, `k × k`.
    sigma: Vec<T>,
    /// The average of `diag Λ`.
    values: Vec<T>,
    /// `J̄`: rows of as many numbers as there are parameters.
    jacobian: Vec<T>,
    /// `B` of the last batch.
    covariance_cotangent: Array2<f64>,
    image: Vec<T>,
    row: Vec<T>,
    small: Vec<T>,
}

impl<T: Real> Spin<T> {
    /// With moving averages that keep this share at every step.
    pub(super) fn new(keep: f64) -> Self {
        Self {
            keep,
            sigma: Vec::new(),
            values: Vec::new(),
            jacobian: Vec::new(),
            covariance_cotangent: Array2::zeros((0, 0)),
            image: Vec::new(),
            row: Vec::new(),
            small: Vec::new(),
        }
    }

    /// `L⁻¹` of `Σ̄`.
    fn whitening(&self) -> Result<Array2<f64>> {
        let lower = cholesky(symmetric(&self.sigma).view())?.lower;
        Ok(solve_triangular(Triangle::Lower, lower.view(), Array2::eye(lower.nrows()).view())?)
    }
}

/// Symmetrises a square matrix, which removes asymmetric rounding.
fn symmetric<T: Real>(v: &[T]) -> Array2<f64> {
    let k = v.len().isqrt();
    Array2::from_shape_fn((k, k), |(i, j)| 0.5 * (v[i * k + j].wide() + v[j * k + i].wide()))
}

/// `(A, B)` from `L⁻¹` and `Λ`.
pub(super) fn masked(inverse: ArrayView2<'_, f64>, values: ArrayView2<'_, f64>) -> (Array2<f64>, Array2<f64>) {
    let k = inverse.nrows();
    let upper = Array2::from_shape_fn((k, k), |(i, j)| if i <= j { values[(i, j)] * inverse[(j, j)] } else { 0.0 });
    let a = Array2::from_shape_fn((k, k), |(i, j)| inverse[(j, i)] * inverse[(j, j)]);
    (a, matmul(inverse.t(), upper.view()))
}

impl<T: Real> Objective<T> for Spin<T> {
    fn cotangents(&mut self, batch: Rows<'_, T>, cotangents: &mut [T]) -> Result<f64> {
        let Rows { outputs, rows, functions: k, product } = batch;
        let n = rows as f64;
        self.image.resize(rows * k, T::zero());
        self.small.resize(k * k, T::zero());
        product(outputs, &mut self.image)?;
        inner(rows, k, outputs, outputs, n.recip(), &mut self.small);
        average(&mut self.sigma, &self.small, self.keep);
        let inverse = self.whitening()?;
        inner(rows, k, outputs, &self.image, (n * n).recip(), &mut self.small);
        let values = matmul(matmul(inverse.view(), symmetric(&self.small).view()).view(), inverse.t());
        let quotients: Vec<T> = values.diag().iter().map(|&value| T::narrow(value)).collect();
        average(&mut self.values, &quotients, self.keep);
        let (a, b) = masked(inverse.view(), values.view());
        self.covariance_cotangent = b;
        let mix: Vec<T> = a.iter().map(|&x| T::narrow(-2.0 / (n * n) * x)).collect();
        gemm([rows, k, k], (&self.image, k, 1), (&mix, k, 1), false, cotangents);
        Ok(-values.diag().sum())
    }

    fn correct(&mut self, again: SecondPass<'_, T>, gradient: &mut [T]) {
        let SecondPass { passes, weights, outputs, rows, owners } = again;
        let (k, size) = (self.covariance_cotangent.nrows(), passes.n_params());
        let is_first = self.jacobian.is_empty();
        let separate = !owners.is_empty();
        if is_first {
            self.jacobian.resize(jacobian_rows(k, separate) * size, T::zero());
        }
        let keep = if is_first { 0.0 } else { self.keep };
        self.row.resize(rows * k, T::zero());
        let (factor, mut at) = (T::narrow(2.0 / rows as f64), 0);
        for i in 0..k {
            // One pass for all columns j ≥ i if they share no parameter, otherwise one each.
            for first in i..if separate { i + 1 } else { k } {
                let columns = if separate { i..k } else { first..first + 1 };
                self.row.fill(T::zero());
                for (to, from) in self.row.chunks_exact_mut(k).zip(outputs.chunks_exact(k)) {
                    to[columns.clone()].fill(from[i] * factor);
                }
                let fresh = passes.reverse(weights, &self.row);
                let row = &mut self.jacobian[at * size..(at + 1) * size];
                let (keep, new) = (T::narrow(keep), T::narrow(1.0 - keep));
                for j in columns {
                    let range = owners.get(j).cloned().unwrap_or(0..size);
                    let share = T::narrow(self.covariance_cotangent[(i, j)]);
                    let parts = row[range.clone()].iter_mut().zip(&fresh[range.clone()]);
                    let parts = parts.zip(&mut gradient[range.clone()]);
                    dispatch(
                        #[inline(always)]
                        || {
                            for ((old, &fresh), gradient) in parts {
                                *old = keep * *old + new * fresh;
                                *gradient += share * *old;
                            }
                        },
                    );
                }
                at += 1;
            }
        }
    }

    fn outcome(&self) -> Result<(Vec<f64>, Array2<f64>)> {
        Ok((self.values.iter().map(|value| value.wide()).collect(), self.whitening()?.reversed_axes()))
    }

    fn averages(&mut self, sizes: Sizes) -> Vec<Average<'_, T>> {
        let k = sizes.functions;
        vec![
            Average { name: "sigma", values: &mut self.sigma, length: k * k },
            Average { name: "values", values: &mut self.values, length: k },
            Average {
                name: "jacobian",
                values: &mut self.jacobian,
                length: jacobian_rows(k, sizes.separate) * sizes.parameters,
            },
        ]
    }

    fn check(&self) -> std::result::Result<(), (&'static str, String)> {
        if self.sigma.is_empty() {
            return Ok(());
        }
        match self.whitening() {
            Ok(_) => Ok(()),
            Err(error) => Err(("sigma", format!("is not a covariance matrix: {error}"))),
        }
    }
}

/// Rows of `J̄`: one per function if parameters are not shared, otherwise one per pair `i ≤ j`.
fn jacobian_rows(functions: usize, separate: bool) -> usize {
    if separate { functions } else { functions * (functions + 1) / 2 }
}
