//! Label shift: how often the classes occur in samples without labels.
//!
//! ```text
//! Ĉ_ij = P_A(decision i, class j),  μ̂_i = P_B(decision i),  w = Ĉ⁻¹ μ̂,  q_j = w_j p_j      Lipton, Wang, Smola 2018 (BBSE)
//! ```
//!
//! This assumes that only the rates of the classes differ: samples of a class look alike in both sets. Whether that holds is
//! another test, of samples of the first set drawn with the estimated rates against the second set ([`matched_rows`]).
//! Negative weights become zero, and the rates are scaled to sum to one.

use super::Permutations;
use crate::checks::{check_count, check_labels, check_rows};
use crate::error::Result;
use mercer_data::random::stream;
use mercer_linalg::{matmul, thin_svd};
use ndarray::{Array1, Array2, Axis};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Serialize;

/// A confusion matrix whose least singular value, relative to the largest, is below this cannot be solved for rates.
const SINGULAR: f64 = 1e-3;

/// Beyond this many classes there are no intervals: each resample solves for all of them.
const MOST_CLASSES: usize = 100;

/// The estimated rates of the classes in the second set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelShift {
    /// The rates of the classes in the first set.
    pub first: Vec<f64>,
    /// The estimated rates in the second set.
    pub second: Vec<f64>,
    /// Their middle 95 % over bootstrap samples of both sets.
    pub intervals: Option<Vec<[f64; 2]>>,
    /// The rates of the network's decisions in the second set.
    pub decided: Vec<f64>,
    /// The least singular value of the confusion matrix over the largest.
    pub conditioning: f64,
}

/// Estimates the rates of classes in the second set from labels of the first and decisions on both; none if the decisions say
/// too little about the classes.
///
/// # Errors
/// For sets without samples, sizes that do not agree, and classes that do not exist.
pub fn label_shift(
    (labels, decisions): (&[usize], &[usize]),
    others: &[usize],
    n_classes: usize,
    resamples: usize,
    seed: u64,
) -> Result<Option<LabelShift>> {
    check_count("label shift", 1, labels.len())?;
    check_count("label shift", 1, others.len())?;
    check_rows("the decisions", labels.len(), decisions.len())?;
    for classes in [labels, decisions, others] {
        check_labels(classes, n_classes)?;
    }
    let confusion = rates(
        labels.iter().zip(decisions).map(|(class, decision)| decision * n_classes + class),
        n_classes * n_classes,
    );
    let decided = rates(others.iter().copied(), n_classes);
    let Some((second, conditioning)) = solved(&confusion, &decided, n_classes) else { return Ok(None) };
    let mut random = stream(seed, "lens/shift/label rates");
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); n_classes];
    for _ in 0..if n_classes <= MOST_CLASSES { resamples } else { 0 } {
        let own = (0..labels.len()).map(|_| random.random_range(0..labels.len()));
        let own = rates(own.map(|row| decisions[row] * n_classes + labels[row]), n_classes * n_classes);
        let other = (0..others.len()).map(|_| others[random.random_range(0..others.len())]);
        let other = rates(other, n_classes);
        if let Some((found, _)) = solved(&own, &other, n_classes) {
            drawn.iter_mut().zip(found).for_each(|(all, rate)| all.push(rate));
        }
    }
    let first = rates(labels.iter().copied(), n_classes);
    Ok(Some(LabelShift { first, second, intervals: intervals(drawn), decided, conditioning }))
}

fn rates(values: impl Iterator<Item = usize>, size: usize) -> Vec<f64> {
    let mut counts = vec![0.0; size];
    let mut n = 0.0;
    for value in values {
        counts[value] += 1.0;
        n += 1.0;
    }
    counts.iter().map(|count| count / n).collect()
}

/// The rates that solve the system, and how well it determines them.
fn solved(confusion: &[f64], decided: &[f64], n_classes: usize) -> Option<(Vec<f64>, f64)> {
    let joint = Array2::from_shape_vec((n_classes, n_classes), confusion.to_vec()).ok()?;
    let classes = joint.sum_axis(Axis(0));
    // Classes that do not occur in the first set cannot be seen in the second.
    let known: Vec<usize> = (0..n_classes).filter(|&class| classes[class] > 0.0).collect();
    let conditional = Array2::from_shape_fn((n_classes, known.len()), |(decision, at)| {
        joint[[decision, known[at]]] / classes[known[at]]
    });
    let svd = thin_svd(conditional.view()).ok()?;
    let largest = svd.values.first().copied().unwrap_or(0.0);
    let conditioning = svd.values.last().copied().unwrap_or(0.0) / largest;
    if conditioning.partial_cmp(&SINGULAR) != Some(std::cmp::Ordering::Greater) {
        return None;
    }
    let decided = Array1::from(decided.to_vec()).insert_axis(Axis(1));
    let mut inside = matmul(svd.left.t(), decided.view());
    inside.outer_iter_mut().zip(&svd.values).for_each(|(mut row, value)| row /= *value);
    let solution = matmul(svd.right.view(), inside.view());
    let total: f64 = solution.iter().map(|rate| rate.max(0.0)).sum();
    let mut found = vec![0.0; n_classes];
    known.iter().zip(&solution).for_each(|(&class, rate)| found[class] = rate.max(0.0) / total.max(f64::MIN_POSITIVE));
    Some((found, conditioning))
}

/// The middle 95 % of each list.
fn intervals(drawn: Vec<Vec<f64>>) -> Option<Vec<[f64; 2]>> {
    let one = |mut all: Vec<f64>| {
        all.sort_unstable_by(f64::total_cmp);
        let last = all.len().checked_sub(1)? as f64;
        let at = |share: f64| all[(share * last).round() as usize];
        Some([at(0.025), at(0.975)])
    };
    drawn.into_iter().map(one).collect()
}

/// The statistic of decisions in all permutations, `Σ_c (a_c/n − b_c/m)²/(a_c + b_c)`: chi-square, up to a constant.
///
/// # Errors
/// For another number of samples, and classes that do not exist.
pub fn decision_statistics(decisions: &[usize], n_classes: usize, permutations: &Permutations) -> Result<Vec<f64>> {
    check_rows("the decisions", permutations.n_rows(), decisions.len())?;
    check_labels(decisions, n_classes)?;
    let mut totals = vec![0.0; n_classes];
    let mut counts = Array2::<f64>::zeros((n_classes, permutations.n_columns()));
    for start in (0..decisions.len()).step_by(4096) {
        let rows = start..(start + 4096).min(decisions.len());
        let members = permutations.members(rows.clone()).matrix;
        for (member, &class) in members.outer_iter().zip(&decisions[rows]) {
            totals[class] += 1.0;
            counts.row_mut(class).scaled_add(1.0, &member);
        }
    }
    let (n, m) = (permutations.n_first() as f64, (permutations.n_rows() - permutations.n_first()) as f64);
    let one = |counts: ndarray::ArrayView1<'_, f64>| {
        let of_class = |(count, total): (&f64, &f64)| match *total > 0.0 {
            true => (count / n - (total - count) / m).powi(2) / total,
            false => 0.0,
        };
        counts.iter().zip(&totals).map(of_class).sum::<f64>() * n * m
    };
    Ok(counts.axis_iter(Axis(1)).map(one).collect())
}

/// Samples of the first set with these rates of classes, as many as there are, in order.
///
/// # Errors
/// For classes that do not exist.
pub fn matched_rows(labels: &[usize], rates: &[f64], seed: u64) -> Result<Vec<usize>> {
    check_labels(labels, rates.len())?;
    let mut by_class: Vec<Vec<usize>> = vec![Vec::new(); rates.len()];
    labels.iter().enumerate().for_each(|(row, &class)| by_class[class].push(row));
    // A class too rare to fill one place of a thousand does not limit all others.
    let limits = by_class.iter().zip(rates).filter(|(_, rate)| **rate > 1e-3);
    let size = limits.map(|(rows, rate)| rows.len() as f64 / rate).fold(labels.len() as f64, f64::min);
    let mut random = stream(seed, "lens/shift/matched");
    let mut found = Vec::new();
    for (mut rows, rate) in by_class.into_iter().zip(rates) {
        rows.shuffle(&mut random);
        rows.truncate((size * rate).round() as usize);
        found.extend(rows);
    }
    found.sort_unstable();
    Ok(found)
}
