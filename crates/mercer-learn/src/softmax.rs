//! From scores to probabilities, row by row.

use ndarray::{Array2, ArrayView2};

/// `ln softmax`: `sⱼ − max s − ln Σ exp(sₖ − max s)`.
///
/// ```
/// let log = mercer_learn::log_softmax(ndarray::array![[0.0, 0.0], [0.0, -1e4]].view());
/// assert!((log[(0, 0)] + 2f64.ln()).abs() < 1e-15 && log[(1, 1)] == -1e4);
/// ```
pub fn log_softmax(scores: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut log = scores.to_owned();
    for mut row in log.outer_iter_mut() {
        let most = row.fold(f64::NEG_INFINITY, |most, &score| most.max(score));
        let sum: f64 = row.iter().map(|score| (score - most).exp()).sum();
        row.mapv_inplace(|score| score - most - sum.ln());
    }
    log
}

/// `softmax`: positive rows that sum to one.
pub fn softmax(scores: ArrayView2<'_, f64>) -> Array2<f64> {
    log_softmax(scores).mapv_into(f64::exp)
}
