//! Means of features over the first set, in all permutations, and the squared distance of the two means without bias.
//!
//! ```text
//! S_b = Σ_{i ∈ A_b} φ(xᵢ),  T = Σᵢ φ(xᵢ),  q_b = Σ_{i ∈ A_b} ‖φ(xᵢ)‖²,  Q = Σᵢ ‖φ(xᵢ)‖²
//! MMD²_b = (‖S_b‖² − q_b)/(n(n−1)) + (‖T − S_b‖² − Q + q_b)/(m(m−1)) − 2 S_b·(T − S_b)/(nm)
//! ```
//!
//! This is the unbiased estimate of Gretton et al. 2012, (3), for the kernel `φ(x)·φ(y)`, in `O(N·D)` per permutation: a
//! product of a block of memberships with a block of features. It does not change if a constant is taken from all features.

use super::Members;
use crate::checks::check_rows;
use crate::error::Result;
use mercer_linalg::matmul_into;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Sums of features over the first set of every permutation.
#[derive(Clone, Debug)]
pub struct MeanSums {
    /// A row per permutation.
    pub(super) first: Array2<f64>,
    pub(super) total: Array1<f64>,
    pub(super) first_squares: Array1<f64>,
    pub(super) squares: f64,
    /// Samples of the first set.
    pub(super) counts: Array1<f64>,
    pub(super) n_rows: usize,
}

impl MeanSums {
    /// Without samples.
    pub fn new(width: usize, n_columns: usize) -> Self {
        Self {
            first: Array2::zeros((n_columns, width)),
            total: Array1::zeros(width),
            first_squares: Array1::zeros(n_columns),
            squares: 0.0,
            counts: Array1::zeros(n_columns),
            n_rows: 0,
        }
    }

    /// Adds samples, a row each, with their memberships.
    ///
    /// # Errors
    /// If sizes do not agree.
    pub fn add(&mut self, features: ArrayView2<'_, f64>, members: &Members) -> Result<()> {
        self.add_rows(features, members.matrix.view())
    }

    pub(super) fn add_rows(&mut self, features: ArrayView2<'_, f64>, members: ArrayView2<'_, f64>) -> Result<()> {
        check_rows("the memberships", features.nrows(), members.nrows())?;
        check_rows("the transposed features", self.total.len(), features.ncols())?;
        check_rows("the transposed memberships", self.counts.len(), members.ncols())?;
        let squares: Array1<f64> = features.outer_iter().map(|row| row.dot(&row)).collect();
        matmul_into(1.0, members.t(), features, true, self.first.view_mut());
        for (row, square) in members.outer_iter().zip(&squares) {
            self.first_squares.scaled_add(*square, &row);
            self.counts += &row;
        }
        self.total += &features.sum_axis(Axis(0));
        self.squares += squares.sum();
        self.n_rows += features.nrows();
        Ok(())
    }

    /// The unbiased estimate of the squared distance of the means, for every permutation; zero where a set has fewer than
    /// two samples.
    pub fn mmd(&self) -> Vec<f64> {
        let one = |column: usize| {
            let (n, first) = (self.counts[column], self.first.row(column));
            let (m, rest) = (self.n_rows as f64 - n, &self.total - &first);
            if n < 2.0 || m < 2.0 {
                return 0.0;
            }
            let own = (first.dot(&first) - self.first_squares[column]) / (n * (n - 1.0));
            let other = (rest.dot(&rest) - self.squares + self.first_squares[column]) / (m * (m - 1.0));
            own + other - 2.0 * first.dot(&rest) / (n * m)
        };
        (0..self.counts.len()).map(one).collect()
    }

    /// The mean of the second set minus that of the first, in a permutation; none if one of them is empty.
    pub fn difference(&self, column: usize) -> Option<Array1<f64>> {
        let (n, first) = (self.counts[column], self.first.row(column));
        let m = self.n_rows as f64 - n;
        (n > 0.0 && m > 0.0).then(|| (&self.total - &first) / m - &(&first / n))
    }
}

/// The unbiased estimate of MMD² from a Gram matrix of both sets, for the sets as they are and all permutations: quadratic
/// in the number of samples, and exact for every kernel.
///
/// # Errors
/// For a matrix that is not square with a row per sample, and numbers that are not finite.
pub fn mmd_from_gram(gram: ArrayView2<'_, f64>, permutations: &super::Permutations) -> Result<Vec<f64>> {
    check_rows("the Gram matrix", permutations.n_rows(), gram.nrows())?;
    check_rows("the transposed Gram matrix", permutations.n_rows(), gram.ncols())?;
    mercer_linalg::check_finite("MMD", gram)?;
    let members = permutations.members(0..permutations.n_rows()).matrix;
    let products = mercer_linalg::matmul(gram, members.view());
    let (n, all) = (permutations.n_first() as f64, gram.sum());
    let (m, diagonal) = (permutations.n_rows() as f64 - n, gram.diag());
    let rows = gram.sum_axis(Axis(1));
    let one = |(own, product): (ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>)| {
        let (within, touching, trace) = (own.dot(&product), own.dot(&rows), own.dot(&diagonal));
        let (across, rest) = (touching - within, all - 2.0 * touching + within);
        (within - trace) / (n * (n - 1.0)) + (rest - diagonal.sum() + trace) / (m * (m - 1.0)) - 2.0 * across / (n * m)
    };
    Ok(members.axis_iter(Axis(1)).zip(products.axis_iter(Axis(1))).map(one).collect())
}
