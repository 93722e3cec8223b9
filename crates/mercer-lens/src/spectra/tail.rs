//! Power-law tails: `p(x) ∝ x^−α` from `x_min` on.
//!
//! Clauset, Shalizi and Newman, Power-law distributions in empirical data, SIAM Review 51, 2009 (arXiv 0706.1062). For
//! the `n` values `xᵢ ≥ x_min`,
//!
//! ```text
//! α = 1 + n / Σ ln(xᵢ/x_min)            standard error (α − 1)/√n                       (3.1), (3.2)
//! D = max |F(x₍ᵢ₎) − i/n|,  i = 0 … n−1,   F(x) = 1 − (x/x_min)^(1−α)                   (3.9)
//! ```
//!
//! Every value but the largest is tried as `x_min`, and the one with the smallest `D` is taken. As in the authors'
//! program, in `powerlaw` and in WeightWatcher, `D` takes the empirical distribution from the left. The supremum of
//! both sides is larger by up to `1/n`, and may choose another `x_min`. Those programs differ from this one as follows.
//! `powerlaw` 2.0 leaves out thresholds with `α > 3` unless it is told otherwise. WeightWatcher, for fewer than 20
//! values, corrects `α` for bias and selects by `D − 0.868/√n`. Both accept tails of two values; here the least number
//! is a setting.
//!
//! **Hill's estimator** (Annals of Statistics 3, 1975) of the `k` largest values is `α = 1 + k / Σ ln(x₍ᵢ₎/x₍ₖ₊₁₎)`,
//! with standard error `(α − 1)/√k`. It does not count the threshold as a value.
//!
//! **Alternatives** on the same tail, fitted by maximum likelihood: the exponential distribution, and the lognormal
//! one. The logarithm of a lognormal tail is a truncated normal variable, which is an exponential family, so its fit
//! matches two moments. If the logarithms vary at least as much as those of a power law, the best lognormal tail is the
//! power law itself. With `lᵢ` the difference of log-likelihoods at `xᵢ`, Vuong's statistic is `Σ lᵢ / (√n s)`, where
//! `s` is the standard deviation of `lᵢ`. It is positive if the power law is the better one, and `p = erfc(|·|/√2)`
//! says whether the sign means anything (Clauset et al., appendix C).

use super::bulk::sorted;
use super::normal::{above, excess, ln_above};
use crate::error::{LensError, Result};
use serde::Serialize;
use std::f64::consts::PI;

/// A power law and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PowerLaw {
    /// `α`: the exponent of the density.
    pub alpha: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// `x_min`: where the tail begins.
    pub x_min: f64,
    /// The number of values from there on.
    pub n_tail: usize,
    /// The number of positive values.
    pub n_values: usize,
    /// `D`: the distance of the tail from the fit.
    pub distance: f64,
    /// Against a lognormal tail.
    pub lognormal: Likelihoods,
    /// Against an exponential tail.
    pub exponential: Likelihoods,
}

/// A likelihood-ratio test of the power law against another distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likelihoods {
    /// Vuong's statistic; positive if the power law is better. `None` if both are the same distribution.
    pub ratio: Option<f64>,
    /// The probability of a statistic of that size if neither is better.
    pub p_value: Option<f64>,
}

/// Hill's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hill {
    /// `α`: the exponent of the density, one more than the tail index.
    pub alpha: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The number of values used.
    pub k: usize,
    /// The next value: where the tail begins.
    pub threshold: f64,
}

/// Fits a power law to the tail of positive values, in any order, with at least `least_tail` values in the tail; `None`
/// if there are fewer than two different values. Zeros, and values that are rounding beside the largest, are left out.
///
/// ```
/// // Quantiles of a Pareto distribution with exponent 2.5.
/// let values: Vec<f64> = (0..500).map(|i| (1.0 - (i as f64 + 0.5) / 500.0).powf(-1.0 / 1.5)).collect();
/// let fit = mercer_lens::spectra::power_law(&values, 2)?.unwrap();
/// assert!((fit.alpha - 2.5).abs() < 0.1);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For values that are negative beyond rounding or not finite, and a least tail below two.
pub fn power_law(values: &[f64], least_tail: usize) -> Result<Option<PowerLaw>> {
    if least_tail < 2 {
        let reason = "a tail has at least two values";
        return Err(LensError::Setting { name: "the least tail", value: least_tail.to_string(), reason });
    }
    let ascending = positive(values)?;
    let logarithms: Vec<f64> = ascending.iter().map(|value| value.ln()).collect();
    let n_values = ascending.len();
    let mut best: Option<(f64, usize, f64)> = None;
    let mut sum = 0.0;
    let mut starts = Vec::with_capacity(n_values);
    for i in (0..n_values).rev() {
        sum += logarithms[i];
        starts.push((i, sum - (n_values - i) as f64 * logarithms[i]));
    }
    // In ascending order of the threshold, so that the first of equal distances wins.
    for &(start, excess) in starts.iter().rev() {
        let n = n_values - start;
        let repeats = start > 0 && ascending[start - 1] == ascending[start];
        if n < least_tail || repeats || excess <= n as f64 * f64::EPSILON {
            continue;
        }
        let slope = n as f64 / excess;
        let tail = &logarithms[start..];
        let at = |(i, log): (usize, &f64)| (-(-slope * (log - tail[0])).exp_m1() - i as f64 / n as f64).abs();
        let distance = tail.iter().enumerate().map(at).fold(0.0, f64::max);
        if best.is_none_or(|(least, ..)| distance < least) {
            best = Some((distance, start, slope));
        }
    }
    Ok(best.map(|(distance, start, slope)| {
        let tail: Vec<f64> = logarithms[start..].iter().map(|log| log - logarithms[start]).collect();
        let n_tail = tail.len();
        PowerLaw {
            alpha: 1.0 + slope,
            standard_error: slope / (n_tail as f64).sqrt(),
            x_min: ascending[start],
            n_tail,
            n_values,
            distance,
            lognormal: against_lognormal(&tail, slope),
            exponential: against_exponential(&tail, slope),
        }
    }))
}

/// Hill's estimate from the `k` largest values; `None` if they equal the next one.
///
/// # Errors
/// For `k` zero, no more than `k` positive values, and values that are negative beyond rounding or not finite.
pub fn hill(values: &[f64], k: usize) -> Result<Option<Hill>> {
    let ascending = positive(values)?;
    if k == 0 || k >= ascending.len() {
        let reason = "it must be positive and smaller than the number of positive values";
        return Err(LensError::Setting { name: "k", value: k.to_string(), reason });
    }
    let (below, tail) = ascending.split_at(ascending.len() - k);
    let threshold = below[below.len() - 1];
    let mean = tail.iter().map(|value| (value / threshold).ln()).sum::<f64>() / k as f64;
    Ok((mean > f64::EPSILON).then(|| Hill {
        alpha: 1.0 + 1.0 / mean,
        standard_error: 1.0 / (mean * (k as f64).sqrt()),
        k,
        threshold,
    }))
}

/// Values that are positive beyond rounding, ascending.
fn positive(values: &[f64]) -> Result<Vec<f64>> {
    let ascending = sorted(values)?;
    let rounding = ascending.last().map_or(0.0, |largest| largest * ascending.len() as f64 * f64::EPSILON);
    let first = ascending.partition_point(|value| *value <= rounding);
    Ok(ascending[first..].to_vec())
}

/// `t = ln(x/x_min)` of a power law is exponential with rate `slope`; that of a lognormal tail is a truncated normal.
fn against_lognormal(tail: &[f64], slope: f64) -> Likelihoods {
    let Some(Truncated { z, sigma }) = truncated(tail) else {
        return Likelihoods { ratio: None, p_value: None };
    };
    let scale = sigma.ln() + 0.5 * (2.0 * PI).ln() + ln_above(z);
    vuong(tail.iter().map(|t| slope.ln() - slope * t + scale + 0.5 * (z + t / sigma).powi(2)))
}

/// The density of `x` is exponential from `x_min` on; that of `t` has a factor `x` more. Lengths are in units of
/// `x_min`.
fn against_exponential(tail: &[f64], slope: f64) -> Likelihoods {
    let rate = tail.len() as f64 / tail.iter().map(|t| t.exp_m1()).sum::<f64>();
    vuong(tail.iter().map(|t| slope.ln() - slope * t - (rate.ln() - rate * t.exp_m1() + t)))
}

/// A normal variable above a bound, less the bound: `σ(Z − z)` given `Z > z`.
struct Truncated {
    z: f64,
    sigma: f64,
}

/// The fit by maximum likelihood: `E t²/(E t)²`, which rises with `z` from 1 to 2, is that of the data. `None` if that
/// is 2 or more: the limit is the exponential distribution.
fn truncated(tail: &[f64]) -> Option<Truncated> {
    let n = tail.len() as f64;
    let mean = tail.iter().sum::<f64>() / n;
    let ratio = tail.iter().map(|t| t * t).sum::<f64>() / n / (mean * mean);
    let of_bound = |z: f64| {
        let excess = excess(z);
        (1.0 - excess * z) / (excess * excess)
    };
    let (mut low, mut high) = (-30.0, 1e3);
    if !(ratio > of_bound(low) && ratio < of_bound(high)) {
        return None;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if of_bound(middle) < ratio { low = middle } else { high = middle }
    }
    let z = 0.5 * (low + high);
    Some(Truncated { z, sigma: mean / excess(z) })
}

/// Vuong's test from the differences of log-likelihoods.
fn vuong(differences: impl Iterator<Item = f64> + Clone) -> Likelihoods {
    let n = differences.clone().count() as f64;
    let sum: f64 = differences.clone().sum();
    let variance = differences.map(|difference| (difference - sum / n).powi(2)).sum::<f64>() / n;
    let ratio = Some(sum / (n * variance).sqrt()).filter(|ratio| ratio.is_finite());
    Likelihoods { ratio, p_value: ratio.map(|ratio| 2.0 * above(ratio.abs())) }
}
