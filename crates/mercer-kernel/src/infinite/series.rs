//! Any activation, by its Hermite series.
//!
//! With `z` standard normal and `h_k` the normalised Hermite polynomials, `c_k(s) = E[φ(sz) h_k(z)]` gives (Mehler)
//!
//! ```text
//! E[φ(u)φ(v)] = Σ_k c_k(s) c_k(t) ρᵏ      E[φ'(u)φ'(v)] = Σ_k k c_k(s) c_k(t) ρ^{k−1} / st
//! ```
//!
//! The coefficients depend on a single sample and are computed once, by Gauss–Legendre quadrature on panels that end at
//! zero, where most kinks are. A pair costs two polynomials, with only as many terms as its samples need. The remainder
//! at `ρ = 1` is known by Parseval's identity: `τ² = E[φ(sz)²] − Σ c_k²`, and bounds the error at any `ρ` by
//! `τ(s)τ(t)`. It is added as one more power of `ρ`, so that the diagonal is exact and the matrix stays positive.
//!
//! For analytic functions the remainder is rounding. If the second derivative jumps (ELU, softsign), coefficients fall
//! like a power of `k`, `Σ_{k>N} k^{−5/2} ρᵏ`, and a power `ρ^{2N}` in place of these leaves a twentieth of them (0.055
//! at most). So a remainder up to [`TOLERANCE`] is an error below 1e-6, and a sample with a larger one is rejected: the
//! slope of a function with kinks (a clip) has one, but its value does not.

use super::dual::{Form, Moments, PIECE, multiply, openings};
use super::expression::Elementwise;
use crate::kernel::Real;
use mercer_linalg::gemm;
use mercer_linalg::quadrature::{NormalRule, normal_rule};
use mercer_linalg::simd::dispatch;
use std::sync::OnceLock;

/// The maximum number of terms of a series.
pub(super) const TERMS: usize = 2048;

/// Numbers stored per deviation besides the coefficients: the number of significant ones, two remainders and the mean
/// slope.
pub(super) const BESIDE: usize = 4;

/// The largest remainder, relative to `E[φ²]` and `E[φ'²]`.
pub(super) const TOLERANCE: f64 = 1e-5;

/// A remainder that is not worth another doubling of the terms.
const ENOUGH: f64 = 1e-11;

/// Coefficients below this, relative to `√E[φ²]` and with the root of their degree, are negligible.
const SMALL: f64 = 1e-6;

/// The number of deviations whose coefficients are computed by one product.
const STRIP: usize = 64;

/// The rule for expectations over a standard normal number.
struct Rule {
    points: &'static [f64],
    weights: &'static [f64],
    /// `weight · h_k(point)`, `[points, TERMS]`.
    hermite: Vec<f64>,
}

impl Rule {
    fn get() -> &'static Self {
        static RULE: OnceLock<Rule> = OnceLock::new();
        RULE.get_or_init(|| {
            let NormalRule { points, weights } = normal_rule();
            let mut hermite = Vec::with_capacity(points.len() * TERMS);
            for (&z, &w) in points.iter().zip(weights) {
                let (mut before, mut now) = (0.0, 1.0);
                for k in 0..TERMS {
                    hermite.push(w * now);
                    let next = (z * now - (k as f64).sqrt() * before) / (k as f64 + 1.0).sqrt();
                    (before, now) = (now, next);
                }
            }
            Self { points, weights, hermite }
        })
    }
}

/// The rows that [`apply`] reads, `[BESIDE + coefficients, deviations]`, or the index of a deviation for which the series is too
/// short. Odd functions have only coefficients of odd degree. With `slopes`, the remainder of the derivative counts.
pub(super) fn expand<T: Real>(
    (expression, odd): (&Elementwise, bool),
    deviations: &[T],
    slopes: bool,
) -> Result<Vec<T>, usize> {
    let count = deviations.len();
    let mut kept = vec![T::zero(); BESIDE * count];
    for (strip, part) in deviations.chunks(STRIP).enumerate() {
        let series = Strip::new(expression, part);
        for (row, one) in series.rows(slopes).map_err(|row| strip * STRIP + row)?.into_iter().enumerate() {
            let at = strip * STRIP + row;
            let stored = one.coefficients.iter().skip(usize::from(odd)).step_by(if odd { 2 } else { 1 });
            let rows = stored.clone().count();
            if kept.len() < (BESIDE + rows) * count {
                kept.resize((BESIDE + rows) * count, T::zero());
            }
            let beside = [rows as f64, one.rest, one.slope_rest, one.mean_slope];
            for (which, &value) in beside.iter().chain(stored).enumerate() {
                kept[which * count + at] = T::narrow(value);
            }
        }
    }
    Ok(kept)
}

/// The series of one deviation.
struct One {
    coefficients: Vec<f64>,
    rest: f64,
    slope_rest: f64,
    mean_slope: f64,
}

/// The function at the points of the rule, for some deviations.
struct Strip {
    deviations: Vec<f64>,
    values: Vec<f64>,
    slopes: Vec<f64>,
}

impl Strip {
    fn new<T: Real>(expression: &Elementwise, deviations: &[T]) -> Self {
        let deviations: Vec<f64> = deviations.iter().map(|s| s.wide()).collect();
        let points = &Rule::get().points;
        let x: Vec<f64> = deviations.iter().flat_map(|s| points.iter().map(move |z| s * z)).collect();
        let (values, slopes) = expression.at(&x);
        Self { deviations, values, slopes }
    }

    /// Twice as many terms, until the remainders are small enough for all.
    fn rows(&self, slopes: bool) -> Result<Vec<One>, usize> {
        let rule = Rule::get();
        let (m, n) = (rule.points.len(), self.deviations.len());
        let mean =
            |row: usize, f: &dyn Fn(usize) -> f64| -> f64 { (0..m).map(|i| rule.weights[i] * f(row * m + i)).sum() };
        let squares: Vec<[f64; 2]> = (0..n)
            .map(|row| {
                let scale = self.deviations[row] * self.deviations[row];
                [
                    mean(row, &|i| self.values[i] * self.values[i]),
                    scale * mean(row, &|i| self.slopes[i] * self.slopes[i]),
                ]
            })
            .collect();
        if let Some(row) = squares.iter().position(|[value, slope]| !(value + slope).is_finite()) {
            return Err(row);
        }
        let mut terms = 128;
        loop {
            let mut c = vec![0.0; n * terms];
            gemm([n, terms, m], (&self.values, m, 1), (&rule.hermite, TERMS, 1), false, &mut c);
            let rests: Vec<[f64; 2]> = (0..n)
                .map(|row| {
                    let c = &c[row * terms..(row + 1) * terms];
                    let slope: f64 = c.iter().enumerate().map(|(k, c)| k as f64 * c * c).sum();
                    [squares[row][0] - c.iter().map(|c| c * c).sum::<f64>(), squares[row][1] - slope]
                })
                .collect();
            let above = |limit: f64, row: usize, which: usize| rests[row][which] > limit * squares[row][which];
            if terms < TERMS && (0..n).any(|row| above(ENOUGH, row, 0) || above(ENOUGH, row, 1)) {
                terms *= 2;
                continue;
            }
            if let Some(row) = (0..n).find(|&row| above(TOLERANCE, row, 0) || slopes && above(TOLERANCE, row, 1)) {
                return Err(row);
            }
            let one = |row: usize| {
                let c = &c[row * terms..(row + 1) * terms];
                let limit = SMALL * squares[row][0].sqrt();
                let matters = |(k, c): (usize, &f64)| c.abs() * (k as f64).sqrt().max(1.0) > limit;
                let last = c.iter().enumerate().rev().find(|&(k, c)| matters((k, c))).map_or(0, |(k, _)| k);
                One {
                    coefficients: c[..=last].to_vec(),
                    rest: rests[row][0].max(0.0).sqrt(),
                    slope_rest: rests[row][1].max(0.0).sqrt(),
                    mean_slope: mean(row, &|i| self.slopes[i]),
                }
            };
            return Ok((0..n).map(one).collect());
        }
    }
}

/// The expectations of a piece of pairs: `from` is its place among `stride` pairs. The powers of the remainders are odd
/// and even for odd functions, otherwise even and odd.
pub(super) fn apply<T: Real>(
    odd: bool,
    form: Form,
    value: &mut [T],
    tangent: Option<&mut [T]>,
    [left, right]: [Moments<'_, T>; 2],
    (from, stride): (usize, usize),
    [correlation, slope, power]: &mut [[T; PIECE]; 3],
) {
    let n = value.len();
    let (correlation, slope, power) = (&mut correlation[..n], &mut slope[..n], &mut power[..n]);
    openings(form, value, [left, right], correlation);
    let row = |which: usize| {
        let range = which * stride + from..which * stride + from + n;
        (&left.series[range.clone()], &right.series[range])
    };
    let (zero, one, two) = (T::zero(), T::one(), T::narrow(2.0));
    dispatch(
        #[inline(always)]
        || correlation.iter_mut().for_each(|rho| *rho = one - *rho),
    );
    value.fill(zero);
    slope.fill(zero);
    // Horner's rule for a polynomial q and its derivative, in ρ, or in ρ² for the odd ones ρ q(ρ²).
    let terms = left.series.len().min(right.series.len()) / stride - BESIDE;
    for k in (0..terms).rev() {
        let (a, b) = row(BESIDE + k);
        dispatch(
            #[inline(always)]
            || {
                let (value, slope, rho, a, b) = (&mut value[..n], &mut slope[..n], &correlation[..n], &a[..n], &b[..n]);
                for i in 0..n {
                    let x = if odd { rho[i] * rho[i] } else { rho[i] };
                    slope[i] = slope[i] * x + value[i];
                    value[i] = value[i] * x + a[i] * b[i];
                }
            },
        );
    }
    last_powers(correlation, power);
    let ((a, b), (da, db), (ma, mb)) = (row(1), row(2), row(3));
    dispatch(
        #[inline(always)]
        || {
            let (value, slope, correlation, power) = (&mut value[..n], &mut slope[..n], &correlation[..n], &power[..n]);
            let [a, b, da, db, ma, mb] = [a, b, da, db, ma, mb].map(|row| &row[..n]);
            let [s, t] = [left.deviation, right.deviation].map(|deviation| &deviation[..n]);
            for i in 0..n {
                let (rho, even) = (correlation[i], power[i]);
                let (own, other) = if odd { (rho * even, even) } else { (even, rho * even) };
                let (q, dq) = (value[i], slope[i]);
                let (sum, derivative) = if odd { (rho * q, q + two * rho * rho * dq) } else { (q, dq) };
                let product = s[i] * t[i];
                value[i] = sum + a[i] * b[i] * own;
                let rest = derivative + da[i] * db[i] * other;
                slope[i] = if product > zero { rest / product } else { ma[i] * mb[i] };
            }
        },
    );
    if let Some(tangent) = tangent {
        multiply(tangent, slope);
    }
}

/// `ρ^{2·TERMS}`, by squares.
fn last_powers<T: Real>(correlation: &[T], power: &mut [T]) {
    power.copy_from_slice(correlation);
    dispatch(
        #[inline(always)]
        || (0..=TERMS.ilog2()).for_each(|_| power.iter_mut().for_each(|power| *power *= *power)),
    );
}
