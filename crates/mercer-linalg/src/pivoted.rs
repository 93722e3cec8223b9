//! Low-rank factors of positive semidefinite matrices from a few of their columns, and the inverse they approximate.
//!
//! ```text
//! A ≈ F·Fᵀ,    (F·Fᵀ + σI)⁻¹ = (I − F (FᵀF + σI)⁻¹ Fᵀ) / σ
//! ```
//!
//! Pivots are drawn with a probability proportional to the residual diagonal (Chen, Epperly, Tropp and Webber 2022,
//! arXiv 2207.06503, algorithm 2.1); as a preconditioner: Díaz, Epperly, Frangella, Tropp and Webber 2023, arXiv
//! 2304.12465.

use crate::{Cholesky, Result, Scalar, cholesky, matmul, matmul_into, syrk};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};

/// A residual diagonal entry below this fraction is rounding.
const NOTHING_LEFT: f64 = 64.0;

/// `A ≈ factor·factorᵀ`.
#[derive(Clone, Debug)]
pub struct PivotedCholesky<T> {
    /// `F`: a row per row of `A`, a column per pivot.
    pub factor: Array2<T>,
    /// The rows that were drawn, in this order.
    pub pivots: Vec<usize>,
    /// The residual trace, relative to the trace of `A`.
    pub left: f64,
    /// The smallest residual diagonal entry, relative to the largest entry. If it is negative by more than rounding,
    /// `A` is not positive semidefinite, and the factor approximates nothing.
    pub least: f64,
}

impl<T: Scalar> PivotedCholesky<T> {
    /// Factorises a matrix known by its diagonal and its columns, to at most this rank. `uniform` gives random numbers
    /// in `[0, 1)`. Stops early when the residual vanishes.
    ///
    /// ```
    /// use mercer_linalg::PivotedCholesky;
    /// let a = ndarray::array![[4.0, 2.0, 6.0], [2.0, 1.0, 3.0], [6.0, 3.0, 9.0]];
    /// let found = PivotedCholesky::new(a.diag(), |row| Ok(a.column(row).to_owned()), 3, || 0.5)?;
    /// assert_eq!(found.pivots.len(), 1);
    /// assert!((found.factor.dot(&found.factor.t()) - &a).iter().all(|d: &f64| d.abs() < 1e-12));
    /// # Ok::<(), mercer_linalg::LinalgError>(())
    /// ```
    ///
    /// # Errors
    /// Those of `column`.
    pub fn new<E>(
        diagonal: ArrayView1<'_, T>,
        mut column: impl FnMut(usize) -> std::result::Result<Array1<T>, E>,
        rank: usize,
        mut uniform: impl FnMut() -> f64,
    ) -> std::result::Result<Self, E> {
        let n = diagonal.len();
        let rank = rank.min(n);
        let mut least = diagonal.iter().fold(0.0, |least: f64, d| least.min(d.wide()));
        let mut left: Vec<f64> = diagonal.iter().map(|d| d.wide().max(0.0)).collect();
        let (largest, whole) = (left.iter().fold(0.0, |a: f64, &b| a.max(b)), left.iter().sum::<f64>());
        let floor = NOTHING_LEFT * T::epsilon().wide() * largest;
        // One row per pivot while it grows, so that every product runs in memory order.
        let mut factor = Array2::<T>::zeros((rank, n));
        let mut pivots = Vec::new();
        while pivots.len() < rank {
            let Some(pivot) = draw(&left, uniform()) else { break };
            let step = pivots.len();
            let mut fresh = column(pivot)?;
            let (before, mut rest) = factor.view_mut().split_at(ndarray::Axis(0), step);
            let coefficients = before.column(pivot).to_owned().insert_axis(ndarray::Axis(0));
            let target = fresh.view_mut().insert_axis(ndarray::Axis(0));
            matmul_into(-T::one(), coefficients.view(), before.view(), true, target);
            let root = T::narrow(fresh[pivot].wide().max(floor).sqrt());
            fresh.mapv_inplace(|v| v / root);
            for (left, v) in left.iter_mut().zip(&fresh) {
                *left -= v.wide() * v.wide();
                least = least.min(*left);
                if *left <= floor {
                    *left = 0.0;
                }
            }
            left[pivot] = 0.0;
            rest.slice_mut(s![0, ..]).assign(&fresh);
            pivots.push(pivot);
        }
        let factor = factor.slice(s![..pivots.len(), ..]).reversed_axes().to_owned();
        let left = if whole > 0.0 { left.iter().sum::<f64>() / whole } else { 0.0 };
        let least = if least < 0.0 { least / largest } else { 0.0 };
        Ok(Self { factor, pivots, left, least })
    }
}

/// Draws a row with probability proportional to its weight; `None` if all weights are zero.
fn draw(weights: &[f64], uniform: f64) -> Option<usize> {
    let mut remaining = uniform * weights.iter().sum::<f64>();
    let mut last = None;
    for (row, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = Some(row);
        remaining -= weight;
        if remaining < 0.0 {
            break;
        }
    }
    last
}

/// `(F·Fᵀ + σI)⁻¹`, for products.
#[derive(Clone, Debug)]
pub struct LowRankInverse<T> {
    factor: Array2<T>,
    inner: Cholesky<T>,
    shift: T,
}

impl<T: Scalar> LowRankInverse<T> {
    /// From a factor and a positive shift.
    ///
    /// # Errors
    /// As [`cholesky`], of `FᵀF + σI`.
    pub fn new(factor: Array2<T>, shift: T) -> Result<Self> {
        let mut inner = syrk(factor.t());
        inner.diag_mut().mapv_inplace(|v| v + shift);
        Ok(Self { inner: cholesky(inner.view())?, factor, shift })
    }

    /// The product with a block of columns.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub fn apply(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let coordinates = self.inner.solve(matmul(self.factor.t(), x).view())?;
        let mut y = x.to_owned();
        matmul_into(-T::one(), self.factor.view(), coordinates.view(), true, y.view_mut());
        y.mapv_inplace(|v| v / self.shift);
        Ok(y)
    }
}
