//! The kernel between the samples of a batch: from a matrix, from features, or computed on demand.

mod features;
mod matrices;
mod per_batch;

pub use features::FeatureRows;
pub use matrices::Matrices;
pub use per_batch::PerBatch;

use crate::error::Result;
use mercer_data::Fingerprint;
use mercer_kernel::Real;
use mercer_linalg::{Scalar, gemm};
use ndarray::Array2;
use serde_json::Value;
use std::borrow::Cow;

/// Gives the kernel between some samples of a set.
///
/// Kernels may be matrix-valued ([`per_sample`](Self::per_sample) rows per sample), and there may be several
/// ([`n_kernels`](Self::n_kernels)), one per output of a network.
pub trait Coupling<T: Real>: Send {
    /// The number of samples.
    fn n_samples(&self) -> usize;

    /// Rows of the kernel matrix per sample.
    fn per_sample(&self) -> usize {
        1
    }

    /// The number of kernels: 1, or one per output.
    fn n_kernels(&self) -> usize {
        1
    }

    /// The kernel between the samples `rows` and `columns`.
    fn between(&mut self, kernel: usize, rows: &[usize], columns: &[usize]) -> Result<Between<'_, T>>;

    /// The mean of `κ(x, x)` over all rows, or over some of them if that would be costly.
    fn mean_diagonal(&mut self, kernel: usize) -> Result<f64>;

    /// The identity: two couplings with the same identity give the same numbers.
    fn identity(&self) -> Result<Value>;
}

/// A part of a kernel's matrix.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a, T> {
    /// Rows of the part.
    pub rows: usize,
    /// Columns of it.
    pub columns: usize,
    /// Its numbers.
    pub form: CouplingForm<'a, T>,
}

/// The form of a part of a matrix. Everything is row-major.
#[derive(Clone, Copy, Debug)]
pub enum CouplingForm<'a, T> {
    /// Its summands, one after the other.
    Entries(&'a [T]),
    /// The features of its rows and columns. Its entries are their products.
    Features {
        /// Of the rows.
        left: &'a [T],
        /// Of the columns.
        right: &'a [T],
        /// Features of a row.
        width: usize,
    },
}

impl<T: Real> Between<'_, T> {
    /// Writes its product with `V`, which has `width` columns.
    pub fn product(&self, v: &[T], width: usize, out: &mut [T]) {
        self.times(v, width, out, Cow::Borrowed);
    }

    /// The same with sums in double precision. The finish divides by small variances, which amplifies the rounding of
    /// products, but not that of the kernel itself.
    pub fn product_wide(&self, v: &[f64], width: usize, out: &mut [f64]) {
        self.times(v, width, out, |numbers| numbers.iter().map(|x| x.wide()).collect());
    }

    fn times<'a, U: Scalar>(&'a self, v: &[U], width: usize, out: &mut [U], numbers: impl Fn(&'a [T]) -> Cow<'a, [U]>) {
        let (n, m) = (self.rows, self.columns);
        match self.form {
            CouplingForm::Entries(entries) => {
                for (part, entries) in entries.chunks_exact((n * m).max(1)).enumerate() {
                    gemm([n, width, m], (&numbers(entries), m, 1), (v, width, 1), part > 0, out);
                }
            }
            CouplingForm::Features { left, right, width: features } => {
                let mut small = vec![U::zero(); features * width];
                gemm([features, width, m], (&numbers(right), 1, features), (v, width, 1), false, &mut small);
                gemm([n, width, features], (&numbers(left), features, 1), (&small, width, 1), false, out);
            }
        }
    }
}

/// A digest of the numbers of some arrays.
fn digest<T: Real>(arrays: &[Array2<T>]) -> String {
    let mut digest = Fingerprint::new();
    let mut bytes = Vec::new();
    for array in arrays {
        array.shape().iter().for_each(|&size| digest.update_count(size));
        for row in array.rows() {
            bytes.clear();
            row.iter().for_each(|x| bytes.extend_from_slice(&x.wide().to_le_bytes()));
            digest.update(&bytes);
        }
    }
    digest.finish()
}
