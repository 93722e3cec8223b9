//! Scaling and centring of matrices, where a result does not depend on them.

use ndarray::{Array2, ArrayView2, Axis};

/// The largest magnitude; zero of no numbers.
pub(crate) fn largest(values: ArrayView2<'_, f64>) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// The matrix divided by its largest magnitude, so that squares neither overflow nor vanish.
pub(crate) fn scaled(matrix: ArrayView2<'_, f64>) -> Array2<f64> {
    let largest = largest(matrix);
    if largest > 0.0 { &matrix / largest } else { matrix.to_owned() }
}

/// Means along an axis are removed, from a matrix with magnitudes up to one. What is only rounding becomes zero.
pub(crate) fn centred(mut matrix: Array2<f64>, axis: Axis) -> Array2<f64> {
    let Some(means) = matrix.mean_axis(axis) else { return matrix };
    matrix -= &means.insert_axis(axis);
    let squares: f64 = matrix.iter().map(|x| x * x).sum();
    if squares <= matrix.len() as f64 * (16.0 * f64::EPSILON).powi(2) {
        matrix.fill(0.0);
    }
    matrix
}

/// `HKH` with `H = I − 11ᵀ/n`, of a matrix with magnitudes up to one.
pub(crate) fn doubly_centred(matrix: Array2<f64>) -> Array2<f64> {
    centred(centred(matrix, Axis(0)), Axis(1))
}
