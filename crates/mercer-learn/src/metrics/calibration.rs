//! Reliability diagrams and the expected calibration error.
//!
//! ```text
//! ECE = Σ_b n_b/N · |accuracy_b − confidence_b|
//! ```
//!
//! over bins of equal width of the largest probability, `((b−1)/B, b/B]`: Guo et al. 2017, arXiv 1706.04599, equation
//! 3.

use super::classification::{check_probabilities, top};
use crate::error::{Result, setting};
use ndarray::ArrayView2;
use serde::Serialize;

/// The default number of bins of the expected calibration error.
pub const BINS: usize = 15;

/// The samples with confidences in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReliabilityBin {
    /// The lower limit, exclusive except for the first bin.
    pub from: f64,
    /// The upper limit, inclusive.
    pub to: f64,
    /// The number of samples.
    pub count: usize,
    /// Their mean confidence; zero without samples.
    pub confidence: f64,
    /// Their accuracy; zero without samples.
    pub accuracy: f64,
}

/// A reliability diagram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reliability {
    /// The bins, from 0 to 1.
    pub bins: Vec<ReliabilityBin>,
    /// The expected calibration error.
    pub expected_error: f64,
    /// The largest error of a bin with samples.
    pub largest_error: f64,
}

/// Confidence against accuracy, in [`BINS`] or this many bins.
///
/// ```
/// use ndarray::array;
/// let sure = array![[0.9, 0.1], [0.9, 0.1]];
/// let diagram = mercer_learn::metrics::reliability(sure.view(), &[0, 1], 15)?;
/// assert!((diagram.expected_error - 0.4).abs() < 1e-12);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
pub fn reliability(probabilities: ArrayView2<'_, f64>, labels: &[usize], n_bins: usize) -> Result<Reliability> {
    if n_bins == 0 {
        return Err(setting("the number of bins", n_bins, "there must be at least one"));
    }
    check_probabilities("expected calibration error", probabilities, labels)?;
    let edge = |bin: usize| bin as f64 / n_bins as f64;
    let mut bins: Vec<ReliabilityBin> = (0..n_bins)
        .map(|bin| ReliabilityBin { from: edge(bin), to: edge(bin + 1), ..ReliabilityBin::default() })
        .collect();
    for ((class, confidence), &label) in top(probabilities).zip(labels) {
        let at = (confidence * n_bins as f64).ceil() as usize;
        let bin = &mut bins[at.clamp(1, n_bins) - 1];
        bin.count += 1;
        bin.confidence += confidence;
        bin.accuracy += f64::from(u8::from(class == label));
    }
    let (mut expected_error, mut largest_error) = (0.0, 0_f64);
    for bin in bins.iter_mut().filter(|bin| bin.count > 0) {
        bin.confidence /= bin.count as f64;
        bin.accuracy /= bin.count as f64;
        let error = (bin.accuracy - bin.confidence).abs();
        expected_error += error * bin.count as f64 / labels.len() as f64;
        largest_error = largest_error.max(error);
    }
    Ok(Reliability { bins, expected_error, largest_error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn bins_by_hand() {
        let p = array![[0.6, 0.4], [0.64, 0.36], [0.05, 0.95], [1.0, 0.0], [0.5, 0.5]];
        let diagram = reliability(p.view(), &[0, 1, 1, 0, 1], 5).unwrap();
        // 0.6 belongs to (0.4, 0.6], with the tie at 0.5 decided for the first class.
        let counts: Vec<usize> = diagram.bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [0, 0, 2, 1, 2]);
        let expected = (2.0 * (0.5f64 - 0.55).abs() + (0.0f64 - 0.64).abs() + 2.0 * (1.0 - 0.975)) / 5.0;
        assert!((diagram.expected_error - expected).abs() < 1e-12);
        assert!((diagram.largest_error - 0.64).abs() < 1e-12);
        assert!(reliability(p.view(), &[0; 5], 0).is_err());
    }
}
