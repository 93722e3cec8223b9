//! P-values of statistics under permutations, for one test and for many at once.
//!
//! ```text
//! p   = (1 + #{b : t_b ≥ t_0}) / (1 + B)                                   exact for every B (Phipson and Smyth 2010)
//! z_b = (t_b − mean) / deviation,  over t_0, …, t_B                        makes tests comparable
//! p_k = (1 + #{b : max_j z_jb ≥ z_k0}) / (1 + B)                           Westfall and Young 1993, single step
//! ```
//!
//! All tests use the same permutations, so the maximum has the right distribution however the tests depend on each other.
//! The unpermuted statistic takes part in mean and deviation: it is then treated like all others, and the p-values stay
//! exact.

use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::Result;

/// Statistics that differ by less than this, relative to the largest, are equal: sums of the same numbers in another order.
const ROUNDING: f64 = 1e-11;

/// The p-values of several tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Corrected {
    /// Of each test alone.
    pub alone: Vec<f64>,
    /// Of each test, corrected for the number of tests.
    pub corrected: Vec<f64>,
    /// The least of the corrected ones: the p-value of the hypothesis that no test differs.
    pub least: f64,
    /// How many deviations the unpermuted statistic is above the mean of its permutations.
    pub deviations: Vec<f64>,
}

/// The p-value of a test: the unpermuted statistic comes first, and large values speak against the hypothesis.
///
/// ```
/// assert_eq!(mercer_lens::shift::p_value(&[3.0, 1.0, 2.0, 3.0])?, 0.5);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// Without permutations, and for numbers that are not finite.
pub fn p_value(statistics: &[f64]) -> Result<f64> {
    check_count("a p-value by permutations", 2, statistics.len())?;
    check_numbers("a statistic", statistics)?;
    let largest = statistics.iter().fold(0.0_f64, |most, t| most.max(t.abs()));
    let least = statistics[0] - ROUNDING * largest;
    let count = statistics[1..].iter().filter(|t| **t >= least).count();
    Ok((1 + count) as f64 / statistics.len() as f64)
}

/// The p-values of tests with the same permutations, alone and corrected for their number.
///
/// # Errors
/// Without tests or permutations, for different numbers of permutations, and for numbers that are not finite.
pub fn corrected<S: AsRef<[f64]>>(tests: &[S]) -> Result<Corrected> {
    check_count("a correction for several tests", 1, tests.len())?;
    let n_columns = tests[0].as_ref().len();
    let mut alone = Vec::with_capacity(tests.len());
    let mut studentised: Vec<Vec<f64>> = Vec::with_capacity(tests.len());
    for test in tests {
        check_rows("the statistics of a test", n_columns, test.as_ref().len())?;
        alone.push(p_value(test.as_ref())?);
        studentised.push(deviations(test.as_ref()));
    }
    let mut largest = vec![f64::NEG_INFINITY; n_columns];
    for test in &studentised {
        largest.iter_mut().zip(test).for_each(|(most, z)| *most = most.max(*z));
    }
    let each = |test: &Vec<f64>| {
        let mut against = largest.clone();
        against[0] = test[0];
        p_value(&against)
    };
    let corrected: Vec<f64> = studentised.iter().map(each).collect::<Result<_>>()?;
    let least = corrected.iter().copied().fold(1.0, f64::min);
    Ok(Corrected { alone, corrected, least, deviations: studentised.iter().map(|test| test[0]).collect() })
}

/// Statistics minus their mean, over their deviation; zeros if they are equal.
fn deviations(statistics: &[f64]) -> Vec<f64> {
    // Relative to the largest, so that squares neither overflow nor vanish.
    let largest = statistics.iter().fold(f64::MIN_POSITIVE, |most, t| most.max(t.abs()));
    let relative: Vec<f64> = statistics.iter().map(|t| t / largest).collect();
    let n = relative.len() as f64;
    let mean = relative.iter().sum::<f64>() / n;
    let deviation = (relative.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / n).sqrt();
    if deviation <= ROUNDING {
        return vec![0.0; relative.len()];
    }
    relative.iter().map(|t| (t - mean) / deviation).collect()
}
