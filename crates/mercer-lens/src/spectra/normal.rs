//! The upper tail of the standard normal distribution, with all its digits far out.
//!
//! ```text
//! P(Z > z)/φ(z) = 1/(z + 1/(z + 2/(z + 3/(z + …))))
//! ```
//!
//! The continued fraction (Laplace) converges quickly for `z ≥ 2`. Below, the probability follows from `erf`.

use mercer_linalg::elementary::{ElementaryFunction, apply};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Terms of the continued fraction: enough for all digits at `z = 2`.
const TERMS: usize = 200;

/// From here on, the continued fraction is used.
const FAR: f64 = 2.0;

/// `φ(z)`.
fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// `P(Z > z)`.
pub(super) fn above(z: f64) -> f64 {
    if z >= FAR {
        return density(z) / (z + excess(z));
    }
    let mut value = [z * FRAC_1_SQRT_2];
    apply(ElementaryFunction::Erf, &mut value);
    0.5 * (1.0 - value[0])
}

/// `ln P(Z > z)`, finite also where the probability is not a positive number any more.
pub(super) fn ln_above(z: f64) -> f64 {
    if z < FAR { above(z).ln() } else { -0.5 * z * z - 0.5 * (2.0 * PI).ln() - (z + excess(z)).ln() }
}

/// `E[Z − z | Z > z] = φ(z)/P(Z > z) − z`.
pub(super) fn excess(z: f64) -> f64 {
    if z < FAR {
        return density(z) / above(z) - z;
    }
    // 1/(z + 2/(z + 3/(z + …))), from the inside.
    1.0 / (2..TERMS).rev().fold(z, |rest, k| z + k as f64 / rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of mpmath with 30 digits.
    #[test]
    fn tails_have_all_digits() {
        let known = [(-3.0, 0.998_650_101_968_369_9), (1.0, 0.158_655_253_931_457_05), (2.0, 0.022_750_131_948_179_21)];
        for (z, value) in known.into_iter().chain([(5.0, 2.866_515_718_791_939e-7), (20.0, 2.753_624_118_606_234e-89)])
        {
            assert!((above(z) / value - 1.0).abs() < 1e-13, "{z}: {}", above(z));
            assert!((ln_above(z) - f64::ln(value)).abs() < 1e-12, "{z}");
        }
        // Both sides of the seam.
        assert!((excess(FAR) - excess(FAR - 1e-9)).abs() < 1e-8);
        assert!((excess(100.0) - 0.009_998_000_999_3).abs() < 1e-12, "{}", excess(100.0));
    }
}
