//! Synthetic data sets, the same for the same seed.

mod teacher;

pub use teacher::{Teacher, TeacherActivation};

use std::f64::consts::{PI, TAU};

use ndarray::Array2;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::error::{DataError, Result};
use crate::labels::Classes;
use crate::random::stream;

/// Two interleaved half circles in the plane, with Gaussian noise of the given standard deviation.
///
/// The classes alternate, so any prefix of the set is balanced. Streams: `"two moons/noise"`.
///
/// ```
/// let (points, classes) = mercer_data::synthetic::two_moons(100, 0.1, 0)?;
/// assert_eq!(points.dim(), (100, 2));
/// assert_eq!(classes.counts(), [50, 50]);
/// # Ok::<(), mercer_data::DataError>(())
/// ```
pub fn two_moons(n_samples: usize, noise: f64, seed: u64) -> Result<(Array2<f64>, Classes)> {
    two_curves(n_samples, noise, seed, "two moons/noise", |class, along| {
        let (sin, cos) = (PI * along).sin_cos();
        if class == 0 { [cos, sin] } else { [1.0 - cos, 0.5 - sin] }
    })
}

/// Two circles around the origin, of radius 1 (class 0) and `inner` (class 1), with Gaussian noise.
///
/// The classes alternate. Streams: `"circles/noise"`.
pub fn circles(n_samples: usize, inner: f64, noise: f64, seed: u64) -> Result<(Array2<f64>, Classes)> {
    if !(inner > 0.0 && inner < 1.0) {
        return Err(DataError::Argument { name: "inner", reason: format!("must lie between 0 and 1, not {inner}") });
    }
    // The last point of a closed curve must not coincide with the first.
    let per_class = n_samples.div_ceil(2).max(1) as f64;
    two_curves(n_samples, noise, seed, "circles/noise", |class, along| {
        let (sin, cos) = (TAU * along * (per_class - 1.0) / per_class).sin_cos();
        let radius = if class == 0 { 1.0 } else { inner };
        [radius * cos, radius * sin]
    })
}

/// Evenly spaced points along one curve per class; `along` runs from 0 to 1.
fn two_curves(
    n_samples: usize,
    noise: f64,
    seed: u64,
    name: &str,
    curve: impl Fn(usize, f64) -> [f64; 2],
) -> Result<(Array2<f64>, Classes)> {
    check_noise(noise)?;
    check_size(n_samples, 2)?;
    let mut random = stream(seed, name);
    let mut points = Array2::zeros((n_samples, 2));
    for (index, mut point) in points.outer_iter_mut().enumerate() {
        let (class, nth) = (index % 2, index / 2);
        let n_class = (n_samples + 1 - class) / 2;
        let along = if n_class > 1 { nth as f64 / (n_class - 1) as f64 } else { 0.0 };
        for (coordinate, exact) in point.iter_mut().zip(curve(class, along)) {
            *coordinate = exact + noise * normal(&mut random);
        }
    }
    let classes = Classes::new((0..n_samples).map(|index| index % 2).collect(), 2)?;
    Ok((points, classes))
}

/// Points drawn uniformly from the cube [low, high)^n_features. Streams: `"uniform/inputs"`.
pub fn uniform(n_samples: usize, n_features: usize, low: f64, high: f64, seed: u64) -> Result<Array2<f64>> {
    if !(low.is_finite() && high.is_finite() && low < high && (high - low).is_finite()) {
        return Err(DataError::Argument {
            name: "interval",
            reason: format!("[{low}, {high}) is empty or not finite"),
        });
    }
    check_size(n_samples, n_features)?;
    let mut random = stream(seed, "uniform/inputs");
    Ok(Array2::from_shape_simple_fn((n_samples, n_features), || low + (high - low) * random.random::<f64>()))
}

fn normal(random: &mut impl rand::Rng) -> f64 {
    StandardNormal.sample(random)
}

fn check_noise(noise: f64) -> Result<()> {
    if noise.is_finite() && noise >= 0.0 {
        return Ok(());
    }
    Err(DataError::Argument { name: "noise", reason: format!("must be finite and not negative, not {noise}") })
}

/// A request for more numbers than this is assumed to be a mistake.
fn check_size(n_samples: usize, n_features: usize) -> Result<()> {
    const MOST: usize = 1 << 34;
    match n_samples.checked_mul(n_features) {
        Some(count) if count <= MOST => Ok(()),
        _ => Err(DataError::TooLarge { place: "synthetic data".to_owned(), shape: vec![n_samples, n_features] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moons_without_noise_lie_on_their_circles() {
        let (points, classes) = two_moons(21, 0.0, 0).unwrap();
        for (point, &class) in points.outer_iter().zip(classes.indices()) {
            let (x, y) = if class == 0 { (point[0], point[1]) } else { (1.0 - point[0], 0.5 - point[1]) };
            assert!((x.hypot(y) - 1.0).abs() < 1e-12 && y > -1e-12);
        }
        assert_eq!(classes.counts(), [11, 10]);
    }

    #[test]
    fn circles_have_their_radii_and_no_point_twice() {
        let (points, classes) = circles(40, 0.5, 0.0, 0).unwrap();
        for (point, &class) in points.outer_iter().zip(classes.indices()) {
            assert!((point[0].hypot(point[1]) - [1.0, 0.5][class]).abs() < 1e-12);
        }
        let close = |i: usize, j: usize| (&points.row(i) - &points.row(j)).iter().all(|gap| gap.abs() < 1e-6);
        assert!((0..40).all(|i| (0..i).all(|j| !close(i, j))));
    }

    #[test]
    fn the_same_for_the_same_seed() {
        assert_eq!(two_moons(10, 0.1, 3).unwrap(), two_moons(10, 0.1, 3).unwrap());
        assert_ne!(two_moons(10, 0.1, 3).unwrap().0, two_moons(10, 0.1, 4).unwrap().0);
    }

    #[test]
    fn uniform_fills_its_interval() {
        let points = uniform(1000, 3, -2.0, 3.0, 1).unwrap();
        assert!(points.iter().all(|&value| (-2.0..3.0).contains(&value)));
        assert!((points.mean().unwrap() - 0.5).abs() < 0.1);
    }

    #[test]
    fn bad_arguments_are_errors() {
        assert!(two_moons(10, f64::NAN, 0).is_err());
        assert!(circles(10, 1.5, 0.0, 0).is_err());
        assert!(uniform(10, 2, 1.0, 1.0, 0).is_err());
        assert!(uniform(usize::MAX, 2, 0.0, 1.0, 0).is_err());
        assert_eq!(two_moons(0, 0.0, 0).unwrap().0.nrows(), 0);
    }
}
