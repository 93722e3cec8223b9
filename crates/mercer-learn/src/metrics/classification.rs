//! Measures of classifiers.
//!
//! ```text
//! NLL   = −mean ln p(yᵢ)                       Brier = mean Σ_c (p_c − [c = yᵢ])²
//! TAD   = accuracy of the surrogate − accuracy of the network
//! ```
//!
//! TAD: Engel et al. 2023, arXiv 2305.14585, "Evaluating the faithfulness of surrogate models".

use crate::classes::largest;
use crate::error::{LearnError, Result, check_size};
use mercer_linalg::check_finite;
use ndarray::ArrayView2;
use serde::Serialize;
use std::fmt;

/// Probabilities are clipped to at least this, so that one confident mistake does not make a sum infinite: the rounding
/// of `f64`, as in scikit-learn.
const LEAST_PROBABILITY: f64 = f64::EPSILON;

/// The fraction of correct predictions.
pub fn accuracy(predicted: &[usize], labels: &[usize]) -> Result<f64> {
    check_size("the number of predictions", labels.len(), predicted.len())?;
    let right = predicted.iter().zip(labels).filter(|(a, b)| a == b).count();
    share("accuracy", right, labels.len())
}

/// The accuracy of a surrogate minus that of the network it stands for.
pub fn test_accuracy_differential(surrogate: &[usize], network: &[usize], labels: &[usize]) -> Result<f64> {
    Ok(accuracy(surrogate, labels)? - accuracy(network, labels)?)
}

/// The mean of `−ln p` of the true classes; probabilities below `2.2e-16` are clipped to it.
pub fn negative_log_likelihood(probabilities: ArrayView2<'_, f64>, labels: &[usize]) -> Result<f64> {
    check_probabilities("negative log-likelihood", probabilities, labels)?;
    let sum: f64 =
        labels.iter().enumerate().map(|(row, &class)| -probabilities[(row, class)].max(LEAST_PROBABILITY).ln()).sum();
    Ok(sum / labels.len() as f64)
}

/// The mean squared distance to the one-hot label, between 0 and 2.
///
/// ```
/// use ndarray::array;
/// assert_eq!(mercer_learn::metrics::brier(array![[1.0, 0.0], [0.0, 1.0]].view(), &[0, 0])?, 1.0);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
pub fn brier(probabilities: ArrayView2<'_, f64>, labels: &[usize]) -> Result<f64> {
    check_probabilities("Brier score", probabilities, labels)?;
    let of_row = |(row, &class): (usize, &usize)| -> f64 {
        let row = probabilities.row(row);
        row.iter().enumerate().map(|(at, p)| (p - f64::from(u8::from(at == class))).powi(2)).sum()
    };
    Ok(labels.iter().enumerate().map(of_row).sum::<f64>() / labels.len() as f64)
}

/// Precision and recall of a binary prediction. A ratio to zero is undefined: `–` in text, `null` in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrecisionRecall {
    /// The fraction of flagged samples that are correct; `None` if nothing was flagged.
    pub precision: Option<f64>,
    /// The fraction of true samples that were flagged; `None` if there are none.
    pub recall: Option<f64>,
}

impl fmt::Display for PrecisionRecall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.2} %", 100.0 * share));
        write!(f, "precision {}, recall {}", percent(self.precision), percent(self.recall))
    }
}

/// Precision and recall of the flagged samples.
pub fn precision_recall(flagged: &[bool], truth: &[bool]) -> Result<PrecisionRecall> {
    check_size("the number of flags", truth.len(), flagged.len())?;
    let both = flagged.iter().zip(truth).filter(|(a, b)| **a && **b).count();
    let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count();
    let share_of = |all: usize| (all > 0).then(|| both as f64 / all as f64);
    Ok(PrecisionRecall { precision: share_of(count(flagged)), recall: share_of(count(truth)) })
}

/// The most probable class of every row and its probability.
pub(super) fn top(probabilities: ArrayView2<'_, f64>) -> impl Iterator<Item = (usize, f64)> {
    probabilities.into_outer_iter().map(|row| {
        let class = largest(row.iter().copied());
        (class, row[class])
    })
}

fn share(metric: &'static str, part: usize, of: usize) -> Result<f64> {
    if of == 0 { Err(LearnError::Empty { what: metric }) } else { Ok(part as f64 / of as f64) }
}

pub(super) fn check_probabilities(
    metric: &'static str,
    probabilities: ArrayView2<'_, f64>,
    labels: &[usize],
) -> Result<()> {
    check_size("the number of labels", probabilities.nrows(), labels.len())?;
    if labels.is_empty() {
        return Err(LearnError::Empty { what: metric });
    }
    check_finite(metric, probabilities)?;
    if probabilities.iter().any(|p| !(-1e-9..=1.0 + 1e-9).contains(p)) {
        return Err(LearnError::Undefined { metric, reason: "a probability is outside the range from 0 to 1" });
    }
    let n_classes = probabilities.ncols();
    match labels.iter().position(|&class| class >= n_classes) {
        Some(row) => Err(LearnError::Class { row, class: labels[row], n_classes }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn by_hand() {
        let p = array![[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]];
        let labels = [0, 1, 0];
        let nll = -(0.7f64.ln() + 0.8f64.ln() + 0.3f64.ln()) / 3.0;
        assert!((negative_log_likelihood(p.view(), &labels).unwrap() - nll).abs() < 1e-15);
        let squares = (0.09 + 0.04 + 0.01) + (0.01 + 0.04 + 0.01) + (0.49 + 0.09 + 0.16);
        assert!((brier(p.view(), &labels).unwrap() - squares / 3.0).abs() < 1e-15);
        assert_eq!(accuracy(&[0, 1, 2], &labels).unwrap(), 2.0 / 3.0);
        assert_eq!(test_accuracy_differential(&[0, 1, 2], &[1, 1, 0], &labels).unwrap(), 0.0);
        let found = precision_recall(&[true, true, false, false], &[true, false, true, true]).unwrap();
        assert_eq!(found, PrecisionRecall { precision: Some(0.5), recall: Some(1.0 / 3.0) });
        let none = precision_recall(&[false, false], &[true, false]).unwrap();
        assert_eq!(none, PrecisionRecall { precision: None, recall: Some(0.0) });
        assert_eq!(none.to_string(), "precision –, recall 0.00 %");
        assert_eq!(serde_json::to_string(&none).unwrap(), r#"{"precision":null,"recall":0.0}"#);
        let nothing = precision_recall(&[true, false], &[false, false]).unwrap();
        assert_eq!(nothing, PrecisionRecall { precision: Some(0.0), recall: None });
    }

    #[test]
    fn senseless_questions_are_refused() {
        assert!(matches!(accuracy(&[], &[]), Err(LearnError::Empty { .. })));
        assert!(matches!(accuracy(&[1], &[]), Err(LearnError::Shape { .. })));
        assert!(matches!(precision_recall(&[true], &[]), Err(LearnError::Shape { .. })));
        let p = array![[0.5, 0.5]];
        assert!(matches!(brier(p.view(), &[2]), Err(LearnError::Class { row: 0, class: 2, .. })));
        assert!(brier(array![[f64::NAN, 0.5]].view(), &[0]).is_err());
        assert!(brier(array![[1.5, -0.5]].view(), &[0]).is_err());
        // A confident mistake gives a finite value.
        assert!(negative_log_likelihood(array![[1.0, 0.0]].view(), &[1]).unwrap() > 36.0);
    }
}
