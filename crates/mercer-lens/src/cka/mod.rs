//! Debiased CKA of two kernels on the same samples: from Gram matrices, from strips of them, from features, and with a
//! permutation test.
//!
//! ```text
//! CKA = H(K, L) / √(H(K, K)·H(L, L))
//! H(K, L) = [ tr K̃L̃ + (1ᵀK̃1)(1ᵀL̃1)/((n−1)(n−2)) − 2·1ᵀK̃L̃1/(n−2) ] / (n(n−3))
//! ```
//!
//! where `K̃` is `K` with zeros on its diagonal: `H` is the unbiased estimate of the Hilbert–Schmidt independence
//! criterion (Song, Smola, Gretton, Bedo and Borgwardt, Feature selection via dependence maximization, JMLR 13, 2012,
//! equation 5). With few samples, the usual biased CKA of two unrelated kernels is far from zero. The debiased CKA is
//! zero on average, and may be negative.
//!
//! The same number follows from less. Let `X` and `Y` be features with centred columns, `K = XXᵀ`, `L = YYᵀ`, and `a`,
//! `b` the diagonals of `K` and `L`. Then
//!
//! ```text
//! n(n−3)·H(K, L) = ‖XᵀY‖²_F − n/(n−2) Σ aᵢbᵢ + (Σaᵢ)(Σbᵢ)/((n−1)(n−2))
//! biased CKA = ‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F)
//! ```
//!
//! because `H` does not change when rows and columns of a kernel are shifted, and centred kernels have row sums `−aᵢ`
//! off the diagonal. Gram matrices are centred for the same reason, which also keeps digits. `‖XᵀY‖²_F = ⟨K, L⟩`, so
//! with more features than samples the products of samples are taken instead, in blocks of rows: no `n × n` matrix is
//! stored either way. Linear CKA: Kornblith, Norouzi, Lee and Hinton 2019 (arXiv 1905.00414); debiased for features:
//! Nguyen, Raghu and Kornblith 2020 (arXiv 2010.15327).
//!
//! **Test.** Permuting the rows of one side breaks every dependence and leaves the denominators as they are. With `b`
//! of `B` permutations that reach at least the observed `H`, `p = (1 + b)/(1 + B)`: one-sided, and valid for every `B`
//! (Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010). The mean of `H` over all
//! permutations is zero.

mod strips;

pub use strips::CkaStrips;

use crate::arrays::{centred, doubly_centred, scaled};
use crate::checks::{check_count, check_rows};
use crate::error::Result;
use mercer_data::random::stream;
use mercer_linalg::verify::frobenius;
use mercer_linalg::{check_finite, check_symmetric, matmul, syrk};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rand::seq::SliceRandom;
use serde::Serialize;

/// Rows per block of products.
const STRIP: usize = 256;

/// A dependence that is smaller than this beside the squares it is computed from is rounding.
const ROUNDING: f64 = 1e-12;

/// The similarity of two representations of the same samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cka {
    /// Zero on average for unrelated sides; `None` if one side is constant.
    pub debiased: Option<f64>,
    /// Between 0 and 1, and larger with fewer samples; `None` if one side is constant.
    pub biased: Option<f64>,
    /// The number of samples.
    pub n_samples: usize,
}

/// A similarity and how often chance reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CkaTest {
    /// The similarity.
    pub cka: Cka,
    /// `(1 + b)/(1 + B)`; `None` if the similarity is undefined.
    pub p_value: Option<f64>,
    /// `B`.
    pub n_permutations: usize,
}

/// CKA of two sets of features, a row per sample.
///
/// ```
/// use ndarray::array;
/// let x = array![[0.0, 1.0], [1.0, 0.5], [2.0, 0.0], [3.0, 3.0], [0.5, 2.0]];
/// let found = mercer_lens::cka::cka_from_features(x.view(), (&x * 2.0 + 7.0).view())?;
/// assert!((found.debiased.unwrap() - 1.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For fewer than four samples, different numbers of them, and features that are not finite.
pub fn cka_from_features(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Cka> {
    Ok(Pair::of_features(x, y)?.cka())
}

/// The test for two sets of features. Every permutation costs as much as one product `XᵀY` or, with more features than
/// samples, one sum over two `n × n` matrices, which are then stored.
///
/// # Errors
/// As [`cka_from_features`].
pub fn test_from_features(
    x: ArrayView2<'_, f64>,
    y: ArrayView2<'_, f64>,
    n_permutations: usize,
    seed: u64,
) -> Result<CkaTest> {
    let pair = Pair::of_features(x, y)?;
    if pair.prefers_features() {
        return Ok(pair.test(n_permutations, seed, |order| inner(&pair.x, &pair.y.select(Axis(0), order))));
    }
    let (k, l) = (syrk(pair.x.view()), syrk(pair.y.view()));
    Ok(pair.test(n_permutations, seed, |order| permuted_sum(&k, &l, order)))
}

/// CKA of two Gram matrices of the same samples.
///
/// # Errors
/// For fewer than four samples, and matrices that are of different sizes, not finite or not symmetric.
pub fn cka_from_grams(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Cka> {
    Ok(Grams::new(a, b)?.centred.cka())
}

/// The test for two Gram matrices of the same samples.
///
/// # Errors
/// As [`cka_from_grams`].
pub fn test_from_grams(
    a: ArrayView2<'_, f64>,
    b: ArrayView2<'_, f64>,
    n_permutations: usize,
    seed: u64,
) -> Result<CkaTest> {
    let grams = Grams::new(a, b)?;
    Ok(grams.centred.test(n_permutations, seed, |order| permuted_sum(&grams.k, &grams.l, order)))
}

/// CKA from the diagonals of two centred kernels, and `⟨K, L⟩`, `⟨K, K⟩`, `⟨L, L⟩`.
pub(crate) fn cka_from_sums([a, b]: [Array1<f64>; 2], [cross, own, other]: [f64; 3]) -> Cka {
    Centred { a, b, sums: Sums { cross, own, other } }.cka()
}

/// Centred features of both sides.
struct Pair {
    x: Array2<f64>,
    y: Array2<f64>,
    centred: Centred,
}

/// Centred Gram matrices of both sides.
struct Grams {
    k: Array2<f64>,
    l: Array2<f64>,
    centred: Centred,
}

/// What CKA needs of two centred kernels.
struct Centred {
    /// The diagonals.
    a: Array1<f64>,
    b: Array1<f64>,
    sums: Sums,
}

/// `⟨K, L⟩`, `⟨K, K⟩` and `⟨L, L⟩`.
#[derive(Clone, Copy, Default)]
struct Sums {
    cross: f64,
    own: f64,
    other: f64,
}

impl Pair {
    fn of_features(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Self> {
        check_count("an alignment", 4, x.nrows())?;
        check_rows("the other features", x.nrows(), y.nrows())?;
        for features in [x, y] {
            check_finite("features", features)?;
        }
        let [x, y] = [x, y].map(|features| centred(scaled(features), Axis(0)));
        let squares = |features: &Array2<f64>| features.map_axis(Axis(1), |row| row.iter().map(|v| v * v).sum());
        let (a, b) = (squares(&x), squares(&y));
        let mut pair = Self { x, y, centred: Centred { a, b, sums: Sums::default() } };
        pair.centred.sums = if pair.prefers_features() {
            let norm = |features: &Array2<f64>| frobenius(syrk(features.t()).view()).powi(2);
            Sums { cross: inner(&pair.x, &pair.y), own: norm(&pair.x), other: norm(&pair.y) }
        } else {
            by_samples(&pair.x, &pair.y)
        };
        Ok(pair)
    }

    /// Whether products of features are cheaper than products of samples.
    fn prefers_features(&self) -> bool {
        let (n, p, q) = (self.x.nrows(), self.x.ncols(), self.y.ncols());
        p * p + q * q + p * q <= n * (p + q)
    }

    fn cka(&self) -> Cka {
        self.centred.cka()
    }

    fn test(&self, n_permutations: usize, seed: u64, cross: impl Fn(&[usize]) -> f64) -> CkaTest {
        self.centred.test(n_permutations, seed, cross)
    }
}

impl Grams {
    fn new(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Self> {
        check_count("an alignment", 4, a.nrows())?;
        check_rows("the other matrix", a.nrows(), b.nrows())?;
        for matrix in [a, b] {
            check_symmetric("comparison", matrix)?;
        }
        let [k, l] = [a, b].map(|matrix| doubly_centred(scaled(matrix)));
        let same: Vec<usize> = (0..a.nrows()).collect();
        let sum = |k: &Array2<f64>, l: &Array2<f64>| permuted_sum(k, l, &same);
        let sums = Sums { cross: sum(&k, &l), own: sum(&k, &k), other: sum(&l, &l) };
        let centred = Centred { a: k.diag().to_owned(), b: l.diag().to_owned(), sums };
        Ok(Self { k, l, centred })
    }
}

impl Centred {
    fn cka(&self) -> Cka {
        let same: Vec<usize> = (0..self.a.len()).collect();
        let Sums { cross, own, other } = self.sums;
        let dependence = |sum: f64, a: &Array1<f64>, b: &Array1<f64>| dependence(sum, a, b, &same);
        ratio(
            self.a.len(),
            [
                dependence(cross, &self.a, &self.b),
                dependence(own, &self.a, &self.a),
                dependence(other, &self.b, &self.b),
            ],
            self.sums,
            [ROUNDING * own, ROUNDING * other],
        )
    }

    fn test(&self, n_permutations: usize, seed: u64, cross: impl Fn(&[usize]) -> f64) -> CkaTest {
        let cka = self.cka();
        let mut order: Vec<usize> = (0..self.a.len()).collect();
        let observed = dependence(self.sums.cross, &self.a, &self.b, &order);
        // Permutations that change nothing but the order of a sum are as large as what was observed.
        let slack = 1e-12 * (self.sums.own * self.sums.other).sqrt();
        let mut random = stream(seed, "lens/cka/permutations");
        let mut reached = 0;
        let rounds = if cka.debiased.is_some() { n_permutations } else { 0 };
        for _ in 0..rounds {
            order.shuffle(&mut random);
            reached += usize::from(dependence(cross(&order), &self.a, &self.b, &order) >= observed - slack);
        }
        let p_value = cka.debiased.map(|_| (1 + reached) as f64 / (1 + n_permutations) as f64);
        CkaTest { cka, p_value, n_permutations }
    }
}

/// Both ratios, from `n(n−3)·H` and from the sums of centred kernels. For a constant kernel only rounding is left,
/// which is up to a least number for each side.
fn ratio(n_samples: usize, [cross, own, other]: [f64; 3], sums: Sums, least: [f64; 2]) -> Cka {
    let debiased = (own > least[0] && other > least[1]).then(|| cross / (own * other).sqrt());
    let biased = debiased.and(Some(sums.cross / (sums.own * sums.other).sqrt()));
    Cka { debiased, biased, n_samples }
}

/// `n(n−3)·H` of centred kernels with diagonals `a` and `b`, the second in another order.
fn dependence(sum: f64, a: &Array1<f64>, b: &Array1<f64>, order: &[usize]) -> f64 {
    let n = a.len() as f64;
    let diagonals: f64 = a.iter().zip(order).map(|(a, &at)| a * b[at]).sum();
    sum - n / (n - 2.0) * diagonals + a.sum() * b.sum() / ((n - 1.0) * (n - 2.0))
}

/// `‖XᵀY‖²_F`.
fn inner(x: &Array2<f64>, y: &Array2<f64>) -> f64 {
    frobenius(matmul(x.t(), y.view()).view()).powi(2)
}

/// The sums over products of samples, in blocks of rows.
fn by_samples(x: &Array2<f64>, y: &Array2<f64>) -> Sums {
    let mut sums = Sums::default();
    for start in (0..x.nrows()).step_by(STRIP) {
        let rows = s![start..(start + STRIP).min(x.nrows()), ..];
        let (k, l) = (matmul(x.slice(rows), x.t()), matmul(y.slice(rows), y.t()));
        sums.cross += k.iter().zip(&l).map(|(k, l)| k * l).sum::<f64>();
        sums.own += frobenius(k.view()).powi(2);
        sums.other += frobenius(l.view()).powi(2);
    }
    sums
}

/// `Σ K_ij L_π(i)π(j)` of symmetric matrices: twice the sum below the diagonal, and the diagonal.
fn permuted_sum(k: &Array2<f64>, l: &Array2<f64>, order: &[usize]) -> f64 {
    let n = order.len();
    let (k, l) = (k.as_standard_layout(), l.as_standard_layout());
    let (Some(k), Some(l)) = (k.as_slice(), l.as_slice()) else { return f64::NAN };
    let mut total = 0.0;
    for (i, &at) in order.iter().enumerate() {
        let (own, other) = (&k[i * n..(i + 1) * n], &l[at * n..(at + 1) * n]);
        // Four sums at once, because one would wait for itself.
        let mut sums = [0.0; 4];
        let (quads, rest) = order[..i].as_chunks::<4>();
        for (values, places) in own.as_chunks::<4>().0.iter().zip(quads) {
            for lane in 0..4 {
                sums[lane] += values[lane] * other[places[lane]];
            }
        }
        let tail: f64 = own[i - rest.len()..i].iter().zip(rest).map(|(k, &at)| k * other[at]).sum();
        total += 2.0 * (sums.iter().sum::<f64>() + tail) + own[i] * other[at];
    }
    total
}
