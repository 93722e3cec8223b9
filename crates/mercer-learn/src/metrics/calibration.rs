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
    pub lower: f64,
    /// The upper limit, inclusive.
    pub upper: f64,
    /// The number of samples.
    pub count: usize,
    /// Their mean confidence; none without samples.
    pub mean_confidence: Option<f64>,
    /// Their accuracy; none without samples.
    pub accuracy: Option<f64>,
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
    let mut sums = vec![(0_usize, 0.0, 0_usize); n_bins];
    for ((class, confidence), &label) in top(probabilities).zip(labels) {
        let at = (confidence * n_bins as f64).ceil() as usize;
        let (count, confidences, right) = &mut sums[at.clamp(1, n_bins) - 1];
        *count += 1;
        *confidences += confidence;
        *right += usize::from(class == label);
    }
    let (mut expected_error, mut largest_error) = (0.0, 0_f64);
    let mut bins = Vec::with_capacity(n_bins);
    for (at, (count, confidences, right)) in sums.into_iter().enumerate() {
        let mut bin = ReliabilityBin { lower: edge(at), upper: edge(at + 1), count, ..ReliabilityBin::default() };
        if count > 0 {
            let (confidence, accuracy) = (confidences / count as f64, right as f64 / count as f64);
            let error = (accuracy - confidence).abs();
            expected_error += error * count as f64 / labels.len() as f64;
            largest_error = largest_error.max(error);
            (bin.mean_confidence, bin.accuracy) = (Some(confidence), Some(accuracy));
        }
        bins.push(bin);
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
        assert_eq!((diagram.bins[0].accuracy, diagram.bins[0].mean_confidence), (None, None));
        assert_eq!((diagram.bins[3].accuracy, diagram.bins[3].mean_confidence), (Some(0.0), Some(0.64)));
        assert_eq!((diagram.bins[2].lower, diagram.bins[2].upper), (0.4, 0.6));
        let written = serde_json::to_value(diagram.bins[0]).unwrap();
        let empty =
            serde_json::json!({"lower": 0.0, "upper": 0.2, "count": 0, "mean_confidence": null, "accuracy": null});
        assert_eq!(written, empty);
        let expected = (2.0 * (0.5f64 - 0.55).abs() + (0.0f64 - 0.64).abs() + 2.0 * (1.0 - 0.975)) / 5.0;
        assert!((diagram.expected_error - expected).abs() < 1e-12);
        assert!((diagram.largest_error - 0.64).abs() < 1e-12);
        assert!(reliability(p.view(), &[0; 5], 0).is_err());
    }
}
