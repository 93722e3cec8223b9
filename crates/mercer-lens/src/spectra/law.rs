//! The law of Marchenko and Pastur.
//!
//! Let `W` be `h × d` with independent entries of mean 0 and variance `σ²`. As both sizes grow at a fixed ratio
//! `q = h/d`, the non-zero eigenvalues of `WWᵀ/d` have the density
//!
//! ```text
//! p(x) = √((λ₊ − x)(x − λ₋)) / (2π min(q, 1) σ² x),   λ± = σ² (1 ± √q)²
//! ```
//!
//! (Marchenko and Pastur, Math. USSR Sbornik 1, 1967). With `x = σ²(1 + q + 2√q cos θ)` the integral is elementary,
//!
//! ```text
//! P(X > x) = [(1 + q)θ − 2√q sin θ − 2|1 − q| atan(|1 − √q|/(1 + √q) · tan(θ/2))] / (2π min(q, 1))
//! ```
//!
//! **Normalisation.** There is one convention: eigenvalues of `WWᵀ/d`, for a matrix with `h` rows and `d` columns, and
//! the `min(h, d)` of them that are not zero by its shape. The other convention, `WᵀW/h`, has the same eigenvalues
//! divided by `q`.

use crate::error::{LensError, Result};
use serde::Serialize;
use std::f64::consts::PI;

/// The law of the non-zero eigenvalues of `WWᵀ/d`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MarchenkoPastur {
    /// `q = h/d`: rows per column.
    ratio: f64,
    /// `σ²`: the variance of an entry.
    variance: f64,
}

impl MarchenkoPastur {
    /// The law for `ratio = h/d` and the variance of an entry.
    ///
    /// ```
    /// use mercer_lens::spectra::MarchenkoPastur;
    /// let law = MarchenkoPastur::new(1.5, 1.0)?;
    /// assert!((law.upper_edge() - 4.949).abs() < 1e-3);
    /// assert!((law.cdf(law.quantile(0.3)?) - 0.3).abs() < 1e-12);
    /// # Ok::<(), mercer_lens::LensError>(())
    /// ```
    ///
    /// # Errors
    /// For numbers that are not positive and finite.
    pub fn new(ratio: f64, variance: f64) -> Result<Self> {
        for (name, value) in [("the ratio of rows to columns", ratio), ("the variance of entries", variance)] {
            if !(value > 0.0 && value.is_finite()) {
                let reason = "it must be a positive number";
                return Err(LensError::Setting { name, value: value.to_string(), reason });
            }
        }
        Ok(Self { ratio, variance })
    }

    /// `q = h/d`.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// `σ²`.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// `λ₋`.
    pub fn lower_edge(&self) -> f64 {
        self.variance * (1.0 - self.ratio.sqrt()).powi(2)
    }

    /// `λ₊`.
    pub fn upper_edge(&self) -> f64 {
        self.variance * (1.0 + self.ratio.sqrt()).powi(2)
    }

    /// The density. It is infinite at zero for a square matrix.
    pub fn density(&self, x: f64) -> f64 {
        let (lower, upper) = (self.lower_edge(), self.upper_edge());
        if x < lower || x > upper || x < 0.0 {
            return 0.0;
        }
        if x == 0.0 {
            return f64::INFINITY;
        }
        ((upper - x) * (x - lower)).sqrt() / (2.0 * PI * self.ratio.min(1.0) * self.variance * x)
    }

    /// The share of eigenvalues up to `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        let cosine = (x / self.variance - 1.0 - self.ratio) / (2.0 * self.ratio.sqrt());
        1.0 - self.above(cosine.clamp(-1.0, 1.0).acos())
    }

    /// The number that this share of eigenvalues does not exceed.
    ///
    /// # Errors
    /// For a share outside of 0 to 1.
    pub fn quantile(&self, share: f64) -> Result<f64> {
        if !(0.0..=1.0).contains(&share) {
            let reason = "it must be between 0 and 1";
            return Err(LensError::Setting { name: "the share of a quantile", value: share.to_string(), reason });
        }
        let (mut low, mut high) = (0.0, PI);
        // Bisection in the angle, in which the law has no infinite slope. It ends at neighbouring numbers.
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.above(middle) < 1.0 - share { low = middle } else { high = middle }
        }
        let cosine = (0.5 * (low + high)).cos();
        let value = self.variance * (1.0 + self.ratio + 2.0 * self.ratio.sqrt() * cosine);
        Ok(value.clamp(self.lower_edge(), self.upper_edge()))
    }

    /// The share of eigenvalues above the one at an angle.
    fn above(&self, angle: f64) -> f64 {
        let (q, root) = (self.ratio, self.ratio.sqrt());
        let tangent = ((1.0 - root).abs() / (1.0 + root) * (0.5 * angle).tan()).atan();
        let area = (1.0 + q) * angle - 2.0 * root * angle.sin() - 2.0 * (1.0 - q).abs() * tangent;
        (area / (2.0 * PI * q.min(1.0))).clamp(0.0, 1.0)
    }
}
