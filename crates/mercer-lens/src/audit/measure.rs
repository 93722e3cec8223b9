//! How good an audit is where the wrong labels are known.
//!
//! At a budget, the `⌈fraction · n⌉` samples with the highest scores are inspected. Where equal scores are cut, the wrong
//! labels among them count in proportion: that is what is found on average if their order is drawn, and a score that says
//! nothing finds no more than chance. The true-positive rate at 1 % false positives is that of the lowest threshold at which at most 1 % of the
//! right labels are flagged. Areas under the curves are those of `mercer_learn::metrics`.

use super::review::suspicious_first;
use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::{LensError, Result};
use mercer_learn::metrics::{area_under_precision_recall, area_under_roc};
use serde::Serialize;

/// The false-positive rate at which the true-positive rate is reported.
const FALSE_POSITIVES: f64 = 0.01;

/// Measures of an audit. Measures are `None` where they are undefined: without wrong labels, or without right ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditMeasures {
    /// The number of wrong labels.
    pub wrong: usize,
    /// The number of samples.
    pub samples: usize,
    /// The area under the ROC curve.
    pub auroc: Option<f64>,
    /// The area under the precision–recall curve.
    pub aupr: Option<f64>,
    /// The true-positive rate at 1 % false positives.
    pub tpr_at_1_percent_fpr: Option<f64>,
    /// The results at every budget.
    pub budgets: Vec<AtBudget>,
}

/// What is found by inspecting part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtBudget {
    /// The share of samples that may be inspected.
    pub fraction: f64,
    /// The number of samples inspected.
    pub inspected: usize,
    /// The wrong labels among them, on average over the order of equal scores.
    pub found: f64,
    /// The share of the inspected samples that are wrong; `None` if none were inspected.
    pub precision: Option<f64>,
    /// The share of the wrong labels that were found; `None` if there are none.
    pub recall: Option<f64>,
}

/// A point of the curve of wrong labels found against samples inspected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The number of samples inspected.
    pub inspected: usize,
    /// The wrong labels among them, on average over the order of equal scores.
    pub found: f64,
}

/// Compares scores with the truth.
///
/// ```
/// let found = mercer_lens::audit::measure(&[0.9, 0.1, 0.8, 0.2], &[true, false, true, false], &[0.25])?;
/// assert_eq!((found.auroc, found.budgets[0].precision, found.budgets[0].recall), (Some(1.0), Some(1.0), Some(0.5)));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no samples, another number of truths, scores that are not finite, and budgets outside 0 to 1.
pub fn measure(scores: &[f64], wrong: &[bool], budgets: &[f64]) -> Result<AuditMeasures> {
    let found = found_so_far(scores, wrong)?;
    let (samples, n_wrong) = (wrong.len(), wrong.iter().filter(|wrong| **wrong).count());
    let at_budget = |&fraction: &f64| {
        if !(0.0..=1.0).contains(&fraction) {
            let reason = "it must be between 0 and 1";
            return Err(LensError::Setting { name: "‹budget›", value: fraction.to_string(), reason });
        }
        // The product of 0.07 and 100 is above 7 by rounding alone.
        let inspected = ((fraction * samples as f64 - 1e-9).ceil().max(0.0) as usize).min(samples);
        let found = found[inspected];
        let share = |of: usize| (of > 0).then(|| found / of as f64);
        Ok(AtBudget { fraction, inspected, found, precision: share(inspected), recall: share(n_wrong) })
    };
    Ok(AuditMeasures {
        wrong: n_wrong,
        samples,
        auroc: area_under_roc(scores, wrong).ok(),
        aupr: area_under_precision_recall(scores, wrong).ok(),
        tpr_at_1_percent_fpr: rate_at_false_positives(scores, wrong, n_wrong),
        budgets: budgets.iter().map(at_budget).collect::<Result<_>>()?,
    })
}

/// The curve of wrong labels found against samples inspected, at `points` evenly spaced places after the origin, or at
/// every sample if there are fewer.
///
/// # Errors
/// As [`measure`].
pub fn review_curve(scores: &[f64], wrong: &[bool], points: usize) -> Result<Vec<CurvePoint>> {
    let found = found_so_far(scores, wrong)?;
    let (n, points) = (wrong.len(), points.min(wrong.len()));
    let at = |point: usize| if points == 0 { 0 } else { (point as u128 * n as u128 / points as u128) as usize };
    Ok((0..=points).map(at).map(|inspected| CurvePoint { inspected, found: found[inspected] }).collect())
}

/// The wrong labels among the first 0, 1, … samples, on average over the order of equal scores.
fn found_so_far(scores: &[f64], wrong: &[bool]) -> Result<Vec<f64>> {
    check_count("a measure of an audit", 1, scores.len())?;
    check_rows("the truth about labels", scores.len(), wrong.len())?;
    check_numbers("scores of an audit", scores)?;
    let (mut found, mut before) = (vec![0.0], 0);
    for group in suspicious_first(scores).chunk_by(|&i, &j| scores[i] == scores[j]) {
        let own = group.iter().filter(|&&index| wrong[index]).count();
        let share = |taken: usize| before as f64 + own as f64 * (taken as f64 / group.len() as f64);
        found.extend((1..=group.len()).map(share));
        before += own;
    }
    Ok(found)
}

fn rate_at_false_positives(scores: &[f64], wrong: &[bool], n_wrong: usize) -> Option<f64> {
    let n_right = wrong.len() - n_wrong;
    if n_wrong == 0 || n_right == 0 {
        return None;
    }
    let (mut hits, mut alarms, mut best) = (0, 0, 0);
    for group in suspicious_first(scores).chunk_by(|&i, &j| scores[i] == scores[j]) {
        let wrong_here = group.iter().filter(|&&i| wrong[i]).count();
        hits += wrong_here;
        alarms += group.len() - wrong_here;
        if alarms as f64 <= FALSE_POSITIVES * n_right as f64 {
            best = hits;
        }
    }
    Some(best as f64 / n_wrong as f64)
}
