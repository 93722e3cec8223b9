//! The thin QR decomposition by Householder reflections.
//!
//! ```text
//! A (m × n) = Q (m × r) · R (r × n),   r = min(m, n),  R upper triangular with R_ii ≥ 0
//! ```
//!
//! The sign convention makes it unique for a matrix of full column rank: `R` is then the transposed Cholesky factor of
//! `AᵀA`.

use crate::matmul::lend_mut;
use crate::verify::{self, Depth};
use crate::{Result, Scalar, input, matmul};
use ndarray::{Array2, ArrayView2, ShapeBuilder, s};

const ROUTINE: &str = "qr";

/// An orthonormal basis and the coordinates in it.
#[derive(Clone, Debug)]
pub struct Qr<T> {
    /// `Q`: orthonormal columns.
    pub q: Array2<T>,
    /// `R`: zero below the diagonal, nonnegative on it.
    pub r: Array2<T>,
}

/// The thin QR decomposition of any matrix.
///
/// ```
/// use ndarray::array;
/// let qr = mercer_linalg::thin_qr(array![[3.0, 1.0], [4.0, 2.0]].view())?;
/// assert!((qr.r[(0, 0)] - 5.0f64).abs() < 1e-14 && qr.r[(1, 0)] == 0.0);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// For values that are not finite, and [`LinalgError::CheckFailed`](crate::LinalgError::CheckFailed) when the result does not
/// reproduce the matrix.
pub fn thin_qr<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Qr<T>> {
    T::thin_qr(a)
}

pub(crate) fn decompose<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Qr<T>> {
    let input::Scaled { matrix, factor } = input::scaled_copy(ROUTINE, a)?;
    let (rows, columns) = matrix.dim();
    let rank = rows.min(columns);
    let mut q = Array2::zeros((rows, rank).f());
    if rank == 0 {
        return Ok(Qr { q, r: Array2::zeros((rank, columns)) });
    }
    q.diag_mut().fill(T::one());
    let mut packed = matrix.clone();
    T::qr_seq(lend_mut(&mut packed.view_mut()), lend_mut(&mut q.view_mut()));
    let mut r = packed.slice(s![..rank, ..]).to_owned();
    for i in 0..rank {
        r.slice_mut(s![i, ..i]).fill(T::zero());
        if r[(i, i)] < T::zero() {
            r.row_mut(i).mapv_inplace(|v| -v);
            q.column_mut(i).mapv_inplace(|v| -v);
        }
    }
    let depth = Depth::of_this_build();
    let product = |p: Array2<T>| matmul(q.view(), matmul(r.view(), p.view()).view());
    verify::require_after_qr(ROUTINE, (rows, columns), verify::residual(matrix.view(), product, depth))?;
    verify::require(ROUTINE, "orthogonality", verify::orthogonality(q.view(), depth))?;
    r.mapv_inplace(|v| v / factor);
    Ok(Qr { q, r })
}
