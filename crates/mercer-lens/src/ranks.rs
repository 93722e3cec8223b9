//! Ranks, Spearman's correlation, and the mean of ranks.
//!
//! ```text
//! rank(xᵢ) = 1 + #{j : xⱼ < xᵢ} + (#{j : xⱼ = xᵢ} − 1)/2          the average rank of ties
//! ρ(x, y)  = Pearson's correlation of the ranks                    Spearman 1904
//! mean     = Σₘ wₘ uₘ / Σₘ wₘ,  uₘ = (rankₘ − ½)/n                 between 0 and 1, the largest near 1
//! joint    = 1 − Πₘ (1 − uₘ)^(wₘ / Σₘ wₘ)                          the same, with more regard for the largest
//! ```

use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::{LensError, Result};

/// The rank of every value from 1, with the average rank for ties.
///
/// ```
/// assert_eq!(mercer_lens::ranks::average_ranks(&[3.0, 1.0, 3.0])?, [2.5, 1.0, 2.5]);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For numbers that are not finite.
pub fn average_ranks(values: &[f64]) -> Result<Vec<f64>> {
    check_numbers("ranks", values)?;
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Zero is added so that −0 and 0 are equal.
    order.sort_unstable_by(|&i, &j| (values[i] + 0.0).total_cmp(&(values[j] + 0.0)));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = below as f64 + (group.len() + 1) as f64 / 2.0;
        group.iter().for_each(|&i| ranks[i] = rank);
        below += group.len();
    }
    Ok(ranks)
}

/// Spearman's rank correlation; `None` if all values of one side are equal, or there are fewer than two.
///
/// # Errors
/// For sides of different lengths, and numbers that are not finite.
pub fn spearman(a: &[f64], b: &[f64]) -> Result<Option<f64>> {
    check_rows("the other side of a rank correlation", a.len(), b.len())?;
    let (a, b) = (centred_ranks(a)?, centred_ranks(b)?);
    Ok(correlation(&a, &b))
}

/// Ranks minus their mean. They are multiples of one half, so sums of a million of them are exact.
pub(crate) fn centred_ranks(values: &[f64]) -> Result<Vec<f64>> {
    let mean = (values.len() + 1) as f64 / 2.0;
    Ok(average_ranks(values)?.into_iter().map(|rank| rank - mean).collect())
}

/// The correlation of centred values; `None` if one side is zero.
pub(crate) fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (own, other) = (dot(a, a), dot(b, b));
    (own > 0.0 && other > 0.0).then(|| (dot(a, b) / (own.sqrt() * other.sqrt())).clamp(-1.0, 1.0))
}

/// `(rank − ½)/n`, between 0 and 1.
///
/// # Errors
/// For numbers that are not finite.
pub fn normalised_ranks(values: &[f64]) -> Result<Vec<f64>> {
    let n = values.len() as f64;
    Ok(average_ranks(values)?.into_iter().map(|rank| (rank - 0.5) / n).collect())
}

/// The weighted mean of normalised ranks of several scores of the same samples; empty if there are no samples.
///
/// ```
/// use mercer_lens::ranks::mean_of_ranks;
/// let both = mean_of_ranks(&[(&[0.1, 0.9], 1.0), (&[5.0, 70.0], 2.0)])?;
/// assert_eq!(both, [0.25, 0.75]);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no scores, scores of different lengths, numbers that are not finite, and weights that are negative or all zero.
pub fn mean_of_ranks(scores: &[(&[f64], f64)]) -> Result<Vec<f64>> {
    weighted_sum(scores, |rank| rank)
}

/// One minus the weighted geometric mean of `1 − u`, with the normalised ranks `u` of several scores of the same samples.
/// A sample that is first in one list and in the middle of others comes before one that is a little above the middle in
/// all of them; in the mean of ranks it may not. With equal weights the order is that of Fisher's method for p-values.
///
/// ```
/// use mercer_lens::ranks::joint_ranks;
/// let both = joint_ranks(&[(&[0.1, 0.9], 1.0), (&[70.0, 5.0], 1.0)])?;
/// assert!((both[0] - (1.0 - (0.75_f64 * 0.25).sqrt())).abs() < 1e-12 && both[0] == both[1]);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// As [`mean_of_ranks`].
pub fn joint_ranks(scores: &[(&[f64], f64)]) -> Result<Vec<f64>> {
    let logarithms = weighted_sum(scores, |rank| (-rank).ln_1p())?;
    Ok(logarithms.into_iter().map(|sum| -sum.exp_m1()).collect())
}

/// The weighted mean of a function of normalised ranks.
fn weighted_sum(scores: &[(&[f64], f64)], of_rank: impl Fn(f64) -> f64) -> Result<Vec<f64>> {
    check_count("a mean of ranks", 1, scores.len())?;
    let n = scores[0].0.len();
    check_weights(scores.iter().map(|score| score.1))?;
    let total: f64 = scores.iter().map(|score| score.1).sum();
    let mut combined = vec![0.0; n];
    for (values, weight) in scores {
        check_rows("a list of scores", n, values.len())?;
        let ranks = normalised_ranks(values)?;
        combined.iter_mut().zip(ranks).for_each(|(sum, rank)| *sum += weight / total * of_rank(rank));
    }
    Ok(combined)
}

fn check_weights(weights: impl Iterator<Item = f64> + Clone) -> Result<()> {
    let refused = |weight: f64, reason| {
        Err(LensError::Setting { name: "the weight of a score", value: weight.to_string(), reason })
    };
    if let Some(weight) = weights.clone().find(|weight| !weight.is_finite() || *weight < 0.0) {
        return refused(weight, "it must be a finite number that is not negative");
    }
    if weights.sum::<f64>() > 0.0 { Ok(()) } else { refused(0.0, "at least one weight must be positive") }
}
