//! Two spectra side by side, such as before and after training: quantiles against quantiles.
//!
//! The quantile at a probability `p` is interpolated linearly between order statistics at `p (n − 1)`, as NumPy does by
//! default, so the spectra may have different lengths. The Kolmogorov–Smirnov distance is the largest difference of
//! the two empirical distributions.

use crate::attribution::quantile;
use crate::checks::{check_count, check_numbers};
use crate::error::{LensError, Result};
use serde::Serialize;

/// A quantile of both spectra.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantilePair {
    /// The probability.
    pub probability: f64,
    /// The quantile of the first spectrum.
    pub first: f64,
    /// The quantile of the second spectrum.
    pub second: f64,
}

/// Quantiles of two spectra, and how far they are apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantileComparison {
    /// A pair for each probability.
    pub pairs: Vec<QuantilePair>,
    /// The largest `|second − first| / |first|`, over pairs whose first is not rounding beside the largest number of
    /// its spectrum; `None` if all are.
    pub largest_relative_deviation: Option<f64>,
    /// The two-sample Kolmogorov–Smirnov distance.
    pub distance: f64,
}

/// Compares two spectra, in any order, at these probabilities.
///
/// ```
/// let found = mercer_lens::spectra::compare_quantiles(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0], &[0.0, 0.5, 1.0])?;
/// assert_eq!((found.pairs[1].first, found.pairs[1].second), (2.0, 4.0));
/// assert_eq!(found.largest_relative_deviation, Some(1.0));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For an empty spectrum, numbers that are not finite, and probabilities outside of 0 to 1.
pub fn compare_quantiles(first: &[f64], second: &[f64], probabilities: &[f64]) -> Result<QuantileComparison> {
    for spectrum in [first, second] {
        check_count("a comparison of quantiles", 1, spectrum.len())?;
        check_numbers("a spectrum", spectrum)?;
    }
    if let Some(&outside) = probabilities.iter().find(|probability| !(0.0..=1.0).contains(*probability)) {
        let reason = "it must be between 0 and 1";
        return Err(LensError::Setting { name: "a probability", value: outside.to_string(), reason });
    }
    let [mut a, mut b] = [first, second].map(|spectrum| spectrum.to_vec());
    let distance = two_sample_distance(&mut a, &mut b);
    let pair = |&probability: &f64| {
        let (first, second) = (quantile(&mut a, probability), quantile(&mut b, probability));
        QuantilePair { probability, first, second }
    };
    let pairs: Vec<QuantilePair> = probabilities.iter().map(pair).collect();
    let largest = first.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let rounding = first.len() as f64 * f64::EPSILON * largest;
    let deviations = pairs.iter().filter(|pair| pair.first.abs() > rounding);
    let deviations = deviations.map(|pair| ((pair.second - pair.first) / pair.first).abs());
    let largest_relative_deviation = deviations.reduce(f64::max).filter(|deviation| deviation.is_finite());
    Ok(QuantileComparison { pairs, largest_relative_deviation, distance })
}

/// The distance of two samples; sorts them.
fn two_sample_distance(a: &mut [f64], b: &mut [f64]) -> f64 {
    // Zero is added so that −0 and 0 are equal.
    [&mut *a, &mut *b].into_iter().for_each(|sample| sample.sort_unstable_by(|x, y| (x + 0.0).total_cmp(&(y + 0.0))));
    let (mut i, mut j, mut most) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let at = a[i].min(b[j]);
        while i < a.len() && a[i] == at {
            i += 1;
        }
        while j < b.len() && b[j] == at {
            j += 1;
        }
        most = most.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    most
}
