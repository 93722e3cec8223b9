//! Measures of order: Kendall's τ-b, the areas under the ROC and the precision–recall curve.
//!
//! ```text
//! τ_b = (concordant − discordant) / √((n₀ − n₁)(n₀ − n₂)),   n₀ = n(n−1)/2,  n₁, n₂ pairs tied in a, b
//! ```
//!
//! in O(n log n): sorted by `a`, the discordant pairs are the exchanges of a merge sort by `b` (Knight, A computer
//! method for calculating Kendall's tau with ungrouped data, J. Am. Stat. Assoc. 61, 1966). Without ties this is
//! Kendall's own τ.

use crate::error::{LearnError, Result, check_size};
use std::cmp::Ordering;

/// Kendall's τ-b. Undefined if all of `a` or all of `b` are tied.
///
/// ```
/// use mercer_learn::metrics::kendall_tau;
/// let tau = kendall_tau(&[1.0, 2.0, 3.0], &[10.0, 30.0, 20.0])?;
/// assert!((tau - 1.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
pub fn kendall_tau(a: &[f64], b: &[f64]) -> Result<f64> {
    const METRIC: &str = "Kendall's τ";
    check_size("the number of values", a.len(), b.len())?;
    check_numbers(METRIC, a)?;
    check_numbers(METRIC, b)?;
    let mut pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
    pairs.sort_unstable_by(|x, y| order(x.0, y.0).then(order(x.1, y.1)));
    let tied_a = tied(pairs.iter().map(|pair| pair.0));
    let tied_both = tied_runs(pairs.len(), |i, j| pairs[i] == pairs[j]);
    let mut values: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let mut scratch = values.clone();
    let discordant = exchanges(&mut values, &mut scratch);
    let tied_b = tied(values.iter().copied());
    let all = pairs_of(a.len() as u128);
    if all == tied_a || all == tied_b {
        return Err(LearnError::Undefined { metric: METRIC, reason: "all values of one side are equal" });
    }
    let difference = (all + tied_both) as i128 - (tied_a + tied_b) as i128 - 2 * discordant as i128;
    // The root of each factor, because their product may exceed what f64 represents exactly.
    let tau = difference as f64 / ((all - tied_a) as f64).sqrt() / ((all - tied_b) as f64).sqrt();
    Ok(tau.clamp(-1.0, 1.0))
}

/// The area under the ROC curve: the probability that a positive has a higher score than a negative, ties counting
/// half.
pub fn area_under_roc(scores: &[f64], positive: &[bool]) -> Result<f64> {
    const METRIC: &str = "the area under the ROC curve";
    let ranked = ranked(METRIC, scores, positive)?;
    let (mut below, mut wins) = (0_u128, 0_u128);
    // From the lowest score, counted twice so that ties stay integers.
    for group in ranked.chunk_by(|a, b| a.0 == b.0).rev() {
        let positives = group.iter().filter(|sample| sample.1).count() as u128;
        let negatives = group.len() as u128 - positives;
        wins += positives * (2 * below + negatives);
        below += negatives;
    }
    let positives = ranked.len() as u128 - below;
    if positives == 0 || below == 0 {
        return Err(LearnError::Undefined { metric: METRIC, reason: "it needs both positives and negatives" });
    }
    Ok(wins as f64 / (2 * positives * below) as f64)
}

/// The area under the precision–recall curve as the average precision `Σ (Rₖ − Rₖ₋₁) Pₖ`, without interpolation.
pub fn area_under_precision_recall(scores: &[f64], positive: &[bool]) -> Result<f64> {
    const METRIC: &str = "the area under the precision–recall curve";
    let ranked = ranked(METRIC, scores, positive)?;
    let (mut found, mut seen, mut area) = (0_usize, 0_usize, 0.0);
    for group in ranked.chunk_by(|a, b| a.0 == b.0) {
        let positives = group.iter().filter(|sample| sample.1).count();
        found += positives;
        seen += group.len();
        area += positives as f64 * found as f64 / seen as f64;
    }
    if found == 0 {
        return Err(LearnError::Undefined { metric: METRIC, reason: "there are no positives" });
    }
    Ok(area / found as f64)
}

/// From the highest score to the lowest.
fn ranked(metric: &'static str, scores: &[f64], positive: &[bool]) -> Result<Vec<(f64, bool)>> {
    check_size("the number of scores", positive.len(), scores.len())?;
    check_numbers(metric, scores)?;
    let mut ranked: Vec<(f64, bool)> = scores.iter().copied().zip(positive.iter().copied()).collect();
    ranked.sort_by(|x, y| order(y.0, x.0));
    Ok(ranked)
}

/// Infinite scores can be ordered; NaN cannot.
fn check_numbers(metric: &'static str, values: &[f64]) -> Result<()> {
    if values.iter().any(|value| value.is_nan()) {
        return Err(LearnError::Undefined { metric, reason: "a value is not a number" });
    }
    Ok(())
}

/// The order of numbers, in which −0 and 0 are equal.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn pairs_of(n: u128) -> u128 {
    n * n.saturating_sub(1) / 2
}

/// Pairs of equal neighbours in a sorted sequence.
fn tied(sorted: impl Iterator<Item = f64>) -> u128 {
    let values: Vec<f64> = sorted.collect();
    tied_runs(values.len(), |i, j| values[i] == values[j])
}

fn tied_runs(n: usize, equal: impl Fn(usize, usize) -> bool) -> u128 {
    let (mut pairs, mut start) = (0, 0);
    for at in 1..=n {
        if at == n || !equal(start, at) {
            pairs += pairs_of((at - start) as u128);
            start = at;
        }
    }
    pairs
}

/// Sorts by merging and counts the pairs that were in the wrong order.
fn exchanges(values: &mut [f64], scratch: &mut [f64]) -> u128 {
    let n = values.len();
    if n < 2 {
        return 0;
    }
    let middle = n / 2;
    let mut count = exchanges(&mut values[..middle], &mut scratch[..middle])
        + exchanges(&mut values[middle..], &mut scratch[middle..]);
    let (mut left, mut right) = (0, middle);
    for slot in scratch.iter_mut() {
        if right == n || left < middle && values[left] <= values[right] {
            *slot = values[left];
            left += 1;
        } else {
            *slot = values[right];
            right += 1;
            count += (middle - left) as u128;
        }
    }
    values.copy_from_slice(scratch);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    /// The definition, pair by pair.
    fn slow(a: &[f64], b: &[f64]) -> f64 {
        let sign = |x: f64, y: f64| f64::from(i8::from(x > y) - i8::from(x < y));
        let (mut sum, mut in_a, mut in_b) = (0.0, 0.0, 0.0);
        for i in 0..a.len() {
            for j in 0..i {
                let (x, y) = (sign(a[i], a[j]), sign(b[i], b[j]));
                sum += x * y;
                in_a += x * x;
                in_b += y * y;
            }
        }
        sum / f64::sqrt(in_a * in_b)
    }

    #[test]
    fn tau_is_its_definition_with_and_without_ties() {
        let mut rng = mercer_data::random::stream(3, "kendall");
        for levels in [2.0, 5.0, 1e9] {
            for n in [2, 3, 10, 101, 256] {
                let mut draw = || (0..n).map(|_| f64::floor(rng.random::<f64>() * levels)).collect::<Vec<_>>();
                let (a, b) = (draw(), draw());
                match kendall_tau(&a, &b) {
                    Ok(tau) => assert!((tau - slow(&a, &b)).abs() < 1e-14, "{levels} {n}"),
                    Err(_) => assert!(slow(&a, &b).is_nan()),
                }
            }
        }
        assert!((kendall_tau(&[0.0, -0.0, 1.0], &[1.0, 1.0, 2.0]).unwrap() - 1.0).abs() < 1e-15);
        assert!(kendall_tau(&[f64::NAN, 1.0], &[1.0, 2.0]).is_err());
        assert!(kendall_tau(&[], &[]).is_err());
    }

    #[test]
    fn areas_by_hand() {
        let scores = [0.1, 0.4, 0.35, 0.8];
        let truth = [false, false, true, true];
        assert_eq!(area_under_roc(&scores, &truth).unwrap(), 0.75);
        assert!((area_under_precision_recall(&scores, &truth).unwrap() - (0.5 + 0.5 * 2.0 / 3.0)).abs() < 1e-15);
        assert_eq!(area_under_roc(&[1.0; 4], &truth).unwrap(), 0.5);
        assert!(area_under_roc(&scores, &[true; 4]).is_err());
        assert!(area_under_precision_recall(&scores, &[false; 4]).is_err());
    }
}
