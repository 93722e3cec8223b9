//! The accuracy of a network on samples without labels.
//!
//! ```text
//! ATC         t with P_A(s > t) = accuracy on A;  accuracy on B ≈ P_B(s > t),  s = Σ_c p_c ln p_c      Garg et al. 2022
//! difference  accuracy on A − (mean confidence on A − mean confidence on B)                            Guillory et al. 2021
//! ```
//!
//! Both are calibrated on labelled samples that the network was not trained on. Neither can be right for every shift: a network
//! that is confidently wrong on new data looks right.

use crate::checks::{check_count, check_labels, check_rows};
use crate::error::Result;
use mercer_linalg::check_finite;
use ndarray::{ArrayView1, ArrayView2};
use serde::Serialize;

/// What a network thinks of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decided {
    /// Its decision.
    pub class: usize,
    /// The probability of that class.
    pub confidence: f64,
    /// `Σ p ln p`, at most zero: the negative entropy.
    pub certainty: f64,
}

/// An estimate of the accuracy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimatedAccuracy {
    /// The accuracy on the labelled samples.
    pub first: Option<f64>,
    /// By the share of samples above a threshold of certainty; none without labels.
    pub thresholded: Option<f64>,
    /// By the difference of mean confidences; none without labels.
    pub by_confidence: Option<f64>,
    /// The mean confidence on the samples without labels, which is not calibrated.
    pub confidence: f64,
}

/// Decisions from scores, a row per sample and a column per class.
///
/// # Errors
/// Without classes, and for numbers that are not finite.
pub fn decide(scores: ArrayView2<'_, f64>) -> Result<Vec<Decided>> {
    check_count("decisions between classes", 1, scores.ncols())?;
    check_finite("decisions", scores)?;
    let one = |scores: ArrayView1<'_, f64>| {
        let mut class = 0;
        for (at, score) in scores.iter().enumerate() {
            class = if *score > scores[class] { at } else { class };
        }
        let top = scores[class];
        let total: f64 = scores.iter().map(|score| (score - top).exp()).sum();
        let mean = scores.iter().map(|score| (score - top) * (score - top).exp()).sum::<f64>() / total;
        Decided { class, confidence: 1.0 / total, certainty: mean - total.ln() }
    };
    Ok(scores.outer_iter().map(one).collect())
}

/// Estimates the accuracy on samples without labels.
///
/// # Errors
/// For sets without samples, and labels that do not fit.
pub fn estimated_accuracy(
    first: &[Decided],
    labels: Option<(&[usize], usize)>,
    second: &[Decided],
) -> Result<EstimatedAccuracy> {
    check_count("an estimated accuracy", 1, first.len())?;
    check_count("an estimated accuracy", 1, second.len())?;
    let mean = |all: &[Decided]| all.iter().map(|one| one.confidence).sum::<f64>() / all.len() as f64;
    let confidence = mean(second);
    let Some((labels, n_classes)) = labels else {
        return Ok(EstimatedAccuracy { first: None, thresholded: None, by_confidence: None, confidence });
    };
    check_rows("the labels", first.len(), labels.len())?;
    check_labels(labels, n_classes)?;
    let right = first.iter().zip(labels).filter(|(one, label)| one.class == **label).count();
    let accuracy = right as f64 / first.len() as f64;
    let mut sorted: Vec<f64> = first.iter().map(|one| one.certainty).collect();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    // As many samples are at least this certain as are right.
    let threshold = match right {
        0 => f64::INFINITY,
        right => sorted[right - 1],
    };
    let above = second.iter().filter(|one| one.certainty >= threshold).count();
    let difference = (accuracy - mean(first) + confidence).clamp(0.0, 1.0);
    Ok(EstimatedAccuracy {
        first: Some(accuracy),
        thresholded: Some(above as f64 / second.len() as f64),
        by_confidence: Some(difference),
        confidence,
    })
}
