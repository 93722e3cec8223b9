//! How faithful a surrogate is to a network.
//!
//! Both give scores `s_c(x)`. They are compared at one class `y` per sample (the correct one, the predicted one, or a
//! fixed one) through the log-odds of its softmax probability,
//!
//! ```text
//! ℓ_y(x) = s_y(x) − log Σ_{c≠y} exp s_c(x) = log p_y/(1 − p_y)
//! ```
//!
//! - `τ` is Kendall's τ-b between the log-odds of both. The report (Engel et al. 2023, arXiv 2305.14585, "Evaluating the
//!   Faithfulness of Surrogate Models") takes the softmax probabilities instead, and counts ties as discordant:
//!   [`SoftmaxTau`]. Log-odds have the same order, and do not saturate.
//! - TAD is the accuracy of the surrogate minus that of the network.
//! - Agreement is the share of samples on which both decide for the same class.
//! - `R²` is that of the map from the surrogate's log-odds to the network's, with the network as the truth: the best
//!   line, and the best monotone step function (pool adjacent violators).
//!
//! Intervals are percentile bootstraps over the samples.

use crate::checks::{check_count, check_labels, check_rows};
use crate::error::Result;
use mercer_data::random::stream;
use mercer_learn::metrics::kendall_tau;
use ndarray::{ArrayView1, ArrayView2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Probabilities are compared in single precision, in which most networks return them.
const SATURATED: f64 = f32::EPSILON as f64 / 2.0;

/// How faithful a surrogate is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Faithfulness {
    /// Kendall's τ-b of the log-odds; none if all are equal.
    pub tau: Option<f64>,
    /// Its 95 % interval.
    pub tau_interval: Option<[f64; 2]>,
    /// Pairs of samples whose log-odds are tied in the network or the surrogate.
    pub n_ties: u64,
    /// Accuracy of the surrogate minus accuracy of the network; none without labels.
    pub tad: Option<f64>,
    /// Its 95 % interval.
    pub tad_interval: Option<[f64; 2]>,
    /// Share of samples on which both decide for the same class.
    pub agreement: f64,
    /// Its 95 % interval.
    pub agreement_interval: Option<[f64; 2]>,
    /// R² of the best line from the surrogate's log-odds to the network's.
    pub r2: Option<f64>,
    /// Its 95 % interval.
    pub r2_interval: Option<[f64; 2]>,
    /// R² of the best monotone function.
    pub r2_isotonic: Option<f64>,
    /// The line.
    pub line: Option<Line>,
    /// The same τ with softmax probabilities, as the report prints it.
    pub softmax: SoftmaxTau,
    /// The samples.
    pub n_samples: usize,
}

/// The line `network ≈ slope · surrogate + intercept` between log-odds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its slope.
    pub slope: f64,
    /// Its value at zero.
    pub intercept: f64,
}

impl Line {
    /// The value at a point.
    pub fn at(&self, x: f64) -> f64 {
        self.slope * x + self.intercept
    }
}

/// Kendall's τ of softmax probabilities in single precision, ties counted as discordant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SoftmaxTau {
    /// `(concordant − discordant) / (concordant + discordant)`; none for fewer than two samples.
    pub tau: Option<f64>,
    /// Pairs that are tied in the network or the surrogate.
    pub n_ties: u64,
    /// Samples whose probability is 0 or 1 in the network or the surrogate.
    pub n_saturated: usize,
}

/// The random draws of bootstrap intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many; none gives no intervals.
    pub draws: usize,
    /// Their seed.
    pub seed: u64,
}

/// `s_y − log Σ_{c≠y} exp s_c` of every row. Infinite if the other classes have no weight at all.
///
/// # Errors
/// For fewer than two classes, classes that do not exist, other numbers of rows, and scores that are not finite.
pub fn log_odds(scores: ArrayView2<'_, f64>, classes: &[usize]) -> Result<Vec<f64>> {
    let n_classes = scores.ncols();
    check_count("log-odds (columns)", 2, n_classes)?;
    check_rows("the classes", scores.nrows(), classes.len())?;
    mercer_linalg::check_finite("log-odds", scores)?;
    check_labels(classes, n_classes)?;
    Ok(scores.outer_iter().zip(classes).map(|(row, &class)| odds(row, class)).collect())
}

fn odds(row: ArrayView1<'_, f64>, class: usize) -> f64 {
    let others = || row.iter().enumerate().filter(move |(at, _)| *at != class).map(|(_, &score)| score);
    let most = others().fold(f64::NEG_INFINITY, f64::max);
    row[class] - most - others().map(|score| (score - most).exp()).sum::<f64>().ln()
}

/// The class with the largest score of every row; the first one on ties.
pub fn decisions(scores: ArrayView2<'_, f64>) -> Vec<usize> {
    let best = |row: ArrayView1<'_, f64>| {
        let better = |best: usize, (at, &score): (usize, &f64)| if score > row[best] { at } else { best };
        row.iter().enumerate().fold(0, better)
    };
    scores.outer_iter().map(best).collect()
}

/// Compares the scores of a surrogate with those of a network on the same samples (rows) and classes (columns), at one
/// class per sample. `truth` are the correct classes.
///
/// ```
/// use mercer_lens::{Bootstrap, faithfulness};
/// use ndarray::array;
///
/// let network = array![[2.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.5, 0.0]];
/// let found = faithfulness(network.view(), (&network * 0.5).view(), &[0; 4], None, Bootstrap { draws: 0, seed: 0 })?;
/// assert_eq!((found.tau, found.agreement), (Some(1.0), 1.0));
/// assert!((found.line.unwrap().slope - 2.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// As [`log_odds`], for no samples, and for scores of different shapes.
pub fn faithfulness(
    network: ArrayView2<'_, f64>,
    surrogate: ArrayView2<'_, f64>,
    classes: &[usize],
    truth: Option<&[usize]>,
    bootstrap: Bootstrap,
) -> Result<Faithfulness> {
    let n_samples = network.nrows();
    check_count("faithfulness", 1, n_samples)?;
    for (what, expected, found) in [
        ("the surrogate's scores", n_samples, surrogate.nrows()),
        ("the transposed scores of the surrogate", network.ncols(), surrogate.ncols()),
        ("the correct classes", n_samples, truth.map_or(n_samples, <[usize]>::len)),
    ] {
        check_rows(what, expected, found)?;
    }
    let (a, b) = (log_odds(network, classes)?, log_odds(surrogate, classes)?);
    let (own, other) = (decisions(network), decisions(surrogate));
    let same: Vec<f64> = own.iter().zip(&other).map(|(a, b)| f64::from(u8::from(a == b))).collect();
    let gain: Option<Vec<f64>> = truth.map(|truth| {
        let right = |decided: &[usize], at: usize| f64::from(u8::from(decided[at] == truth[at]));
        (0..n_samples).map(|at| right(&other, at) - right(&own, at)).collect()
    });
    let line = line(&b, &a);
    let intervals = Intervals::draw(&a, &b, &same, gain.as_deref(), bootstrap);
    Ok(Faithfulness {
        tau: kendall_tau(&a, &b).ok(),
        tau_interval: intervals.tau,
        n_ties: ties(&a, &b),
        tad: gain.as_deref().map(mean),
        tad_interval: intervals.tad,
        agreement: mean(&same),
        agreement_interval: intervals.agreement,
        r2: line.map(|line| r_squared(&a, b.iter().map(|&x| line.at(x)))).unwrap_or_default(),
        r2_interval: intervals.r2,
        r2_isotonic: r_squared(&a, isotonic(&b, &a).into_iter()),
        line,
        softmax: softmax_tau(&a, &b),
        n_samples,
    })
}

/// As the report prints it.
fn softmax_tau(a: &[f64], b: &[f64]) -> SoftmaxTau {
    let share = |odds: &f64| f64::from((1.0 / (1.0 + (-odds).exp())) as f32);
    let (p, q): (Vec<f64>, Vec<f64>) = (a.iter().map(share).collect(), b.iter().map(share).collect());
    let is_saturated = |p: &f64| *p <= SATURATED || *p >= 1.0 - SATURATED;
    let n_saturated = p.iter().zip(&q).filter(|(p, q)| is_saturated(p) || is_saturated(q)).count();
    let (pairs, n_ties) = (pairs(p.len()), ties(&p, &q));
    // τ-b = S / √((n₀ − n₁)(n₀ − n₂)), with S = concordant − discordant over untied pairs.
    let untied = |values: &[f64]| pairs - ties(values, values);
    let scale = (untied(&p) as f64).sqrt() * (untied(&q) as f64).sqrt();
    let balance = kendall_tau(&p, &q).map_or(0.0, |tau| tau * scale);
    let tau = (pairs > 0).then(|| (balance.round() - n_ties as f64) / pairs as f64);
    SoftmaxTau { tau, n_ties, n_saturated }
}

fn pairs(n: usize) -> u64 {
    (n as u64) * (n as u64).saturating_sub(1) / 2
}

/// Pairs that are tied in the first, the second, or both.
fn ties(a: &[f64], b: &[f64]) -> u64 {
    let count = |mut keys: Vec<(f64, f64)>| {
        keys.sort_unstable_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
        keys.chunk_by(|x, y| x == y).map(|run| pairs(run.len())).sum::<u64>()
    };
    let zero = |x: &f64| if *x == 0.0 { 0.0 } else { *x };
    let both = || a.iter().map(zero).zip(b.iter().map(zero));
    count(both().map(|(x, _)| (x, 0.0)).collect()) + count(both().map(|(_, y)| (y, 0.0)).collect())
        - count(both().collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The least-squares line from `x` to `y`; none if `x` is constant.
fn line(x: &[f64], y: &[f64]) -> Option<Line> {
    let (mx, my) = (mean(x), mean(y));
    let spread: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    let together: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = together / spread;
    (spread > 0.0 && slope.is_finite()).then_some(Line { slope, intercept: my - slope * mx })
}

/// `1 − Σ(y − ŷ)² / Σ(y − ȳ)²`; none for constant `y`.
fn r_squared(truth: &[f64], fitted: impl Iterator<Item = f64>) -> Option<f64> {
    let middle = mean(truth);
    let all: f64 = truth.iter().map(|y| (y - middle).powi(2)).sum();
    let left: f64 = truth.iter().zip(fitted).map(|(y, fitted)| (y - fitted).powi(2)).sum();
    let found = 1.0 - left / all;
    (all > 0.0 && found.is_finite()).then_some(found)
}

/// The non-decreasing function of `x` nearest to `y`, at the points: adjacent blocks that are out of order are pooled.
/// Points with the same `x` have the same value.
pub fn isotonic(x: &[f64], y: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    // Sums and counts of blocks, and where they begin.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let mut at = 0;
    for run in order.chunk_by(|&i, &j| x[i] == x[j]) {
        blocks.push((run.iter().map(|&i| y[i]).sum(), run.len() as f64, at));
        at += run.len();
        while let [.., (before, n_before, start), (sum, n, _)] = blocks[..] {
            if before / n_before < sum / n {
                break;
            }
            blocks.truncate(blocks.len() - 2);
            blocks.push((before + sum, n_before + n, start));
        }
    }
    let mut fitted = vec![0.0; x.len()];
    for (block, &(sum, n, start)) in blocks.iter().enumerate() {
        let end = blocks.get(block + 1).map_or(x.len(), |next| next.2);
        order[start..end].iter().for_each(|&i| fitted[i] = sum / n);
    }
    fitted
}

/// Percentile intervals of all measures, from the same draws.
#[derive(Default)]
struct Intervals {
    tau: Option<[f64; 2]>,
    tad: Option<[f64; 2]>,
    agreement: Option<[f64; 2]>,
    r2: Option<[f64; 2]>,
}

impl Intervals {
    fn draw(a: &[f64], b: &[f64], same: &[f64], gain: Option<&[f64]>, bootstrap: Bootstrap) -> Self {
        let mut random = stream(bootstrap.seed, "bootstrap of faithfulness");
        let n = a.len();
        let [mut taus, mut tads, mut agreements, mut r2s] = [const { Vec::new() }; 4];
        for _ in 0..bootstrap.draws {
            let rows: Vec<usize> = (0..n).map(|_| random.random_range(0..n)).collect();
            let take = |values: &[f64]| rows.iter().map(|&row| values[row]).collect::<Vec<f64>>();
            let (x, y) = (take(b), take(a));
            taus.extend(kendall_tau(&y, &x).ok());
            r2s.extend(line(&x, &y).and_then(|line| r_squared(&y, x.iter().map(|&x| line.at(x)))));
            agreements.push(mean(&take(same)));
            tads.extend(gain.map(|gain| mean(&take(gain))));
        }
        Self { tau: interval(taus), tad: interval(tads), agreement: interval(agreements), r2: interval(r2s) }
    }
}

/// The middle 95 % of the draws; none for fewer than forty.
fn interval(mut draws: Vec<f64>) -> Option<[f64; 2]> {
    const LEAST: usize = 40;
    if draws.len() < LEAST {
        return None;
    }
    draws.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| draws[(share * (draws.len() - 1) as f64).round() as usize];
    Some([at(0.025), at(0.975)])
}
