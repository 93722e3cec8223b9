//! Opinions of models that have not seen the sample: out-of-fold probabilities and leave-one-out scores.
//!
//! Confident learning (Northcutt, Jiang and Chuang, J. Artif. Intell. Res. 70, 2021, arXiv 1911.00068) scores a sample
//! with label `y` by its self-confidence `p_y` or by its margin `p_y − max_{c≠y} p_c`. Here a higher score is more
//! suspicious:
//!
//! ```text
//! 1 − p_y,        max_{c≠y} p_c − p_y                                      out-of-fold probabilities
//! max_{c≠y} s_c − s_y,        ‖t − s‖                                      leave-one-out scores s, targets t
//! ```
//!
//! The confident joint counts, among the samples with label `y`, those that belong to class `j` with confidence:
//!
//! ```text
//! t_j     = mean of p_j over the samples with label j
//! C[y][j] = #{i : yᵢ = y,  j = argmax_{c : p_c ≥ t_c} p_c}
//! ```
//!
//! Rows of `C` are scaled to the number of samples with their label. The share off the diagonal estimates how many
//! labels are wrong.

use super::{Opinion, Reason, winner};
use crate::checks::{check_count, check_labels, check_rows};
use crate::error::{LensError, Result};
use mercer_linalg::check_finite;
use ndarray::{ArrayView1, ArrayView2};
use serde::Serialize;

/// Rounding that probabilities may have.
const SLACK: f64 = 1e-6;

/// How the score is made of the probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Confidence {
    /// One minus the probability of the label.
    #[default]
    OfLabel,
    /// The best other probability minus that of the label.
    Margin,
}

/// The counts of confident learning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfidentJoint {
    /// The threshold of every class; `None` for a class without samples.
    pub thresholds: Vec<Option<f64>>,
    /// How many samples with a label (row) belong to a class (column) with confidence.
    pub counts: Vec<Vec<usize>>,
    /// Per sample, the class it belongs to with confidence, if that is not its label.
    pub off_diagonal: Vec<Option<usize>>,
    /// The estimated share of wrong labels.
    pub noise: f64,
}

/// The opinion of out-of-fold probabilities, with a row per sample and a column per class.
///
/// ```
/// use mercer_lens::audit::{Confidence, out_of_fold};
/// let found = out_of_fold(ndarray::array![[0.9, 0.1], [0.98, 0.02]].view(), &[0, 1], Confidence::OfLabel)?;
/// assert_eq!(found.suggested, [Some(0), Some(0)]);
/// assert!(found.reasons[1].as_ref().unwrap().to_string().starts_with("out-of-fold probability of its label is 0.02"));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no samples, probabilities that are not finite or outside 0 to 1, classes that do not exist, and another number
/// of labels.
pub fn out_of_fold(probabilities: ArrayView2<'_, f64>, labels: &[usize], confidence: Confidence) -> Result<Opinion> {
    check_probabilities(probabilities, labels)?;
    opinion(probabilities, labels, |row, own, class| {
        let probability = row[own];
        let score = match confidence {
            Confidence::OfLabel => 1.0 - probability,
            Confidence::Margin => margin(row, own),
        };
        (score, Reason::Probability { probability, class, best: row[class] })
    })
}

/// The opinion of leave-one-out scores, such as those of kernel ridge regression on one-hot labels.
///
/// # Errors
/// For no samples, fewer than two classes, scores that are not finite, classes that do not exist, and another number of
/// labels.
pub fn leave_one_out(scores: ArrayView2<'_, f64>, labels: &[usize]) -> Result<Opinion> {
    check_scores("leave-one-out scores", scores, labels)?;
    if scores.ncols() < 2 {
        let (name, value) = ("the number of classes", scores.ncols().to_string());
        return Err(LensError::Setting { name, value, reason: "a margin needs at least two" });
    }
    opinion(scores, labels, |row, own, class| {
        let margin = margin(row, own);
        (margin, Reason::LeaveOneOut { class, margin })
    })
}

/// The length of the residual of leave-one-out predictions, for targets of any kind. It suggests no label.
///
/// # Errors
/// For no samples, different shapes, and numbers that are not finite.
pub fn leave_one_out_residuals(predictions: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<Opinion> {
    check_count("an audit", 1, predictions.nrows())?;
    check_rows("the targets", predictions.nrows(), targets.nrows())?;
    check_rows("the transposed targets", predictions.ncols(), targets.ncols())?;
    check_finite("leave-one-out predictions", predictions)?;
    check_finite("targets", targets)?;
    let length = |(a, b): (ArrayView1<'_, f64>, ArrayView1<'_, f64>)| {
        a.iter().zip(b).fold(0.0, |length: f64, (a, b)| length.hypot(a - b))
    };
    let scores = predictions.outer_iter().zip(targets.outer_iter()).map(length).collect();
    Opinion::from_scores("leave-one-out residual", scores)
}

/// The confident joint of out-of-fold probabilities.
///
/// # Errors
/// As [`out_of_fold`].
pub fn confident_joint(probabilities: ArrayView2<'_, f64>, labels: &[usize]) -> Result<ConfidentJoint> {
    check_probabilities(probabilities, labels)?;
    let n_classes = probabilities.ncols();
    let (mut sums, mut sizes) = (vec![0.0; n_classes], vec![0usize; n_classes]);
    for (row, &label) in probabilities.outer_iter().zip(labels) {
        sums[label] += row[label];
        sizes[label] += 1;
    }
    let thresholds: Vec<Option<f64>> =
        sums.iter().zip(&sizes).map(|(sum, &size)| (size > 0).then(|| sum / size as f64)).collect();
    let mut counts = vec![vec![0; n_classes]; n_classes];
    let mut off_diagonal = vec![None; labels.len()];
    for (i, (row, &label)) in probabilities.outer_iter().zip(labels).enumerate() {
        let is_confident = |class: usize| thresholds[class].is_some_and(|threshold| row[class] >= threshold);
        let votes: Vec<f64> =
            (0..n_classes).map(|class| if is_confident(class) { row[class] } else { f64::NEG_INFINITY }).collect();
        let class = winner(&votes, label);
        if votes[class].is_finite() {
            counts[label][class] += 1;
            off_diagonal[i] = (class != label).then_some(class);
        }
    }
    let wrong = |(label, row): (usize, &Vec<usize>)| {
        let all: usize = row.iter().sum();
        if all == 0 { 0.0 } else { (all - row[label]) as f64 / all as f64 * sizes[label] as f64 }
    };
    let noise = counts.iter().enumerate().map(wrong).sum::<f64>() / labels.len() as f64;
    Ok(ConfidentJoint { thresholds, counts, off_diagonal, noise })
}

/// One entry per sample: `judge` sees its row, its label and the largest class, and says the score and the reason.
fn opinion(
    scores: ArrayView2<'_, f64>,
    labels: &[usize],
    judge: impl Fn(ArrayView1<'_, f64>, usize, usize) -> (f64, Reason),
) -> Result<Opinion> {
    let mut opinion = Opinion { scores: vec![], suggested: vec![], reasons: vec![] };
    for (row, &own) in scores.outer_iter().zip(labels) {
        let class = winner(&row.to_vec(), own);
        let (score, reason) = judge(row, own, class);
        opinion.scores.push(score);
        opinion.suggested.push(Some(class));
        opinion.reasons.push((class != own).then_some(reason));
    }
    Ok(opinion)
}

/// The best other entry minus the own one; with one class only, minus the own one.
fn margin(row: ArrayView1<'_, f64>, own: usize) -> f64 {
    let others = row.iter().enumerate().filter(|(class, _)| *class != own).map(|(_, value)| *value);
    others.reduce(f64::max).unwrap_or(0.0) - row[own]
}

fn check_scores(what: &'static str, scores: ArrayView2<'_, f64>, labels: &[usize]) -> Result<()> {
    check_count("an audit", 1, labels.len())?;
    check_rows(what, labels.len(), scores.nrows())?;
    check_labels(labels, scores.ncols())?;
    Ok(check_finite(what, scores)?)
}

fn check_probabilities(probabilities: ArrayView2<'_, f64>, labels: &[usize]) -> Result<()> {
    check_scores("out-of-fold probabilities", probabilities, labels)?;
    match probabilities.indexed_iter().find(|(_, p)| !(-SLACK..=1.0 + SLACK).contains(*p)) {
        Some(((row, _), &value)) => {
            Err(LensError::Range { what: "a probability", row, value, reason: "it must be between 0 and 1" })
        }
        None => Ok(()),
    }
}
