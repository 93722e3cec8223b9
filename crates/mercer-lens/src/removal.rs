//! Removal curves: what happens to a query when the training samples with its highest scores are left out?
//!
//! For every query the `k` samples with the highest scores are removed and the network is trained again. Its output for
//! the query should then fall more than after removing `k` random samples. An output is a margin: positive while the
//! query has its decision. With `yᵩ` the output of a query with all data,
//!
//! ```text
//! drop(k)   = mean over q of (yᵩ − yᵩ(k))           flipped(k) = share of the queries with yᵩ > 0 that have yᵩ(k) ≤ 0
//! area      = (1/k_max) ∫₀^{k_max} (drop by score − drop at random) dk          trapezoids from the origin
//! ```
//!
//! The smallest `k` that flips a query is its brittleness (Ilyas et al. 2022, arXiv 2202.00622; Park et al. 2023, arXiv
//! 2303.14186).

use crate::average::Average;
use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::{LensError, Result};
use mercer_linalg::check_finite;
use ndarray::{ArrayView1, ArrayView2};
use serde::Serialize;

/// A point of a removal curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RemovalPoint {
    /// How many samples were removed.
    pub removed: usize,
    /// The mean drop of the output after removal by score.
    pub by_score: f64,
    /// The mean drop of the output after random removal.
    pub at_random: f64,
    /// The difference of both, paired over queries.
    pub difference: Average,
    /// The share of decisions that removal by score changes; `None` if no query had its decision.
    pub flipped_by_score: Option<f64>,
    /// The share of decisions that random removal changes; `None` if no query had its decision.
    pub flipped_at_random: Option<f64>,
}

/// A removal curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovalCurve {
    /// The points, by the number of removed samples.
    pub points: Vec<RemovalPoint>,
    /// The mean distance between the curves, positive if removal by score does more.
    pub area: f64,
    /// The smallest number of removed samples that flips each query; `None` if none of them does, or the query did not
    /// have its decision.
    pub brittleness: Vec<Option<usize>>,
}

/// Compares removal by score with random removal.
///
/// `removed` is ascending. `by_score` and `at_random` have a row per number of removed samples and a column per query;
/// `at_random` may be a mean over several draws. `intact` has the outputs of the network trained on all data.
///
/// # Errors
/// For no queries, no points, numbers of samples that do not ascend from 1, sizes that do not agree, and numbers that
/// are not finite.
pub fn removal_curve(
    removed: &[usize],
    intact: &[f64],
    by_score: ArrayView2<'_, f64>,
    at_random: ArrayView2<'_, f64>,
) -> Result<RemovalCurve> {
    check_count("a removal curve", 1, intact.len())?;
    check_numbers("outputs", intact)?;
    if removed.first().is_none_or(|&first| first == 0) || removed.windows(2).any(|pair| pair[0] >= pair[1]) {
        let (name, value) = ("the numbers of removed samples", format!("{removed:?}"));
        return Err(LensError::Setting { name, value, reason: "they must ascend, from at least 1" });
    }
    for outputs in [by_score, at_random] {
        check_rows("the outputs after removal", removed.len(), outputs.nrows())?;
        check_rows("the transposed outputs after removal", intact.len(), outputs.ncols())?;
        check_finite("outputs after removal", outputs)?;
    }
    let decided = intact.iter().filter(|output| **output > 0.0).count();
    let flipped = |outputs: ArrayView1<'_, f64>| {
        let count = intact.iter().zip(outputs).filter(|(intact, output)| **intact > 0.0 && **output <= 0.0).count();
        (decided > 0).then(|| count as f64 / decided as f64)
    };
    let drop = |outputs: ArrayView1<'_, f64>| {
        intact.iter().zip(outputs).map(|(intact, output)| intact - output).sum::<f64>() / intact.len() as f64
    };
    let mut points = Vec::new();
    let (mut area, mut last) = (0.0, (0, 0.0));
    for (&removed, (scored, random)) in removed.iter().zip(by_score.outer_iter().zip(at_random.outer_iter())) {
        let differences: Vec<f64> = scored.iter().zip(random).map(|(scored, random)| random - scored).collect();
        let Some(difference) = Average::of(&differences, 0, 0) else { continue };
        area += (removed - last.0) as f64 * (difference.mean + last.1) / 2.0;
        last = (removed, difference.mean);
        points.push(RemovalPoint {
            removed,
            by_score: drop(scored),
            at_random: drop(random),
            difference,
            flipped_by_score: flipped(scored),
            flipped_at_random: flipped(random),
        });
    }
    let first_flip = |(query, &intact): (usize, &f64)| {
        let flips = |place: &usize| intact > 0.0 && by_score[[*place, query]] <= 0.0;
        (0..removed.len()).find(flips).map(|place| removed[place])
    };
    let brittleness = intact.iter().enumerate().map(first_flip).collect();
    Ok(RemovalCurve { points, area: area / last.0 as f64, brittleness })
}
