//! A symmetric matrix known only by its products.

use crate::{Scalar, matmul_into};
use mercer_run::Context;
use ndarray::{ArrayBase, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, Data, Ix2};

/// A symmetric linear map: a matrix, tiles on disk, or a product of Jacobians.
///
/// A map that can fail should remember why, and fill `y` with NaN. The caller then stops with
/// [`LinalgError::NotFinite`](crate::LinalgError::NotFinite).
///
/// ```
/// use mercer_linalg::{Lanczos, LinearOperator};
/// use ndarray::{ArrayView1, ArrayViewMut1};
///
/// /// diag(1, 2, …, n)
/// struct Ramp(usize);
///
/// impl LinearOperator<f64> for Ramp {
///     fn dim(&self) -> usize {
///         self.0
///     }
///     fn apply(&self, x: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
///         y.iter_mut().zip(x).enumerate().for_each(|(i, (y, x))| *y = (i + 1) as f64 * x);
///     }
/// }
///
/// let top = Lanczos::new(2).run(&Ramp(100))?;
/// assert!((top.values[0] - 100.0).abs() < 1e-8 && (top.values[1] - 99.0).abs() < 1e-8);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
pub trait LinearOperator<T> {
    /// The length of the vectors.
    fn dim(&self) -> usize;

    /// `y = A·x`.
    fn apply(&self, x: ArrayView1<'_, T>, y: ArrayViewMut1<'_, T>);

    /// `Y = A·X` for several columns at once, where that is cheaper than one at a time.
    fn apply_block(&self, x: ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) {
        for (x, y) in x.axis_iter(Axis(1)).zip(y.axis_iter_mut(Axis(1))) {
            self.apply(x, y);
        }
    }
}

/// An operator that returns NaN once the run is cancelled, so that the algorithm that uses it stops.
#[derive(Debug)]
pub struct Watched<'a, O> {
    operator: &'a O,
    context: &'a Context,
}

impl<'a, O> Watched<'a, O> {
    /// Wraps an operator; the context is checked before every product.
    pub fn new(operator: &'a O, context: &'a Context) -> Self {
        Self { operator, context }
    }
}

impl<T: Scalar, O: LinearOperator<T>> LinearOperator<T> for Watched<'_, O> {
    fn dim(&self) -> usize {
        self.operator.dim()
    }

    fn apply(&self, x: ArrayView1<'_, T>, mut y: ArrayViewMut1<'_, T>) {
        match self.context.cancelled() {
            true => y.fill(T::nan()),
            false => self.operator.apply(x, y),
        }
    }

    fn apply_block(&self, x: ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) {
        match self.context.cancelled() {
            true => y.fill(T::nan()),
            false => self.operator.apply_block(x, y),
        }
    }
}

impl<T: Scalar, S: Data<Elem = T>> LinearOperator<T> for ArrayBase<S, Ix2> {
    fn dim(&self) -> usize {
        self.nrows()
    }

    fn apply(&self, x: ArrayView1<'_, T>, y: ArrayViewMut1<'_, T>) {
        matmul_into(T::one(), self.view(), x.insert_axis(Axis(1)), false, y.insert_axis(Axis(1)));
    }

    fn apply_block(&self, x: ArrayView2<'_, T>, y: ArrayViewMut2<'_, T>) {
        matmul_into(T::one(), self.view(), x, false, y);
    }
}
