//! Solves `(A + σI)·X = B` using only products with `A`: conjugate gradients, for several right-hand sides at once,
//! with an optional preconditioner `P ≈ (A + σI)⁻¹`.
//!
//! Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. Nat. Bur. Standards 49,
//! 1952. Rounding makes the residual of the recurrence drift away from `b - (A + σI)·x`, so we deviate: when it is
//!       small enough, the true residual is computed, and if that is not small enough, the iteration restarts from it.
//!       Inner products are summed in `f64`. Columns iterate side by side and share their products; a solved column
//!       drops out.

use crate::{LinalgError, LinearOperator, Result, Scalar, input};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

const ROUTINE: &str = "conjugate gradient";

/// A solution, and what it cost.
#[derive(Clone, Debug)]
pub struct Solution<T> {
    /// `x`.
    pub solution: Array1<T>,
    /// How often the operator was applied.
    pub iterations: usize,
    /// `‖b - (A + σI)·x‖ / ‖b‖`, computed with an extra product.
    pub residual: f64,
}

/// Solutions for several right-hand sides, and what they cost.
#[derive(Clone, Debug)]
pub struct BlockSolution<T> {
    /// `X`, a column per right-hand side.
    pub solution: Array2<T>,
    /// How often the operator was applied to a block of columns.
    pub iterations: usize,
    /// The largest of `‖b - (A + σI)·x‖ / ‖b‖`, computed with extra products.
    pub residual: f64,
}

/// An approximate inverse of the shifted operator, applied to blocks of columns.
pub type Preconditioner<'a, T> = &'a dyn Fn(ArrayView2<'_, T>) -> Array2<T>;

/// How to iterate.
///
/// ```
/// use mercer_linalg::ConjugateGradient;
/// use ndarray::array;
/// let a = array![[3.0, 1.0], [1.0, 2.0]];
/// let method = ConjugateGradient { shift: 1.0, tolerance: 1e-12, max_iterations: 10 };
/// let found = method.solve(&a, array![[6.0, 5.0], [4.0, 4.0]].view(), None)?;
/// assert!((found.solution.column(1)[0] - 1.0f64).abs() < 1e-10);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConjugateGradient<T> {
    /// `σ`.
    pub shift: T,
    /// The goal: `‖b - (A + σI)·x‖ ≤ tolerance·‖b‖`. Values below `8ε` are raised to `8ε`.
    pub tolerance: f64,
    /// The maximum number of products.
    pub max_iterations: usize,
}

/// Solves `(A + shift·I)·x = rhs` for a symmetric operator that is positive definite with the shift, until
/// `‖rhs - (A + shift·I)·x‖ ≤ tolerance·‖rhs‖`. A tolerance below `8ε` is raised to `8ε`.
///
/// ```
/// use ndarray::array;
/// let a = array![[3.0, 1.0], [1.0, 2.0]];
/// let found = mercer_linalg::conjugate_gradient(&a, array![6.0, 4.0].view(), 1.0, 1e-12, 10)?;
/// assert!((found.solution - array![14.0 / 11.0, 10.0 / 11.0]).iter().all(|d: &f64| d.abs() < 1e-10));
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// As [`ConjugateGradient::solve`].
pub fn conjugate_gradient<T: Scalar>(
    operator: &impl LinearOperator<T>,
    rhs: ArrayView1<'_, T>,
    shift: T,
    tolerance: f64,
    max_iterations: usize,
) -> Result<Solution<T>> {
    let method = ConjugateGradient { shift, tolerance, max_iterations };
    let found = method.solve(operator, rhs.insert_axis(Axis(1)), None)?;
    let solution = found.solution.remove_axis(Axis(1));
    Ok(Solution { solution, iterations: found.iterations, residual: found.residual })
}

/// The state of one right-hand side.
struct Column<T> {
    /// Its index.
    at: usize,
    goal: f64,
    norm: f64,
    solution: Array1<T>,
    residual: Array1<T>,
    direction: Array1<T>,
    /// `rᵀP r`.
    square: f64,
    /// Whether the residual is the true one, not that of the recurrence.
    exact: bool,
}

impl<T: Scalar> Column<T> {
    fn is_small(&self) -> bool {
        dot(self.residual.view(), self.residual.view()).sqrt() <= self.goal
    }

    fn relative(&self) -> f64 {
        let residual = dot(self.residual.view(), self.residual.view()).sqrt();
        if residual == 0.0 { 0.0 } else { residual / self.norm }
    }

    /// Restarts from the residual.
    fn restart(&mut self, preconditioned: ArrayView1<'_, T>) {
        self.direction.assign(&preconditioned);
        self.square = dot(self.residual.view(), preconditioned);
        self.exact = true;
    }
}

impl<T: Scalar> ConjugateGradient<T> {
    /// Solves `(A + shift·I)·X = rhs` for a symmetric operator that is positive definite with the shift.
    ///
    /// # Errors
    /// [`LinalgError::ShapeMismatch`] for a right-hand side of another length, [`LinalgError::NotFinite`] for numbers that are not
    /// finite, [`LinalgError::Indefinite`] if a direction shows that the shifted operator or the preconditioner is not
    /// positive definite, and [`LinalgError::NotSolved`] after `max_iterations` products.
    pub fn solve(
        &self,
        operator: &dyn LinearOperator<T>,
        rhs: ArrayView2<'_, T>,
        preconditioner: Option<Preconditioner<'_, T>>,
    ) -> Result<BlockSolution<T>> {
        T::conjugate_gradient(self, operator, rhs, preconditioner)
    }

    pub(crate) fn iterate(
        &self,
        operator: &dyn LinearOperator<T>,
        rhs: ArrayView2<'_, T>,
        preconditioner: Option<Preconditioner<'_, T>>,
    ) -> Result<BlockSolution<T>> {
        let n = operator.dim();
        input::check_size(ROUTINE, "the length of the right-hand side", n, rhs.nrows())?;
        input::check_finite(ROUTINE, rhs)?;
        input::check_finite_vector("conjugate gradient shift", ArrayView1::from(&[self.shift]), 0)?;
        let tolerance = self.tolerance.max(8.0 * T::epsilon().wide());
        let precondition = |columns: &[&Array1<T>]| match preconditioner {
            Some(apply) => apply(stack(n, columns).view()),
            None => stack(n, columns),
        };
        let apply = |iteration: usize, columns: &[&Array1<T>]| -> Result<Array2<T>> {
            let x = stack(n, columns);
            let mut y = Array2::zeros(x.dim());
            operator.apply_block(x.view(), y.view_mut());
            for column in y.columns() {
                input::check_finite_vector("conjugate gradient operator", column, iteration)?;
            }
            y.zip_mut_with(&x, |y, &x| *y += self.shift * x);
            Ok(y)
        };
        let mut solution = Array2::zeros(rhs.dim());
        let mut worst = 0_f64;
        let mut active: Vec<Column<T>> = Vec::new();
        for (at, b) in rhs.columns().into_iter().enumerate() {
            let norm = dot(b, b).sqrt();
            let (zeros, residual) = (Array1::zeros(n), b.to_owned());
            let (goal, direction) = (tolerance * norm, residual.clone());
            active.push(Column { at, goal, norm, solution: zeros, residual, direction, square: 0.0, exact: true });
        }
        let first = precondition(&active.iter().map(|column| &column.residual).collect::<Vec<_>>());
        active.iter_mut().zip(first.columns()).for_each(|(column, p)| column.restart(p));
        for iteration in 0..=self.max_iterations {
            active.retain(|column| {
                let done = column.exact && column.is_small();
                if done {
                    worst = worst.max(column.relative());
                    solution.column_mut(column.at).assign(&column.solution);
                }
                !done
            });
            if active.is_empty() {
                return Ok(BlockSolution { solution, iterations: iteration, residual: worst });
            }
            if iteration == self.max_iterations {
                break;
            }
            // Columns that appear solved are checked with the true residual; the others take a step. Both need one
            // product.
            let judged: Vec<bool> = active.iter().map(Column::is_small).collect();
            let given: Vec<&Array1<T>> = active
                .iter()
                .zip(&judged)
                .map(|(c, &judged)| if judged { &c.solution } else { &c.direction })
                .collect();
            let images = apply(iteration, &given)?;
            for ((column, image), &judged) in active.iter_mut().zip(images.columns()).zip(&judged) {
                if judged {
                    column.residual = &rhs.column(column.at) - &image;
                    continue;
                }
                let curvature = dot(column.direction.view(), image);
                if curvature <= 0.0 || column.square < 0.0 {
                    return Err(LinalgError::Indefinite {
                        routine: ROUTINE,
                        iteration,
                        curvature: curvature.min(column.square),
                    });
                }
                let step = T::narrow(column.square / curvature);
                column.solution.zip_mut_with(&column.direction, |x, &d| *x += step * d);
                column.residual.zip_mut_with(&image, |r, &y| *r -= step * y);
            }
            let next = precondition(&active.iter().map(|column| &column.residual).collect::<Vec<_>>());
            for ((column, p), judged) in active.iter_mut().zip(next.columns()).zip(judged) {
                if judged {
                    column.restart(p);
                    continue;
                }
                let square = dot(column.residual.view(), p);
                let carry = T::narrow(square / column.square);
                column.direction.zip_mut_with(&p, |d, &p| *d = p + carry * *d);
                (column.square, column.exact) = (square, false);
            }
        }
        let residual = active.iter().map(Column::relative).fold(worst, f64::max);
        let (iterations, tolerance) = (self.max_iterations, self.tolerance);
        Err(LinalgError::NotSolved { routine: ROUTINE, iterations, residual, tolerance })
    }
}

fn stack<T: Scalar>(n: usize, columns: &[&Array1<T>]) -> Array2<T> {
    let mut block = Array2::zeros((n, columns.len()));
    block.columns_mut().into_iter().zip(columns).for_each(|(mut to, from)| to.assign(from));
    block
}

fn dot<T: Scalar>(x: ArrayView1<'_, T>, y: ArrayView1<'_, T>) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.wide() * y.wide()).sum()
}
