//! Uses of a Cholesky factor: solves and the determinant.

use super::Cholesky;
use super::triangular::{Triangle, column_major, solve_in_place};
use crate::{Result, Scalar, check_finite, input};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

const ROUTINE: &str = "cholesky solve";

impl<T: Scalar> Cholesky<T> {
    /// The number of rows.
    pub fn dim(&self) -> usize {
        self.lower.nrows()
    }

    /// The `X` with `(A + jitter·I)·X = b`.
    ///
    /// ```
    /// use ndarray::array;
    /// let factor = mercer_linalg::cholesky(array![[4.0, 2.0], [2.0, 5.0]].view())?;
    /// assert_eq!(factor.solve(array![[8.0], [12.0]].view())?, array![[1.0], [2.0]]);
    /// # Ok::<(), mercer_linalg::LinalgError>(())
    /// ```
    ///
    /// # Errors
    /// For a mismatched number of rows, and for values that are not finite, including in the result.
    pub fn solve(&self, b: ArrayView2<'_, T>) -> Result<Array2<T>> {
        T::substitute(self, b, [true, true])
    }

    /// The `x` with `(A + jitter·I)·x = b`.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub fn solve_vector(&self, b: ArrayView1<'_, T>) -> Result<Array1<T>> {
        Ok(self.solve(b.insert_axis(Axis(1)))?.remove_axis(Axis(1)))
    }

    /// The `X` with `L·X = b`: whitening, and with the columns of `b` as kernel rows the explained variance.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub fn solve_lower(&self, b: ArrayView2<'_, T>) -> Result<Array2<T>> {
        T::substitute(self, b, [true, false])
    }

    /// The `X` with `Lᵀ·X = b`.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub fn solve_upper(&self, b: ArrayView2<'_, T>) -> Result<Array2<T>> {
        T::substitute(self, b, [false, true])
    }

    /// `ln det(A + jitter·I) = 2 Σ ln L_ii`, summed in `f64`.
    pub fn log_det(&self) -> f64 {
        2.0 * self.lower.diag().iter().map(|v| v.wide().ln()).sum::<f64>()
    }

    pub(crate) fn substitute(&self, b: ArrayView2<'_, T>, [forward, backward]: [bool; 2]) -> Result<Array2<T>> {
        input::check_size(ROUTINE, "the number of right-hand rows", self.dim(), b.nrows())?;
        check_finite(ROUTINE, b)?;
        let mut x = column_major(b);
        if forward {
            solve_in_place(Triangle::Lower, self.lower.view(), &mut x);
        }
        if backward {
            solve_in_place(Triangle::Upper, self.lower.t(), &mut x);
        }
        check_finite("cholesky solve, result", x.view())?;
        Ok(x)
    }
}
