//! The curvature of the log loss at some probabilities, one block per sample, with the biases eliminated.
//!
//! ```text
//! Bᵢ = vᵢ·(diag pᵢ − pᵢpᵢᵀ) = SᵢSᵢᵀ        Sᵢ = √vᵢ·(diag √pᵢ − pᵢ√pᵢᵀ)
//! B̂ = B − B1·(1ᵀB1)⁺·1ᵀB = SΠSᵀ           Π = I − Sᵀ1·(1ᵀB1)⁺·1ᵀS
//! ```
//!
//! All arrays have a row per sample and a column per class. A shift of all scores of a sample changes nothing, so `1ᵀB1`
//! is singular and the biases keep their sum.

use crate::error::Result;
use mercer_linalg::{matmul, symmetric_eigen};
use ndarray::{Array1, Array2, ArrayView1, Axis};

/// Eigenvalues below this part of the largest are zero.
const ROUNDING: f64 = 1e-13;

pub(crate) struct Curvature<'a> {
    shares: Array2<f64>,
    roots: Array2<f64>,
    importance: &'a [f64],
    /// `(1ᵀB1)⁺`.
    inverse: Array2<f64>,
}

impl<'a> Curvature<'a> {
    pub(crate) fn new(shares: Array2<f64>, importance: &'a [f64]) -> Result<Self> {
        let weighted = &shares * &ArrayView1::from(importance).insert_axis(Axis(1));
        let mut sum = -matmul(shares.t(), weighted.view());
        sum.diag_mut().zip_mut_with(&weighted.sum_axis(Axis(0)), |d, total| *d += total);
        let sum = (&sum + &sum.t()) * 0.5;
        let eigen = symmetric_eigen(sum.view())?;
        let least = ROUNDING * eigen.values.first().copied().unwrap_or(0.0).max(0.0);
        let inverse = eigen.values.mapv(|value| if value > least { 1.0 / value } else { 0.0 });
        let inverse = matmul((&eigen.vectors * &inverse).view(), eigen.vectors.t());
        Ok(Self { roots: shares.mapv(f64::sqrt), shares, importance, inverse })
    }

    /// `B·x`.
    pub(crate) fn times(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = x * &self.shares;
        for ((mut y, p), &v) in y.outer_iter_mut().zip(self.shares.outer_iter()).zip(self.importance) {
            let total = y.sum();
            y.zip_mut_with(&p, |y, p| *y = v * (*y - p * total));
        }
        y
    }

    /// `S·x`.
    pub(crate) fn root(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = x * &self.roots;
        for ((mut y, p), v) in y.outer_iter_mut().zip(self.shares.outer_iter()).zip(self.importance) {
            let (total, v) = (y.sum(), v.sqrt());
            y.zip_mut_with(&p, |y, p| *y = v * (*y - p * total));
        }
        y
    }

    /// `Sᵀ·x`.
    pub(crate) fn root_transposed(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = x.clone();
        let rows = y.outer_iter_mut().zip(self.shares.outer_iter()).zip(self.roots.outer_iter());
        for (((mut y, p), root), v) in rows.zip(self.importance) {
            let (mean, v) = (y.dot(&p), v.sqrt());
            y.zip_mut_with(&root, |y, root| *y = v * root * (*y - mean));
        }
        y
    }

    /// `1b`: the same scores for all samples.
    fn everywhere(&self, bias: &Array1<f64>) -> Array2<f64> {
        bias.broadcast(self.shares.dim()).map(|b| b.to_owned()).unwrap_or_default()
    }

    /// `B·1b`.
    pub(crate) fn of_bias(&self, bias: &Array1<f64>) -> Array2<f64> {
        self.times(&self.everywhere(bias))
    }

    /// The biases that answer a pull: `(1ᵀB1)⁺·c`.
    pub(crate) fn bias(&self, c: &Array1<f64>) -> Array1<f64> {
        self.inverse.dot(c)
    }

    /// `B̂·x`.
    pub(crate) fn eliminated(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = self.times(x);
        y -= &self.of_bias(&self.bias(&y.sum_axis(Axis(0))));
        y
    }

    /// `Π·x`.
    pub(crate) fn project(&self, x: &mut Array2<f64>) {
        let bias = self.bias(&self.root(x).sum_axis(Axis(0)));
        *x -= &self.root_transposed(&self.everywhere(&bias));
    }

    /// The diagonal of `B`.
    pub(crate) fn diagonal(&self) -> Array2<f64> {
        self.shares.mapv(|p| p * (1.0 - p)) * ArrayView1::from(self.importance).insert_axis(Axis(1))
    }

    /// The diagonal of `SᵀS`.
    pub(crate) fn root_diagonal(&self) -> Array2<f64> {
        let mut diagonal = self.shares.clone();
        for (mut row, v) in diagonal.outer_iter_mut().zip(self.importance) {
            let square: f64 = row.iter().map(|p| p * p).sum();
            row.mapv_inplace(|p| v * p * (1.0 - 2.0 * p + square).max(0.0));
        }
        diagonal
    }
}
