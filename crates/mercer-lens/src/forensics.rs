//! Forensics with known poison: which test samples resemble training samples that are known to be poisoned?
//!
//! ```text
//! count(x) = number of poisoned samples among the k largest κ(x, xᵢ)          x is flagged if count ≥ threshold
//! ```
//!
//! with `k = 5` and a threshold of 3 (Engel et al. 2023, arXiv 2305.14585, Table 3, after Shan et al. 2022). Precision
//! and recall are over all test samples, clean and poisoned.

use crate::checks::{check_count, check_neighbours, check_rows};
use crate::error::{LensError, Result};
use crate::neighbours::Neighbour;
use mercer_learn::metrics::{area_under_roc, precision_recall};
use serde::Serialize;

/// When a sample is flagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// How many neighbours are looked at.
    pub k: usize,
    /// How many of them must be poisoned.
    pub threshold: usize,
}

impl Default for Rule {
    fn default() -> Self {
        Self { k: 5, threshold: 3 }
    }
}

/// The verdict on one test sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// How many of its neighbours are poisoned.
    pub count: usize,
    /// Whether that is enough.
    pub flagged: bool,
}

/// How well verdicts agree with the truth. A ratio to zero is undefined, and `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Detection {
    /// The share of flagged samples that are poisoned.
    pub precision: Option<f64>,
    /// The share of poisoned samples that are flagged.
    pub recall: Option<f64>,
    /// `2PR/(P + R)`, twice the hits over flagged plus poisoned samples.
    pub f1: Option<f64>,
    /// The share of clean samples that are flagged.
    pub false_positive_rate: Option<f64>,
    /// The area under the ROC curve of the counts.
    pub auroc: Option<f64>,
}

/// Counts the poisoned samples among the first `k` neighbours of every test sample. No test samples give no verdicts.
///
/// ```
/// use mercer_lens::{forensics::{Rule, trace}, neighbours::largest};
/// let kernel = ndarray::array![[0.9, 0.8, 0.1], [0.0, 0.1, 0.9]];
/// let found = trace(&largest(kernel.view(), 2, None)?, &[true, true, false], Rule { k: 2, threshold: 2 })?;
/// assert!(found[0].flagged && !found[1].flagged && found[1].count == 1);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For a threshold that is zero or above `k`, lists with fewer than `k` neighbours, and neighbours that do not exist.
pub fn trace(neighbours: &[Vec<Neighbour>], poisoned: &[bool], rule: Rule) -> Result<Vec<Verdict>> {
    if rule.threshold == 0 || rule.threshold > rule.k {
        let reason = "it must be at least one and at most the number of neighbours";
        return Err(LensError::Setting { name: "‹threshold›", value: rule.threshold.to_string(), reason });
    }
    check_neighbours(neighbours, poisoned.len())?;
    let of_list = |list: &Vec<Neighbour>| {
        check_count("a verdict on poison", rule.k, list.len())?;
        let count = list[..rule.k].iter().filter(|neighbour| poisoned[neighbour.index]).count();
        Ok(Verdict { count, flagged: count >= rule.threshold })
    };
    neighbours.iter().map(of_list).collect()
}

/// Compares verdicts with what is known about the test samples.
///
/// # Errors
/// For no samples, and different numbers of verdicts and truths.
pub fn evaluate(verdicts: &[Verdict], poisoned: &[bool]) -> Result<Detection> {
    check_count("a measure of forensics", 1, verdicts.len())?;
    check_rows("the truth about test samples", verdicts.len(), poisoned.len())?;
    let flagged: Vec<bool> = verdicts.iter().map(|verdict| verdict.flagged).collect();
    let counts: Vec<f64> = verdicts.iter().map(|verdict| verdict.count as f64).collect();
    let measured = precision_recall(&flagged, poisoned).ok();
    let hits = flagged.iter().zip(poisoned).filter(|(flag, truth)| **flag && **truth).count();
    let (n_flagged, n_poisoned) = (number(&flagged), number(poisoned));
    let ratio = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    Ok(Detection {
        precision: measured.and_then(|measured| measured.precision),
        recall: measured.and_then(|measured| measured.recall),
        f1: ratio(2 * hits, n_flagged + n_poisoned),
        false_positive_rate: ratio(n_flagged - hits, poisoned.len() - n_poisoned),
        auroc: area_under_roc(&counts, poisoned).ok(),
    })
}

fn number(flags: &[bool]) -> usize {
    flags.iter().filter(|flag| **flag).count()
}
