//! The two coefficients that a step changes.
//!
//! The search looks at every sample twice, so its loops are free of branches and of the signs: with `vᵢ = −yᵢ∂ᵢ`, the
//! violation of sample `i`, a step of length `t` along `yᵢΔαᵢ = −yⱼΔαⱼ = t` changes `v` by `−t(κᵢ − κⱼ)`. Of equal
//! candidates the last is taken.

use mercer_linalg::simd::dispatch;
use ndarray::ArrayView1;

/// The curvature that replaces one that is not positive.
const LEAST_CURVATURE: f64 = 1e-12;

/// Numbers that are compared side by side.
const LANES: usize = 8;

/// The state of the search.
pub(super) struct WorkingSet<'a> {
    diagonal: &'a [f64],
    /// `−yᵢ∂ᵢ`.
    violations: Vec<f64>,
    /// Zero for samples whose `yᵢαᵢ` may grow, else `−∞`.
    up: Vec<f64>,
    /// Zero for samples whose `yᵢαᵢ` may fall, else `−∞`.
    low: Vec<f64>,
    gains: Vec<f64>,
}

/// Two samples, and how far a step between them may go before a bound stops it.
pub(super) struct Pair {
    pub(super) i: usize,
    pub(super) j: usize,
    pub(super) length: f64,
}

impl<'a> WorkingSet<'a> {
    /// With the gradient of the dual objective, for the diagonal of the kernel.
    pub(super) fn new(diagonal: &'a [f64], signs: &[f64], gradient: &[f64]) -> Self {
        let n = signs.len();
        let violations = signs.iter().zip(gradient).map(|(sign, g)| -sign * g).collect();
        Self { diagonal, violations, up: vec![0.0; n], low: vec![0.0; n], gains: vec![0.0; n] }
    }

    /// Tells the coefficient of a sample.
    pub(super) fn set(&mut self, t: usize, sign: f64, alpha: f64, cost: f64) {
        let mask = |may: bool| if may { 0.0 } else { f64::NEG_INFINITY };
        let (grows, falls) = (mask(alpha < cost), mask(alpha > 0.0));
        (self.up[t], self.low[t]) = if sign > 0.0 { (grows, falls) } else { (falls, grows) };
    }

    /// The sample with the largest violation and the one that then gains most; none if the optimality conditions hold.
    pub(super) fn select(&mut self, kernel: ndarray::ArrayView2<'_, f64>, tolerance: f64) -> Option<Pair> {
        let (i, most) = self.first()?;
        let row = kernel.row(i);
        let (j, least) = self.second(i, most, row)?;
        (most - least >= tolerance).then(|| {
            let curvature = self.diagonal[i] + self.diagonal[j] - 2.0 * row[j];
            Pair { i, j, length: (most - self.violations[j]) / curvature.max(LEAST_CURVATURE) }
        })
    }

    fn first(&self) -> Option<(usize, f64)> {
        let (values, up) = (&self.violations, &self.up);
        let most = dispatch(
            #[inline(always)]
            || largest(values, |at| values[at] + up[at]),
        );
        let at = (0..values.len()).rev().find(|&at| values[at] + up[at] == most)?;
        most.is_finite().then_some((at, most))
    }

    /// The second sample, and the least violation of those that may fall.
    fn second(&mut self, i: usize, most: f64, row: ArrayView1<'_, f64>) -> Option<(usize, f64)> {
        let Self { diagonal, violations, low, gains, .. } = self;
        let row = row.to_slice()?;
        let own = diagonal[i];
        dispatch(
            #[inline(always)]
            || {
                for ((((gain, v), low), d), k) in gains.iter_mut().zip(&*violations).zip(&*low).zip(*diagonal).zip(row)
                {
                    let difference = most + (low - v);
                    let curvature = own + d - 2.0 * k;
                    let curvature = if curvature > LEAST_CURVATURE { curvature } else { LEAST_CURVATURE };
                    let value = difference * difference / curvature;
                    *gain = if difference > 0.0 { value } else { f64::NEG_INFINITY };
                }
            },
        );
        let (best, least) = dispatch(
            #[inline(always)]
            || (largest(gains, |at| gains[at]), -largest(violations, |at| low[at] - violations[at])),
        );
        let at = gains.iter().rposition(|&gain| gain == best)?;
        (best > f64::NEG_INFINITY).then_some((at, least))
    }

    /// Takes a step between two samples.
    pub(super) fn step(&mut self, length: f64, row: ArrayView1<'_, f64>, other: ArrayView1<'_, f64>) {
        let violations = &mut self.violations;
        if let (Some(row), Some(other)) = (row.to_slice(), other.to_slice()) {
            dispatch(
                #[inline(always)]
                || {
                    for ((v, a), b) in violations.iter_mut().zip(row).zip(other) {
                        *v -= length * (a - b);
                    }
                },
            );
        }
    }

    /// The gradient of the dual objective.
    pub(super) fn gradient(&self, signs: &[f64]) -> Vec<f64> {
        signs.iter().zip(&self.violations).map(|(sign, v)| -sign * v).collect()
    }
}

/// The largest of as many numbers as a slice has.
#[inline(always)]
fn largest(all: &[f64], value: impl Fn(usize) -> f64) -> f64 {
    let whole = all.len() / LANES * LANES;
    let mut lanes = [f64::NEG_INFINITY; LANES];
    for start in (0..whole).step_by(LANES) {
        for (lane, most) in lanes.iter_mut().enumerate() {
            let own = value(start + lane);
            *most = if own > *most { own } else { *most };
        }
    }
    let rest = (whole..all.len()).map(value);
    lanes.into_iter().chain(rest).fold(f64::NEG_INFINITY, |most, own| if own > most { own } else { most })
}
