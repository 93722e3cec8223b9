//! Normal samples, and labels of a teacher with one or several directions.

use crate::Fallible;
use mercer::data::random::stream;
use ndarray::{Array1, Array2, Axis};
use rand::RngExt;
use rand_distr::StandardNormal;

/// The strength of the quadratic part.
const TAU: f64 = 0.2;

/// The deviation of the noise of training labels.
const NOISE: f64 = 0.3;

/// Samples and labels; those of the test set have no noise.
pub(super) struct Problem {
    pub(super) train: (Array2<f32>, Array1<f64>),
    pub(super) test: (Array2<f32>, Array1<f64>),
    /// Labels of both with a softplus that is scaled to a mean square of one, not centred.
    pub(super) not_centred: [Array1<f64>; 2],
    /// Orthonormal directions, a row each.
    pub(super) directions: Array2<f64>,
}

/// Samples, samples to test on, inputs.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) n: usize,
    pub(super) n_test: usize,
    pub(super) d: usize,
}

impl Problem {
    /// One direction: `σ*(xᵀβ) + τ/d ‖x‖²` (equation 81). Several: the mean of `σ*(xᵀβᵢ)` (equation 80).
    pub(super) fn new(sizes: Sizes, n_directions: usize, seed: u64) -> Fallible<Self> {
        let Sizes { n, n_test, d } = sizes;
        if n_directions > d {
            return Err(format!("there are no {n_directions} orthogonal directions in {d} dimensions").into());
        }
        let directions = orthonormal(normal((n_directions, d), seed, &format!("{n_directions} directions")));
        let [train, test] =
            [("training", n), ("test", n_test)].map(|(name, rows)| normal((rows, d), seed, name).mapv(|x| x as f32));
        let noise = normal((n, 1), seed, "noise").remove_axis(Axis(1)) * NOISE;
        let labels = |x: &Array2<f32>, centred: bool| teacher(&x.mapv(f64::from), &directions, centred);
        let [(y, y_test), (other, other_test)] =
            [true, false].map(|centred| (labels(&train, centred) + &noise, labels(&test, centred)));
        Ok(Self { train: (train, y), test: (test, y_test), not_centred: [other, other_test], directions })
    }
}

fn normal(shape: (usize, usize), seed: u64, name: &str) -> Array2<f64> {
    let mut stream = stream(seed, name);
    Array2::from_shape_simple_fn(shape, || stream.sample(StandardNormal))
}

/// Gram and Schmidt, by rows.
fn orthonormal(mut rows: Array2<f64>) -> Array2<f64> {
    for at in 0..rows.nrows() {
        for before in 0..at {
            let product = rows.row(at).dot(&rows.row(before));
            let other = rows.row(before).to_owned() * product;
            rows.row_mut(at).zip_mut_with(&other, |x, y| *x -= y);
        }
        let norm = rows.row(at).dot(&rows.row(at)).sqrt();
        rows.row_mut(at).mapv_inplace(|x| x / norm);
    }
    rows
}

fn teacher(x: &Array2<f64>, directions: &Array2<f64>, centred: bool) -> Array1<f64> {
    let (mean, deviation) = moments();
    let (mean, deviation) = if centred { (mean, deviation) } else { (0.0, mean.hypot(deviation)) };
    let index = x.dot(&directions.t()).mapv(|z| (softplus(z) - mean) / deviation);
    let first = index.sum_axis(Axis(1)) / directions.nrows() as f64;
    if directions.nrows() > 1 {
        return first;
    }
    first + x.map_axis(Axis(1), |row| TAU * row.dot(&row) / row.len() as f64)
}

fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// Mean and deviation of the softplus of a standard normal number, by the trapezoidal rule.
fn moments() -> (f64, f64) {
    let step = 0.01;
    let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
    for at in -1200..=1200 {
        let z = step * f64::from(at);
        let (weight, value) = ((-0.5 * z * z).exp(), softplus(z));
        total += weight;
        first += weight * value;
        second += weight * value * value;
    }
    let mean = first / total;
    (mean, (second / total - mean * mean).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teachers_have_unit_variance() {
        let (mean, deviation) = moments();
        // The softplus of z minus that of −z is z, so its mean is that of ½|z| + ln(1 + e^−|z|).
        assert!((mean - 0.806_059).abs() < 1e-5 && (deviation - 0.520_9).abs() < 1e-3, "{mean} {deviation}");
        let problem = Problem::new(Sizes { n: 10, n_test: 4000, d: 30 }, 1, 0).unwrap();
        let y = &problem.test.1;
        let mean = y.mean().unwrap();
        assert!((mean - TAU).abs() < 0.06, "{mean}");
        assert!((y.mapv(|y| (y - mean).powi(2)).mean().unwrap() - 1.0).abs() < 0.1);
    }

    #[test]
    fn directions_are_orthonormal() {
        let problem = Problem::new(Sizes { n: 3, n_test: 3, d: 30 }, 5, 1).unwrap();
        let product = problem.directions.dot(&problem.directions.t());
        assert!((product - Array2::<f64>::eye(5)).iter().all(|x| x.abs() < 1e-12));
        assert!(Problem::new(Sizes { n: 3, n_test: 3, d: 4 }, 5, 1).is_err());
    }
}
