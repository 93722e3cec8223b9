//! Random features of a Gaussian kernel, and its length scale.
//!
//! ```text
//! φ(x) = (cos ω₁·x, …, cos ω_F·x, sin ω₁·x, …, sin ω_F·x)/√F,  ω ~ N(0, I/ℓ²)      Rahimi and Recht 2007
//! ```
//!
//! `φ(x)·φ(y)` is `exp(−‖x−y‖²/2ℓ²)` up to an error of order `1/√F`. The kernel of the features is positive definite
//! itself, so a test with it is valid for every `F`; few features cost power. `ℓ` is the median distance of some samples.

use crate::error::Result;
use mercer_data::random::stream;
use mercer_linalg::elementary::{cos_in_place, sin_in_place};
use mercer_linalg::{check_finite, matmul};
use ndarray::{Array2, ArrayView2, s};
use rand::RngExt;

/// Random features of a Gaussian kernel.
#[derive(Clone, Debug)]
pub struct RandomFourier {
    /// A column per frequency.
    frequencies: Array2<f64>,
    lengthscale: f64,
}

impl RandomFourier {
    /// Draws frequencies for samples of this width. A length scale of zero counts as one.
    pub fn draw(width: usize, n_frequencies: usize, lengthscale: f64, seed: u64) -> Self {
        let lengthscale = if lengthscale > 0.0 { lengthscale } else { 1.0 };
        let mut random = stream(seed, "lens/shift/frequencies");
        let mut pair = || {
            // Box and Muller; the first number must not be zero.
            let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt() / lengthscale;
            let angle = std::f64::consts::TAU * random.random::<f64>();
            [radius * angle.cos(), radius * angle.sin()]
        };
        let count = width * n_frequencies;
        let mut numbers: Vec<f64> = (0..count.div_ceil(2)).flat_map(|_| pair()).collect();
        numbers.truncate(count);
        let frequencies = Array2::from_shape_vec((width, n_frequencies), numbers);
        // There are as many numbers as the shape needs.
        Self { frequencies: frequencies.unwrap_or_else(|_| Array2::zeros((width, n_frequencies))), lengthscale }
    }

    /// The length scale.
    pub fn lengthscale(&self) -> f64 {
        self.lengthscale
    }

    /// The number of features: two per frequency.
    pub fn n_features(&self) -> usize {
        2 * self.frequencies.ncols()
    }

    /// The features of samples, a row each.
    pub fn features(&self, samples: ArrayView2<'_, f64>) -> Array2<f64> {
        let n_frequencies = self.frequencies.ncols();
        let angles = matmul(samples, self.frequencies.view());
        let mut found = Array2::zeros((samples.nrows(), 2 * n_frequencies));
        found.slice_mut(s![.., ..n_frequencies]).assign(&angles);
        found.slice_mut(s![.., n_frequencies..]).assign(&angles);
        for mut row in found.outer_iter_mut() {
            // Rows of a new array are contiguous.
            if let Some(row) = row.as_slice_mut() {
                let (cosines, sines) = row.split_at_mut(n_frequencies);
                cos_in_place(cosines);
                sin_in_place(sines);
            }
        }
        found /= (n_frequencies.max(1) as f64).sqrt();
        found
    }
}

/// The median distance of different samples, a row each; zero if they are equal.
///
/// # Errors
/// For numbers that are not finite.
pub fn median_distance(samples: ArrayView2<'_, f64>) -> Result<f64> {
    check_finite("the median distance", samples)?;
    let scale = crate::arrays::largest(samples);
    if scale == 0.0 {
        return Ok(0.0);
    }
    let relative = &samples / scale;
    let gram = matmul(relative.view(), relative.t());
    let n = gram.nrows();
    let mut squares: Vec<f64> = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for i in 0..n {
        squares.extend((0..i).map(|j| (gram[[i, i]] + gram[[j, j]] - 2.0 * gram[[i, j]]).max(0.0)));
    }
    // Copies say nothing about the scale; products of numbers up to one have rounding errors of this size.
    squares.retain(|square| *square > 1e-14 * samples.ncols() as f64);
    if squares.is_empty() {
        return Ok(0.0);
    }
    let middle = squares.len() / 2;
    let (_, median, _) = squares.select_nth_unstable_by(middle, f64::total_cmp);
    Ok(scale * median.sqrt())
}
