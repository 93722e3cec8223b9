//! Is a decomposition what it claims to be? LAPACK's test ratios, in full or on probes.
//!
//! For a factorisation `A ≈ F` of side `n` and a matrix `Q` with `m` rows whose columns should be orthonormal,
//!
//! ```text
//! residual      = ‖A - F‖ / (√n ε ‖A‖)         orthogonality = ‖QᵀQ - I‖ / (m ε)
//! ```
//!
//! in Frobenius norms. LAPACK divides residuals by `n`; measured residuals grow at most like `√n`, and dividing by more
//! would weaken the check in `f32`. Both are norms of an error `E` that is only ever multiplied by a matrix `P`. For a
//! full check, `P` is the identity, which costs as much as the decomposition. Otherwise it is a few columns of random
//! signs, for which `E‖E P‖² = ‖E‖²` exactly: the estimate costs `O(n²)` and is seldom off by a factor of two. A wrong
//! vector, a lost sign or a NaN is off by `1/ε`.

use crate::simd::dispatch;
use crate::{LinalgError, Result, Scalar, matmul, random::Signs};
use ndarray::{Array2, ArrayView1, ArrayView2};

/// The largest acceptable ratio. LAPACK's own tests fail above 30; sound results here stay below 11, except residuals
/// of QR (see `require_after_qr` in the source).
pub const LIMIT: f64 = 30.0;

/// The number of probes: enough for the estimate to be within a factor of two almost always.
const PROBES: usize = 4;

/// How thoroughly to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every entry.
    Full,
    /// A few random combinations of columns.
    Probes,
}

impl Depth {
    /// [`Depth::Full`] where debug assertions are on, [`Depth::Probes`] in release builds.
    pub fn of_this_build() -> Self {
        if cfg!(debug_assertions) { Self::Full } else { Self::Probes }
    }

    fn matrix<T: Scalar>(self, n: usize) -> Array2<T> {
        if self == Self::Full || n <= PROBES {
            return Array2::eye(n);
        }
        let size = T::narrow(1.0 / (PROBES as f64).sqrt());
        let mut signs = Signs::new(n as u64);
        Array2::from_shape_simple_fn((n, PROBES), || signs.next_of(size))
    }
}

/// The Frobenius norm, with `f64` sums.
pub fn frobenius<T: Scalar>(a: ArrayView2<'_, T>) -> f64 {
    const LANES: usize = 8;
    let Some(values) = a.as_slice_memory_order() else {
        return a.iter().map(|v| v.wide() * v.wide()).sum::<f64>().sqrt();
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    dispatch(
        #[inline(always)]
        || {
            for chunk in chunks {
                sums.iter_mut().zip(chunk).for_each(|(sum, v)| *sum += v.wide() * v.wide());
            }
        },
    );
    rest.iter().map(|v| v.wide() * v.wide()).chain(sums).sum::<f64>().sqrt()
}

/// The test ratio of `QᵀQ = I`.
///
/// ```
/// use mercer_linalg::verify::{Depth, orthogonality};
/// let q = ndarray::array![[0.6, -0.8], [0.8, 0.6]];
/// assert!(orthogonality(q.view(), Depth::Full) < 1.0);
/// assert!(orthogonality((&q * 1.001).view(), Depth::Full) > 1e9);
/// ```
pub fn orthogonality<T: Scalar>(q: ArrayView2<'_, T>, depth: Depth) -> f64 {
    let probes = depth.matrix::<T>(q.ncols());
    let error = matmul(q.t(), matmul(q, probes.view()).view()) - probes;
    // As LAPACK's `dort01`: products of columns are sums over rows, and round as many times.
    frobenius(error.view()) / (q.nrows().max(1) as f64 * T::epsilon().wide())
}

/// The test ratio of `A = F₁·F₂·…`, with the factors given as a function that multiplies a matrix by all of them.
pub fn residual<T: Scalar>(a: ArrayView2<'_, T>, factors: impl Fn(Array2<T>) -> Array2<T>, depth: Depth) -> f64 {
    Image::new(a, depth).residual(T::zero(), factors)
}

/// What is kept from a matrix `A` that a decomposition overwrites: `A·P`, `P` and `√n ε ‖A‖`.
pub(crate) struct Image<T> {
    image: Array2<T>,
    probes: Array2<T>,
    scale: f64,
}

impl<T: Scalar> Image<T> {
    pub(crate) fn new(a: ArrayView2<'_, T>, depth: Depth) -> Self {
        let probes = depth.matrix::<T>(a.ncols());
        Self { image: matmul(a, probes.view()), probes, scale: residual_scale(a) }
    }

    /// The test ratio of `A + shift·I = F₁·F₂·…`.
    pub(crate) fn residual(&self, shift: T, factors: impl Fn(Array2<T>) -> Array2<T>) -> f64 {
        let mut difference = &self.image - &factors(self.probes.clone());
        if shift != T::zero() {
            difference.zip_mut_with(&self.probes, |d, &p| *d += shift * p);
        }
        let error = frobenius(difference.view());
        // A zero matrix must be reproduced exactly. NaN stays NaN, which exceeds every limit.
        if error == 0.0 { 0.0 } else { error / self.scale }
    }
}

/// The test ratio of `A·U = U·diag(λ)`.
pub fn eigen_residual<T: Scalar>(
    a: ArrayView2<'_, T>,
    values: ArrayView1<'_, T>,
    vectors: ArrayView2<'_, T>,
    depth: Depth,
) -> f64 {
    let probes = depth.matrix::<T>(vectors.ncols());
    let image = matmul(a, matmul(vectors, probes.view()).view());
    let error = frobenius((image - matmul(vectors, scale_rows(values, probes).view())).view());
    if error == 0.0 { 0.0 } else { error / residual_scale(a) }
}

/// `diag(d)·P`.
pub(crate) fn scale_rows<T: Scalar>(d: ArrayView1<'_, T>, mut p: Array2<T>) -> Array2<T> {
    p.outer_iter_mut().zip(d).for_each(|(mut row, &factor)| row.mapv_inplace(|v| v * factor));
    p
}

/// `√n ε ‖A‖`.
fn residual_scale<T: Scalar>(a: ArrayView2<'_, T>) -> f64 {
    (a.nrows().max(a.ncols()) as f64).sqrt() * T::epsilon().wide() * frobenius(a)
}

/// Returns an error unless the ratio is within the limit.
pub(crate) fn require(routine: &'static str, check: &'static str, ratio: f64) -> Result<()> {
    if ratio <= LIMIT { Ok(()) } else { Err(LinalgError::CheckFailed { routine, check, ratio, limit: LIMIT }) }
}

/// As [`require`] for a residual, with `n` in place of `√n`: faer's QR, which its SVD of tall matrices starts with,
/// treats a column as dependent once less than `16 n ε` of it is left, and drops the rest by design.
pub(crate) fn require_after_qr(routine: &'static str, (rows, columns): (usize, usize), ratio: f64) -> Result<()> {
    require(routine, "residual", ratio / (rows.max(columns) as f64).sqrt())
}

/// Returns an error unless the values descend. NaN counts as an error.
pub(crate) fn require_descending<T: Scalar>(routine: &'static str, values: ArrayView1<'_, T>) -> Result<()> {
    let descending =
        values.iter().zip(values.iter().skip(1)).all(|(a, b)| a >= b) && values.iter().all(|v| v.is_finite());
    require(routine, "order", if descending { 0.0 } else { f64::INFINITY })
}
