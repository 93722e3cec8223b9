//! Any activation, by its Hermite series.
//!
//! With `z` standard normal and `h_k` the normalised Hermite polynomials, `c_k(s) = E[φ(sz) h_k(z)]` gives (Mehler)
//!
//! ```text
//! E[φ(u)φ(v)] = Σ_k c_k(s) c_k(t) ρᵏ      E[φ'(u)φ'(v)] = Σ_k k c_k(s) c_k(t) ρ^{k−1} / st
//! ```
//!
//! The coefficients depend on one sample only and are made once, by Gauss–Legendre quadrature on panels that end at zero, where
//! most kinks are; a pair costs two polynomials. What the first [`TERMS`] terms miss at `ρ = 1` is known, by Parseval's
//! identity: `τ² = E[φ(sz)²] − Σ c_k²`, and bounds the error at any `ρ` by `τ(s)τ(t)`. It is added as one more power of `ρ`, so
//! that the diagonal is exact and the matrix stays positive; and a sample for which it exceeds [`TOLERANCE`] is refused.

use super::dual::{Form, Moments, PIECE, multiply, openings};
use super::expression::Expression;
use crate::kernel::Real;
use mercer_linalg::gemm;
use mercer_linalg::simd::dispatch;
use std::sync::OnceLock;

/// Terms of a series.
pub(super) const TERMS: usize = 96;

/// Numbers that are kept per deviation: the coefficients, two remainders, and the mean slope.
pub(super) const KEPT: usize = TERMS + 3;

/// The largest remainder, relative to `E[φ²]` and `E[φ'²]`.
pub(super) const TOLERANCE: f64 = 1e-6;

/// Panels on either side of zero, one unit wide: beyond twelve deviations a Gaussian weighs less than 1e-31.
const PANELS: usize = 12;

/// Points per panel: exact for polynomials of degree 39.
const POINTS: usize = 20;

/// Deviations whose coefficients are made by one product.
const STRIP: usize = 128;

/// The rule for expectations over a standard normal number.
struct Rule {
    points: Vec<f64>,
    weights: Vec<f64>,
    /// `weight · h_k(point)`, `[points, TERMS]`.
    hermite: Vec<f64>,
}

impl Rule {
    fn get() -> &'static Self {
        static RULE: OnceLock<Rule> = OnceLock::new();
        RULE.get_or_init(|| {
            let (mut points, mut weights) = (Vec::new(), Vec::new());
            for (x, w) in legendre() {
                for panel in 0..2 * PANELS {
                    let z = panel as f64 - PANELS as f64 + 0.5 * (x + 1.0);
                    points.push(z);
                    weights.push(0.5 * w * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt());
                }
            }
            let mut hermite = Vec::with_capacity(points.len() * TERMS);
            for (&z, &w) in points.iter().zip(&weights) {
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

/// Points and weights of Gauss's rule on `[−1, 1]`, by Newton's method on the Legendre polynomial.
fn legendre() -> impl Iterator<Item = (f64, f64)> {
    let n = POINTS as f64;
    (0..POINTS).map(move |i| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut before, mut now) = (1.0, x);
            for k in 1..POINTS {
                let k = k as f64;
                (before, now) = (now, ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0));
            }
            slope = n * (x * now - before) / (x * x - 1.0);
            x -= now / slope;
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    })
}

/// The coefficients for some deviations, `[KEPT, deviations]`, or the index of one for which the series is too short.
pub(super) fn expand<T: Real>(expression: &Expression, deviations: &[T]) -> Result<Vec<T>, usize> {
    let rule = Rule::get();
    let (m, count) = (rule.points.len(), deviations.len());
    let mut kept = vec![T::zero(); KEPT * count];
    let mut coefficients = vec![0.0; STRIP * TERMS];
    for (strip, part) in deviations.chunks(STRIP).enumerate() {
        let x: Vec<f64> = part.iter().flat_map(|s| rule.points.iter().map(|z| s.wide() * z)).collect();
        let (values, slopes) = expression.at(&x);
        gemm([part.len(), TERMS, m], (&values, m, 1), (&rule.hermite, TERMS, 1), false, &mut coefficients);
        for (row, s) in part.iter().enumerate() {
            let at = strip * STRIP + row;
            let c = &coefficients[row * TERMS..(row + 1) * TERMS];
            let mean = |f: &dyn Fn(usize) -> f64| -> f64 { (0..m).map(|i| rule.weights[i] * f(row * m + i)).sum() };
            let square = mean(&|i| values[i] * values[i]);
            let slope_square = s.wide() * s.wide() * mean(&|i| slopes[i] * slopes[i]);
            let rest = square - c.iter().map(|c| c * c).sum::<f64>();
            let slope_rest = slope_square - c.iter().enumerate().map(|(k, c)| k as f64 * c * c).sum::<f64>();
            let short = rest > TOLERANCE * square || slope_rest > TOLERANCE * slope_square;
            if short || !(square + slope_square).is_finite() {
                return Err(at);
            }
            c.iter().enumerate().for_each(|(k, &c)| kept[k * count + at] = T::of(c));
            kept[TERMS * count + at] = T::of(rest.max(0.0).sqrt());
            kept[(TERMS + 1) * count + at] = T::of(slope_rest.max(0.0).sqrt());
            kept[(TERMS + 2) * count + at] = T::of(mean(&|i| slopes[i]));
        }
    }
    Ok(kept)
}

/// The expectations of a piece of pairs: `from` is its place among `stride` pairs. The powers of the remainders are odd and even
/// for odd functions, else the other way round.
pub(super) fn apply<T: Real>(
    odd: bool,
    form: Form,
    value: &mut [T],
    tangent: Option<&mut [T]>,
    [left, right]: [Moments<'_, T>; 2],
    (from, stride): (usize, usize),
    [correlation, slope, _]: &mut [[T; PIECE]; 3],
) {
    let n = value.len();
    let (correlation, slope) = (&mut correlation[..n], &mut slope[..n]);
    openings(form, value, [left, right], correlation);
    let row = |which: usize| {
        let range = which * stride + from..which * stride + from + n;
        (&left.series[range.clone()], &right.series[range])
    };
    let (zero, one) = (T::zero(), T::one());
    dispatch(
        #[inline(always)]
        || correlation.iter_mut().for_each(|rho| *rho = one - *rho),
    );
    value.fill(zero);
    slope.fill(zero);
    // Horner's rule for the polynomial and its derivative.
    for k in (0..TERMS).rev() {
        let (a, b) = row(k);
        dispatch(
            #[inline(always)]
            || {
                let (value, slope, rho, a, b) = (&mut value[..n], &mut slope[..n], &correlation[..n], &a[..n], &b[..n]);
                for i in 0..n {
                    slope[i] = slope[i] * rho[i] + value[i];
                    value[i] = value[i] * rho[i] + a[i] * b[i];
                }
            },
        );
    }
    let ((a, b), (da, db), (ma, mb)) = (row(TERMS), row(TERMS + 1), row(TERMS + 2));
    dispatch(
        #[inline(always)]
        || {
            for i in 0..n {
                let rho = correlation[i];
                let (even, next) = (ninety_sixth(rho), rho * ninety_sixth(rho));
                let (own, other) = if odd { (next, even) } else { (even, next) };
                let product = left.deviation[i] * right.deviation[i];
                value[i] += a[i] * b[i] * own;
                let rest = slope[i] + da[i] * db[i] * other;
                slope[i] = if product > zero { rest / product } else { ma[i] * mb[i] };
            }
        },
    );
    if let Some(tangent) = tangent {
        multiply(tangent, slope);
    }
}

/// `ρ^TERMS`.
#[inline(always)]
fn ninety_sixth<T: Real>(rho: T) -> T {
    let cube = rho * rho * rho;
    let (mut power, mut degree) = (cube, 3);
    while degree < TERMS {
        power *= power;
        degree *= 2;
    }
    power
}
