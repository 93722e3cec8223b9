//! Solutions of `(A + σI)·x = b` through products with `A` alone: conjugate gradients.
//!
//! Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. Nat. Bur. Standards 49, 1952.
//! The residual of the recurrence drifts away from `b - (A + σI)·x` by rounding, so we deviate: when it is small enough the
//! true one is computed, and where that is not, the iteration starts again from it. Inner products are summed in `f64`.

use crate::{Error, LinearOperator, Result, Scalar, input};
use ndarray::{Array1, ArrayView1};

const ROUTINE: &str = "conjugate gradient";

/// A solution, and what it cost.
#[derive(Clone, Debug)]
pub struct Solution<T> {
    /// `x`.
    pub solution: Array1<T>,
    /// How often the operator was applied.
    pub iterations: usize,
    /// `‖b - (A + σI)·x‖ / ‖b‖`, from a product made for the purpose.
    pub residual: f64,
}

/// Solves `(A + shift·I)·x = rhs` for a symmetric operator that is positive definite with the shift, until
/// `‖rhs - (A + shift·I)·x‖ ≤ tolerance·‖rhs‖`. A tolerance below `8ε` is taken as that.
///
/// ```
/// use ndarray::array;
/// let a = array![[3.0, 1.0], [1.0, 2.0]];
/// let found = mercer_linalg::conjugate_gradient(&a, array![6.0, 4.0].view(), 1.0, 1e-12, 10)?;
/// assert!((found.solution - array![14.0 / 11.0, 10.0 / 11.0]).iter().all(|d: &f64| d.abs() < 1e-10));
/// # Ok::<(), mercer_linalg::Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`] for a right-hand side of another length, [`Error::NotFinite`] for numbers that are not finite,
/// [`Error::Indefinite`] if a direction shows that the shifted operator is not positive definite, and [`Error::NotSolved`]
/// after `max_iterations` products.
pub fn conjugate_gradient<T: Scalar>(
    operator: &impl LinearOperator<T>,
    rhs: ArrayView1<'_, T>,
    shift: T,
    tolerance: f64,
    max_iterations: usize,
) -> Result<Solution<T>> {
    let n = operator.dim();
    input::check_size(ROUTINE, "the length of the right-hand side", n, rhs.len())?;
    input::check_finite_vector(ROUTINE, rhs, 0)?;
    input::check_finite_vector("conjugate gradient shift", ArrayView1::from(&[shift]), 0)?;
    let goal = tolerance.max(8.0 * T::epsilon().wide()) * dot(rhs, rhs).sqrt();
    let relative = |norm: f64| if norm == 0.0 { 0.0 } else { norm / dot(rhs, rhs).sqrt() };
    let mut applications = 0;
    let mut apply = |x: &Array1<T>| -> Result<Array1<T>> {
        let mut y = Array1::zeros(n);
        operator.apply(x.view(), y.view_mut());
        input::check_finite_vector("conjugate gradient operator", y.view(), applications)?;
        applications += 1;
        y.zip_mut_with(x, |y, &x| *y += shift * x);
        Ok(y)
    };
    let mut solution: Array1<T> = Array1::zeros(n);
    let mut residual = rhs.to_owned();
    let mut direction = residual.clone();
    let mut square = dot(residual.view(), residual.view());
    // The residual is the true one, not the recurrence's.
    let mut exact = true;
    for iteration in 0..=max_iterations {
        if square.sqrt() <= goal {
            if exact {
                return Ok(Solution { solution, iterations: iteration, residual: relative(square.sqrt()) });
            }
            if iteration == max_iterations {
                break;
            }
            residual = &rhs - &apply(&solution)?;
            direction.assign(&residual);
            (square, exact) = (dot(residual.view(), residual.view()), true);
            continue;
        }
        if iteration == max_iterations {
            break;
        }
        let image = apply(&direction)?;
        let curvature = dot(direction.view(), image.view());
        if curvature <= 0.0 {
            return Err(Error::Indefinite { routine: ROUTINE, iteration, curvature });
        }
        let step = T::of(square / curvature);
        solution.zip_mut_with(&direction, |x, &d| *x += step * d);
        residual.zip_mut_with(&image, |r, &y| *r -= step * y);
        let next = dot(residual.view(), residual.view());
        let carry = T::of(next / square);
        direction.zip_mut_with(&residual, |d, &r| *d = r + carry * *d);
        (square, exact) = (next, false);
    }
    Err(Error::NotSolved { routine: ROUTINE, iterations: max_iterations, residual: relative(square.sqrt()), tolerance })
}

fn dot<T: Scalar>(x: ArrayView1<'_, T>, y: ArrayView1<'_, T>) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.wide() * y.wide()).sum()
}
