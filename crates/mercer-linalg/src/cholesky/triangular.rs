//! `T·X = B` for a triangular matrix `T`.

use crate::matmul::{lend, lend_mut};
use crate::{LinalgError, Result, Scalar, check_finite, input};
use ndarray::{Array2, ArrayView2, ShapeBuilder};

const ROUTINE: &str = "triangular solve";

/// Which half of a matrix is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// The `X` with `T·X = b`, where only the given triangle of `t` is read.
///
/// ```
/// use mercer_linalg::{Triangle, solve_triangular};
/// use ndarray::array;
/// let x = solve_triangular(Triangle::Lower, array![[2.0, 9.0], [1.0, 4.0]].view(), array![[2.0], [5.0]].view())?;
/// assert_eq!(x, array![[1.0], [1.0]]);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// For mismatched shapes, values that are not finite (including in the result, when it overflows), and
/// [`LinalgError::Singular`] for a zero on the diagonal.
pub fn solve_triangular<T: Scalar>(
    triangle: Triangle,
    t: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
) -> Result<Array2<T>> {
    input::check_size(ROUTINE, "the number of columns", t.nrows(), t.ncols())?;
    input::check_size(ROUTINE, "the number of right-hand rows", t.nrows(), b.nrows())?;
    check_finite(ROUTINE, t)?;
    check_finite(ROUTINE, b)?;
    if let Some(pivot) = t.diag().iter().position(|v| *v == T::zero()) {
        return Err(LinalgError::Singular { pivot });
    }
    let mut x = column_major(b);
    solve_in_place(triangle, t, &mut x);
    check_finite("triangular solve, result", x.view())?;
    Ok(x)
}

/// A copy in the layout faer prefers.
pub(super) fn column_major<T: Scalar>(b: ArrayView2<'_, T>) -> Array2<T> {
    let mut x = Array2::zeros(b.dim().f());
    x.assign(&b);
    x
}

/// The solve itself, without checks.
pub(super) fn solve_in_place<T: Scalar>(triangle: Triangle, t: ArrayView2<'_, T>, x: &mut Array2<T>) {
    if x.is_empty() {
        return;
    }
    let mut view = x.view_mut();
    match triangle {
        Triangle::Lower => T::solve_lower_seq(lend(&t), lend_mut(&mut view)),
        Triangle::Upper => T::solve_upper_seq(lend(&t), lend_mut(&mut view)),
    }
}
