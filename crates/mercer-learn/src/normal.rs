//! The matrix of the normal equations, as an operator.

use mercer_linalg::{LinearOperator, matmul, matmul_into};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis};

/// `AᵀA`.
pub(crate) struct Normal<'a>(pub(crate) ArrayView2<'a, f64>);

impl LinearOperator<f64> for Normal<'_> {
    fn dim(&self) -> usize {
        self.0.ncols()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, y: ArrayViewMut1<'_, f64>) {
        self.apply_block(x.insert_axis(Axis(1)), y.insert_axis(Axis(1)));
    }

    fn apply_block(&self, x: ArrayView2<'_, f64>, y: ArrayViewMut2<'_, f64>) {
        matmul_into(1.0, self.0.t(), matmul(self.0, x).view(), false, y);
    }
}
