//! Means over queries, with their uncertainty.
//!
//! ```text
//! standard error = √(Σ (xᵢ − x̄)² / (n − 1) / n)
//! ```
//!
//! The interval is the percentile bootstrap (Efron 1979): the middle 95 % of the means of samples of the same size,
//! drawn with replacement. It says how much the mean depends on which queries were asked, and nothing about the training
//! runs behind them.

use mercer_data::random::stream;
use rand::RngExt;
use serde::Serialize;

/// A mean and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Average {
    /// The mean.
    pub mean: f64,
    /// Its standard error; `None` for a single value.
    pub standard_error: Option<f64>,
    /// The 95 % bootstrap interval; `None` for a single value, or without resamples.
    pub interval: Option<[f64; 2]>,
    /// How many values there are.
    pub count: usize,
}

impl Average {
    /// Of these values, with this many bootstrap samples; `None` if there are no values, or their mean is not
    /// finite.
    pub fn of(values: &[f64], resamples: usize, seed: u64) -> Option<Self> {
        let count = values.len();
        let n = count as f64;
        let mean = values.iter().sum::<f64>() / n;
        if !mean.is_finite() {
            return None;
        }
        let standard_error = (count > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1.0) / n).sqrt()
        });
        let interval = (count > 1 && resamples > 0).then(|| bootstrap(values, resamples, seed));
        Some(Self { mean, standard_error, interval, count })
    }
}

fn bootstrap(values: &[f64], resamples: usize, seed: u64) -> [f64; 2] {
    let mut random = stream(seed, "lens/bootstrap");
    let n = values.len();
    let mut means: Vec<f64> =
        (0..resamples).map(|_| (0..n).map(|_| values[random.random_range(0..n)]).sum::<f64>() / n as f64).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[((share * resamples as f64) as usize).min(resamples - 1)];
    [at(0.025), at(0.975)]
}
