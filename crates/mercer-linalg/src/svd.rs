//! The thin singular value decomposition.
//!
//! ```text
//! A (m × n) = U (m × r) · diag(σ) · Vᵀ (r × n),   r = min(m, n),  σ₁ ≥ σ₂ ≥ … ≥ 0
//! ```

use crate::matmul::{lend, lend_mut};
use crate::verify::{self, Depth, scale_rows};
use crate::{LinalgError, Result, Scalar, input, matmul, order};
use ndarray::{Array1, Array2, ArrayView2, ShapeBuilder};

const ROUTINE: &str = "svd";

/// Singular values, largest first, and their vectors.
#[derive(Clone, Debug)]
pub struct Svd<T> {
    /// `U`: orthonormal columns.
    pub left: Array2<T>,
    /// `σ`, descending.
    pub values: Array1<T>,
    /// `V`: orthonormal columns.
    pub right: Array2<T>,
}

/// The thin singular value decomposition of any matrix.
///
/// ```
/// use ndarray::array;
/// let svd = mercer_linalg::thin_svd(array![[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]].view())?;
/// assert!((svd.values[0] - 3.0f64).abs() < 1e-14 && (svd.values[1] - 2.0).abs() < 1e-14);
/// assert_eq!((svd.left.dim(), svd.right.dim()), ((3, 2), (2, 2)));
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// For values that are not finite; [`LinalgError::NotConverged`], or [`LinalgError::CheckFailed`] when the result does not
/// reproduce the matrix.
pub fn thin_svd<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Svd<T>> {
    T::thin_svd(a)
}

pub(crate) fn decompose<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Svd<T>> {
    let input::Scaled { matrix, factor } = input::scaled_copy(ROUTINE, a)?;
    let (rows, columns) = matrix.dim();
    let rank = rows.min(columns);
    let mut svd = Svd {
        left: Array2::zeros((rows, rank).f()),
        values: Array1::zeros(rank),
        right: Array2::zeros((columns, rank).f()),
    };
    if rank == 0 {
        return Ok(svd);
    }
    let slots = svd.values.as_slice_mut().expect("a fresh array is contiguous");
    let (mut left, mut right) = (svd.left.view_mut(), svd.right.view_mut());
    if !T::svd_seq(lend(&matrix.view()), slots, lend_mut(&mut left), lend_mut(&mut right)) {
        return Err(LinalgError::NotConverged { routine: ROUTINE, converged: 0, wanted: rank });
    }
    let order = order::descending(&svd.values);
    svd.values = order::values(&svd.values, &order);
    svd.left = order::columns(&svd.left, &order);
    svd.right = order::columns(&svd.right, &order);
    check(matrix.view(), &svd)?;
    svd.values.mapv_inplace(|v| v / factor);
    Ok(svd)
}

fn check<T: Scalar>(a: ArrayView2<'_, T>, svd: &Svd<T>) -> Result<()> {
    let depth = Depth::of_this_build();
    verify::require_descending(ROUTINE, svd.values.view())?;
    let negative = svd.values.last().is_some_and(|v| *v < T::zero());
    verify::require(ROUTINE, "order", if negative { f64::INFINITY } else { 0.0 })?;
    let product = |p: Array2<T>| {
        let coordinates = scale_rows(svd.values.view(), matmul(svd.right.t(), p.view()));
        matmul(svd.left.view(), coordinates.view())
    };
    verify::require_after_qr(ROUTINE, a.dim(), verify::residual(a, product, depth))?;
    verify::require(ROUTINE, "orthogonality", verify::orthogonality(svd.left.view(), depth))?;
    verify::require(ROUTINE, "orthogonality", verify::orthogonality(svd.right.view(), depth))
}
