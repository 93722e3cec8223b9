//! Sorting in descending order: faer's eigenvalues ascend, and its singular values can be out of order where they are
//! only rounding.

use crate::Scalar;
use ndarray::{Array1, Array2, ShapeBuilder};

/// The permutation that makes values descend; equal values keep their order.
pub(crate) fn descending<T: Scalar>(values: &Array1<T>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].wide().total_cmp(&values[i].wide()));
    order
}

/// The values in this order.
pub(crate) fn values<T: Scalar>(x: &Array1<T>, order: &[usize]) -> Array1<T> {
    order.iter().map(|&i| x[i]).collect()
}

/// The columns in this order, column-major.
pub(crate) fn columns<T: Scalar>(a: &Array2<T>, order: &[usize]) -> Array2<T> {
    let mut sorted = Array2::zeros(a.dim().f());
    order.iter().zip(sorted.columns_mut()).for_each(|(&from, mut to)| to.assign(&a.column(from)));
    sorted
}
