//! Expectations over a standard normal number, by Gauss–Legendre quadrature on panels.
//!
//! Panels of width one half reach from −12 to 12: beyond, a Gaussian weighs less than 1e-31. A function that is smooth
//! between the multiples of one half, as activations are, is integrated to rounding: Gauss–Hermite quadrature would
//! converge slowly at a kink.

use std::sync::OnceLock;

/// Panels on either side of zero.
const PANELS: usize = 24;

/// The width of a panel.
const WIDTH: f64 = 0.5;

/// Points per panel: exact for polynomials of degree 31, and to rounding for waves as short as those of the Hermite
/// polynomial of degree 2048, 45 per unit.
const POINTS: usize = 16;

/// Points and weights of a rule: `E f(z) ≈ Σ weight · f(point)`.
#[derive(Clone, Debug)]
pub struct NormalRule {
    /// Where the function is evaluated.
    pub points: Vec<f64>,
    /// Their weights, which add up to one.
    pub weights: Vec<f64>,
}

/// The rule for expectations over a standard normal number.
///
/// ```
/// let rule = mercer_linalg::quadrature::normal_rule();
/// let second: f64 = rule.points.iter().zip(&rule.weights).map(|(z, w)| w * z.max(0.0).powi(2)).sum();
/// assert!((second - 0.5).abs() < 1e-14);
/// ```
pub fn normal_rule() -> &'static NormalRule {
    static RULE: OnceLock<NormalRule> = OnceLock::new();
    RULE.get_or_init(|| {
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        for (x, w) in legendre() {
            for panel in 0..2 * PANELS {
                let z = WIDTH * (panel as f64 - PANELS as f64 + 0.5 * (x + 1.0));
                points.push(z);
                weights.push(0.5 * WIDTH * w * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt());
            }
        }
        NormalRule { points, weights }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_normal_distribution() {
        let rule = normal_rule();
        for (power, moment) in [(0, 1.0), (1, 0.0), (2, 1.0), (4, 3.0), (6, 15.0), (8, 105.0)] {
            let found: f64 = rule.points.iter().zip(&rule.weights).map(|(z, w)| w * z.powi(power)).sum();
            assert!((found - moment).abs() < 1e-13 * moment.max(1.0), "{power}: {found}");
        }
    }
}
