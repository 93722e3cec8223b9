//! Bulk and spikes: which eigenvalues of a matrix are more than noise?
//!
//! **Variance.** The bulk of the eigenvalues of `WWᵀ/d` is compared with the law of Marchenko and Pastur
//! ([`MarchenkoPastur`]) of the matrix's shape. Its variance is fitted to the middle half of the bulk: with the
//! eigenvalues `x₍ᵢ₎` of the bulk in ascending order and the quantiles `Q` of the law with variance 1,
//!
//! ```text
//! σ² = Σ x₍ᵢ₎ / Σ Q((i − ½)/m),   m/4 < i ≤ 3m/4
//! ```
//!
//! Then the eigenvalues beyond the edge leave the bulk and the variance is fitted again, until none leaves or returns.
//! Spikes thus have no influence, unless they are a quarter of all eigenvalues.
//!
//! **Edge.** In a finite matrix the largest eigenvalue of noise is not at `λ₊`. It is `σ²/d · (μ + τ·X)`, with `X` of
//! Tracy and Widom's law (real case) and
//!
//! ```text
//! μ = (√(h−½) + √(d−½))²,   τ = (√(h−½) + √(d−½)) (1/√(h−½) + 1/√(d−½))^⅓
//! ```
//!
//! (Johnstone, Annals of Statistics 29, 2001; the halves: Ma, Bernoulli 18, 2012). A spike lies above the 99 % quantile
//! of `X`, 2.0234. In pure noise of known variance one matrix in a hundred has one; the variance is estimated, so it is
//! up to two in a hundred (the tests count them).
//!
//! **Strength.** Baik, Ben Arous and Péché (Annals of Probability 33, 2005; real matrices: Baik and Silverstein,
//! Journal of Multivariate Analysis 97, 2006): if the columns of `W` have a covariance with one eigenvalue
//! `σ²(1 + s)`, or `W` is noise plus `θuvᵀ` with `s = θ²/(σ²d)`, then for `s > √q`
//!
//! ```text
//! λ = σ² (1 + s)(q + s)/s        |⟨u, û⟩|² = (s² − q)/(s(s + q)),   |⟨v, v̂⟩|² = (s² − q)/(s(s + 1))
//! ```
//!
//! (the overlaps: Benaych-Georges and Nadakuditi, Journal of Multivariate Analysis 111, 2012). The first is solved for
//! `s`. Below `√q` a signal leaves no spike.
//!
//! **Null.** [`shuffled`] permutes the entries of the matrix. This keeps their distribution, heavy tails included, and
//! destroys everything else. WeightWatcher does the same with its option `randomize`, and reports the largest
//! eigenvalue of the shuffled matrix as `max_rand_eval`.

use super::MarchenkoPastur;
use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::{LensError, Result};
use mercer_data::random::stream;
use mercer_linalg::{check_finite, thin_svd};
use ndarray::{Array2, ArrayView2};
use rand::seq::SliceRandom;
use serde::Serialize;

/// The 99 % quantile of Tracy and Widom's law for real matrices.
const TRACY_WIDOM_99: f64 = 2.0234;

/// More rounds have not been needed; the set of spikes may in principle alternate.
const ROUNDS: usize = 50;

/// An eigenvalue beyond the edge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spike {
    /// The eigenvalue.
    pub value: f64,
    /// Its distance from `μ` in units of the Tracy–Widom scale. Noise exceeds 2.0234 once in a hundred matrices.
    pub margin: f64,
    /// The eigenvalue of the population, `σ²(1 + s)`; `None` if the spike is below the transition.
    pub population: Option<f64>,
    /// The singular value `θ` of the planted part.
    pub planted: Option<f64>,
    /// The expected cosine of the left singular vector (length `h`) and that of the planted part.
    pub left_overlap: Option<f64>,
    /// The expected cosine of the right singular vector (length `d`) and that of the planted part.
    pub right_overlap: Option<f64>,
}

/// The law that fits the bulk, and what it does not explain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bulk {
    /// `WWᵀ/d`: of which matrix these are the eigenvalues.
    pub normalisation: &'static str,
    /// `h`.
    pub rows: usize,
    /// `d`.
    pub columns: usize,
    /// The law, with the fitted variance.
    pub law: MarchenkoPastur,
    /// `λ₋`.
    pub lower_edge: f64,
    /// `λ₊`.
    pub upper_edge: f64,
    /// Eigenvalues above this are spikes: the 99 % quantile of the largest eigenvalue of noise.
    pub threshold: f64,
    /// The Tracy–Widom scale `σ²τ/d`: how far the largest eigenvalue of noise varies.
    pub edge_scale: f64,
    /// The Kolmogorov–Smirnov distance of the bulk, without spikes, from the law.
    pub distance: f64,
    /// The number of eigenvalues in the bulk.
    pub n_bulk: usize,
    /// How many of them are below `λ₋` by more than the edge scale.
    pub n_below: usize,
    /// The spikes, largest first.
    pub spikes: Vec<Spike>,
}

/// The eigenvalues beyond those of the shuffled matrix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AgainstShuffled {
    /// The largest eigenvalue of the shuffled matrix.
    pub edge: f64,
    /// The number of eigenvalues of the matrix above it.
    pub n_above: usize,
    /// The largest eigenvalue of the matrix, divided by the edge; `None` if the edge is zero.
    pub excess: Option<f64>,
}

/// The eigenvalues of `WWᵀ/d`, descending: the `min(h, d)` that are not zero by the shape of `W`.
///
/// # Errors
/// For a matrix that is empty or not finite, and singular values that do not converge.
pub fn eigenvalues(matrix: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
    check_count("a spectrum", 1, matrix.nrows().min(matrix.ncols()))?;
    Ok(squared(&thin_svd(matrix)?.values.to_vec(), matrix.ncols()))
}

/// The eigenvalues of `WWᵀ/d` from the singular values of `W` with `d` columns.
pub fn squared(singular_values: &[f64], columns: usize) -> Vec<f64> {
    // Divided first, so that squares do not overflow earlier than they must.
    let root = (columns.max(1) as f64).sqrt();
    singular_values.iter().map(|value| (value / root).powi(2)).collect()
}

/// Fits the law to the eigenvalues of `WWᵀ/d` for a matrix of this shape, in any order; `None` if the middle half of
/// them is zero, so that there is no bulk.
///
/// ```
/// use mercer_lens::spectra::{MarchenkoPastur, bulk};
/// // Noise of variance 1, and a spike of strength 3: seen at (1 + 3)(½ + 3)/3.
/// let law = MarchenkoPastur::new(0.5, 1.0)?;
/// let mut values = (0..50).map(|i| law.quantile((i as f64 + 0.5) / 50.0)).collect::<Result<Vec<_>, _>>()?;
/// values[49] = 14.0 / 3.0;
/// let found = bulk(&values, 50, 100)?.unwrap();
/// assert!((found.law.variance() - 1.0).abs() < 0.05);
/// assert!((found.spikes[0].population.unwrap() - 4.0).abs() < 0.1);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no eigenvalues, another number than `min(rows, columns)`, and numbers that are negative beyond rounding or not
/// finite.
pub fn bulk(eigenvalues: &[f64], rows: usize, columns: usize) -> Result<Option<Bulk>> {
    check_count("a bulk", 1, eigenvalues.len())?;
    check_rows("the list of eigenvalues", rows.min(columns), eigenvalues.len())?;
    let ascending = sorted(eigenvalues)?;
    let unit = MarchenkoPastur::new(rows as f64 / columns as f64, 1.0)?;
    let (centre, scale) = edge_of_noise(rows, columns);
    let largest = ascending[ascending.len() - 1];
    let rounding = (rows.max(columns) as f64 * f64::EPSILON).powi(2) * largest;
    let (mut n_bulk, mut variance) = (ascending.len(), 0.0);
    for _ in 0..ROUNDS {
        variance = middle_variance(&ascending[..n_bulk], &unit)?;
        if !(variance > rounding && variance > f64::MIN_POSITIVE && variance.is_finite()) {
            return Ok(None);
        }
        let threshold = variance * (centre + TRACY_WIDOM_99 * scale);
        let kept = ascending.partition_point(|value| *value <= threshold);
        if kept == n_bulk || kept == 0 {
            break;
        }
        n_bulk = kept;
    }
    let law = MarchenkoPastur::new(unit.ratio(), variance)?;
    let spikes = ascending[n_bulk..].iter().rev().map(|&value| spike(value, &law, columns, centre, scale)).collect();
    let below = law.lower_edge() - variance * scale;
    Ok(Some(Bulk {
        normalisation: "WWᵀ/d",
        rows,
        columns,
        law,
        lower_edge: law.lower_edge(),
        upper_edge: law.upper_edge(),
        threshold: variance * (centre + TRACY_WIDOM_99 * scale),
        edge_scale: variance * scale,
        distance: distance(&ascending[..n_bulk], |x| law.cdf(x)),
        n_bulk,
        n_below: ascending.partition_point(|value| *value < below),
        spikes,
    }))
}

/// The eigenvalues of `WWᵀ/d` after a random permutation of all entries of `W`, descending.
///
/// # Errors
/// As [`eigenvalues`].
pub fn shuffled(matrix: ArrayView2<'_, f64>, seed: u64) -> Result<Vec<f64>> {
    check_finite("a shuffled matrix", matrix)?;
    let mut entries: Vec<f64> = matrix.iter().copied().collect();
    entries.shuffle(&mut stream(seed, "lens/spectra/shuffled"));
    let copy = Array2::from_shape_vec(matrix.dim(), entries).unwrap_or_else(|_| matrix.to_owned());
    eigenvalues(copy.view())
}

/// The eigenvalues of a matrix beside those of the shuffled one.
///
/// # Errors
/// For no eigenvalues, and numbers that are negative beyond rounding or not finite.
pub fn against_shuffled(eigenvalues: &[f64], shuffled: &[f64]) -> Result<AgainstShuffled> {
    check_count("a comparison with a shuffled matrix", 1, eigenvalues.len().min(shuffled.len()))?;
    let (own, null) = (sorted(eigenvalues)?, sorted(shuffled)?);
    let edge = null[null.len() - 1];
    let n_above = own.len() - own.partition_point(|value| *value <= edge);
    let excess = Some(own[own.len() - 1] / edge).filter(|excess| excess.is_finite());
    Ok(AgainstShuffled { edge, n_above, excess })
}

/// `s` of a spike at `x = λ/σ²`, the larger root of `s² − (x − 1 − q)s + q = 0`; `None` up to the edge.
///
/// ```
/// // A spike of strength 3 at q = ½ is seen at (1 + 3)(½ + 3)/3.
/// assert!((mercer_lens::spectra::spike_strength(14.0 / 3.0, 0.5).unwrap() - 3.0).abs() < 1e-12);
/// ```
pub fn spike_strength(x: f64, ratio: f64) -> Option<f64> {
    let half = 0.5 * (x - 1.0 - ratio);
    let square = half * half - ratio;
    (half > 0.0 && square > 0.0 && square.is_finite()).then(|| half + square.sqrt())
}

fn spike(value: f64, law: &MarchenkoPastur, columns: usize, centre: f64, scale: f64) -> Spike {
    let (q, x) = (law.ratio(), value / law.variance());
    let strength = spike_strength(x, q);
    let overlap = |other: f64| strength.map(|s| ((s * s - q) / (s * (s + other))).clamp(0.0, 1.0).sqrt());
    Spike {
        value,
        margin: (x - centre) / scale,
        population: strength.map(|s| law.variance() * (1.0 + s)),
        planted: strength.map(|s| (law.variance() * s * columns as f64).sqrt()),
        left_overlap: overlap(q),
        right_overlap: overlap(1.0),
    }
}

/// `μ/d` and `τ/d`.
fn edge_of_noise(rows: usize, columns: usize) -> (f64, f64) {
    let (h, d) = ((rows as f64 - 0.5).sqrt(), (columns as f64 - 0.5).sqrt());
    let both = h + d;
    (both * both / columns as f64, both * (1.0 / h + 1.0 / d).cbrt() / columns as f64)
}

/// The ratio of the middle half of ascending values to that of the law.
fn middle_variance(values: &[f64], unit: &MarchenkoPastur) -> Result<f64> {
    let n = values.len();
    let middle = n / 4..(n - n / 4);
    let mut expected = 0.0;
    for i in middle.clone() {
        expected += unit.quantile((i as f64 + 0.5) / n as f64)?;
    }
    Ok(values[middle].iter().sum::<f64>() / expected)
}

/// The largest distance of the empirical distribution of ascending values from a distribution function.
pub(super) fn distance(ascending: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let n = ascending.len() as f64;
    let at = |(i, &x): (usize, &f64)| (cdf(x) - i as f64 / n).abs().max(((i + 1) as f64 / n - cdf(x)).abs());
    ascending.iter().enumerate().map(at).fold(0.0, f64::max)
}

/// Eigenvalues of a positive semidefinite matrix, ascending. Negative ones within rounding become zero.
pub(super) fn sorted(values: &[f64]) -> Result<Vec<f64>> {
    check_numbers("eigenvalues", values)?;
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(*value));
    let rounding = 16.0 * values.len() as f64 * f64::EPSILON * largest;
    if let Some(row) = values.iter().position(|value| *value < -rounding) {
        let reason = "it must not be negative beyond rounding";
        return Err(LensError::Range { what: "the eigenvalue", row, value: values[row], reason });
    }
    let mut ascending: Vec<f64> = values.iter().map(|value| value.max(0.0)).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    Ok(ascending)
}
