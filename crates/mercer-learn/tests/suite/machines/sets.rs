//! Small problems.

use mercer_data::{Classes, random::stream};
use ndarray::{Array2, ArrayView2};
use rand::RngExt;

/// Rows spread over a square.
pub(crate) fn rows(n: usize, d: usize, name: &str) -> Array2<f64> {
    let mut random = stream(5, name);
    Array2::from_shape_simple_fn((n, d), || 2.0 * random.random::<f64>() - 1.0)
}

/// `exp(−‖x − y‖²)`.
pub(crate) fn rbf(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((x.nrows(), y.nrows()), |(i, j)| {
        (-x.row(i).iter().zip(y.row(j)).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp()
    })
}

/// Classes by the angle of the first two coordinates, some labels turned over.
pub(crate) fn labels(x: ArrayView2<'_, f64>, n_classes: usize) -> Classes {
    let class = |(i, row): (usize, ndarray::ArrayView1<'_, f64>)| {
        let angle = (row[1].atan2(row[0]) / std::f64::consts::TAU + 0.5) * n_classes as f64;
        (angle as usize + usize::from(i % 11 == 3)) % n_classes
    };
    Classes::new(x.outer_iter().enumerate().map(class).collect(), n_classes).unwrap()
}

/// Two smooth targets.
pub(crate) fn targets(x: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((x.nrows(), 2), |(i, j)| (3.0 * x[(i, 0)] + j as f64).sin() + x[(i, 1)])
}
