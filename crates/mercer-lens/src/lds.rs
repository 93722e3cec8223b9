//! The linear datamodelling score: do attribution scores predict what networks trained on part of the data do?
//!
//! For `S` random subsets of the training data, a network is trained on each, and its output `y_{s,q}` is recorded for
//! every query `q`. Attribution scores `τ_{q,i}` predict it by a sum over the samples that were kept. The score of a query
//! is the rank correlation of both over the subsets (Park, Georgiev, Ilyas, Leclerc and Mądry, TRAK, 2023, arXiv
//! 2303.14186, section 2):
//!
//! ```text
//! LDS(q) = Spearman over s of ( Σ_{i ∈ s} τ_{q,i},  y_{s,q} )
//! ```
//!
//! **Sign.** A sample that increases the output when it is kept has a positive score. If the output is a loss, helpful
//! samples have negative scores.
//!
//! **Undefined queries.** If the output of a query is the same for all subsets, there is nothing to predict: the query
//! is left out and counted. If the output varies but the prediction does not, the scores say nothing: the query counts
//! as zero.
//!
//! **Significance.** Two-sided permutation test at 5 %: the outputs of a query are exchanged between subsets 999 times,
//! `p = (1 + #{|ρ_perm| ≥ |ρ|})/1000`. All queries use the same permutations.
//!
//! **Noise ceiling.** Training is random, so even perfect scores do not reach 1. With a second output `y'` per subset,
//! from another seed, the reliability is `r = mean over q of Spearman(y, y')`. Predictions are then compared with the mean
//! of both outputs, whose reliability is `2r/(1 + r)` (Spearman 1910, Brown 1910). The correlation of the noise-free
//! output with a measured one is the root of its reliability:
//!
//! ```text
//! ceiling = √(2r/(1 + r))
//! ```
//!
//! This is exact for linear correlation and independent noise, and an approximation for ranks. A prediction can exceed
//! it by chance.

use crate::average::Average;
use crate::checks::{check_count, check_rows};
use crate::error::Result;
use crate::ranks::{centred_ranks, correlation};
use mercer_data::random::stream;
use mercer_linalg::{check_finite, matmul};
use ndarray::{Array2, ArrayView2};
use rand::seq::SliceRandom;
use serde::Serialize;

/// The number of permutations of the test.
const PERMUTATIONS: usize = 999;
/// The level of the test.
const LEVEL: f64 = 0.05;

/// Settings of the uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Uncertainty {
    /// The number of bootstrap samples of the queries; 0 for no interval.
    pub resamples: usize,
    /// The seed of the bootstrap and of the permutation test.
    pub seed: u64,
}

impl Default for Uncertainty {
    fn default() -> Self {
        Self { resamples: 2000, seed: 0 }
    }
}

/// How well scores predict retrained networks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Datamodelling {
    /// The rank correlation of every query; `None` if its output is constant.
    pub per_query: Vec<Option<f64>>,
    /// Its mean over queries; `None` if all outputs are constant.
    pub score: Option<Average>,
    /// The share of queries whose correlation is significant; `None` if all outputs are constant.
    pub significant: Option<f64>,
    /// The number of queries whose output is constant.
    pub constant_outputs: usize,
    /// The number of other queries whose prediction is constant; they count as zero.
    pub constant_predictions: usize,
    /// The number of subsets.
    pub subsets: usize,
    /// What perfect scores could reach; `None` without second outputs.
    pub ceiling: Option<Ceiling>,
}

/// What perfect scores could reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// The rank correlation of outputs of two seeds, its mean over queries; `None` if all outputs are constant.
    pub reliability: Option<Average>,
    /// The correlation of the noise-free output with the mean of two measured ones; `None` unless the reliability is
    /// positive.
    pub ceiling: Option<f64>,
}

/// The linear datamodelling score.
///
/// `scores` has a row per query and a column per training sample. `kept` has a row per subset and a column per training
/// sample. `outputs`, and `again` for a second seed, have a row per subset and a column per query.
///
/// ```
/// use mercer_lens::lds::{Uncertainty, datamodelling};
/// use ndarray::array;
/// let scores = array![[1.0, 2.0, 4.0]];
/// let kept = array![[true, false, false], [false, true, false], [true, true, false], [false, false, true]];
/// let outputs = array![[0.1], [0.2], [0.3], [0.4]];
/// let found = datamodelling(scores.view(), kept.view(), outputs.view(), None, Uncertainty::default())?;
/// assert!((found.score.unwrap().mean - 1.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no queries, no samples, fewer than two subsets, sizes that do not agree, and numbers that are not finite.
pub fn datamodelling(
    scores: ArrayView2<'_, f64>,
    kept: ArrayView2<'_, bool>,
    outputs: ArrayView2<'_, f64>,
    again: Option<ArrayView2<'_, f64>>,
    uncertainty: Uncertainty,
) -> Result<Datamodelling> {
    let (n_queries, n_subsets) = (scores.nrows(), kept.nrows());
    check_count("a datamodelling score over queries", 1, n_queries)?;
    check_count("a datamodelling score over subsets", 2, n_subsets)?;
    check_count("a datamodelling score", 1, scores.ncols())?;
    check_rows("the transposed subsets", scores.ncols(), kept.ncols())?;
    check_finite("attribution scores", scores)?;
    for outputs in [Some(outputs), again].into_iter().flatten() {
        check_rows("the outputs of retrained networks", n_subsets, outputs.nrows())?;
        check_rows("the transposed outputs of retrained networks", n_queries, outputs.ncols())?;
        check_finite("outputs of retrained networks", outputs)?;
    }
    // Halves first, so that the sum stays finite.
    let targets = again.map_or_else(|| outputs.to_owned(), |again| &(&outputs / 2.0) + &(&again / 2.0));
    let predictions = matmul(kept.mapv(|kept| f64::from(u8::from(kept))).view(), scores.t());
    check_finite("sums of attribution scores", predictions.view())?;

    let permutations = Permutations::new(n_subsets, uncertainty.seed);
    let (mut per_query, mut significant, mut constant_predictions) = (Vec::new(), 0_usize, 0);
    for query in 0..n_queries {
        let target = centred_ranks(&targets.column(query).to_vec())?;
        let prediction = centred_ranks(&without_rounding(&predictions, scores, query))?;
        if target.iter().all(|rank| *rank == 0.0) {
            per_query.push(None);
            continue;
        }
        let found = correlation(&prediction, &target);
        constant_predictions += usize::from(found.is_none());
        significant += usize::from(found.is_some() && permutations.p_value(&prediction, &target) <= LEVEL);
        per_query.push(Some(found.unwrap_or(0.0)));
    }
    let defined: Vec<f64> = per_query.iter().flatten().copied().collect();
    let Uncertainty { resamples, seed } = uncertainty;
    Ok(Datamodelling {
        score: Average::of(&defined, resamples, seed),
        significant: (!defined.is_empty()).then(|| significant as f64 / defined.len() as f64),
        constant_outputs: n_queries - defined.len(),
        constant_predictions,
        subsets: n_subsets,
        ceiling: again.map(|again| ceiling(outputs, again, uncertainty)).transpose()?,
        per_query,
    })
}

/// The noise ceiling from the outputs of two seeds, each with a row per subset and a column per query.
fn ceiling(first: ArrayView2<'_, f64>, second: ArrayView2<'_, f64>, uncertainty: Uncertainty) -> Result<Ceiling> {
    let mut correlations = Vec::new();
    for (a, b) in first.columns().into_iter().zip(second.columns()) {
        correlations.extend(correlation(&centred_ranks(&a.to_vec())?, &centred_ranks(&b.to_vec())?));
    }
    let reliability = Average::of(&correlations, uncertainty.resamples, uncertainty.seed);
    let root = |average: Average| (2.0 * average.mean / (1.0 + average.mean)).sqrt();
    Ok(Ceiling { reliability, ceiling: reliability.filter(|average| average.mean > 0.0).map(root) })
}

/// The predictions of a query. Sums that are equal but for rounding are made equal, because ranks would see the
/// difference: they are rounded to 10⁻¹² of the largest sum of magnitudes.
fn without_rounding(predictions: &Array2<f64>, scores: ArrayView2<'_, f64>, query: usize) -> Vec<f64> {
    let size: f64 = scores.row(query).iter().map(|score| score.abs()).sum();
    let step = size * 1e-12;
    let rounded = |x: &f64| if step > 0.0 && step.is_finite() { (x / step).round() } else { *x };
    predictions.column(query).iter().map(rounded).collect()
}

/// Permutations of the subsets.
struct Permutations(Vec<Vec<usize>>);

impl Permutations {
    fn new(n: usize, seed: u64) -> Self {
        let mut random = stream(seed, "lens/lds/permutations");
        let draw = |_| {
            let mut order: Vec<usize> = (0..n).collect();
            order.shuffle(&mut random);
            order
        };
        Self((0..PERMUTATIONS).map(draw).collect())
    }

    /// For centred ranks, the covariance decides: the variances are the same for all permutations, and sums of ranks
    /// are exact.
    fn p_value(&self, a: &[f64], b: &[f64]) -> f64 {
        let own: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        let other = |order: &Vec<usize>| a.iter().zip(order).map(|(a, &at)| a * b[at]).sum::<f64>();
        let extreme = self.0.iter().filter(|order| other(order).abs() >= own.abs()).count();
        (1 + extreme) as f64 / (1 + self.0.len()) as f64
    }
}
