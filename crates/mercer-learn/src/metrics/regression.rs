//! Measures of regressions.

use crate::error::{LearnError, Result, check_size};
use ndarray::ArrayView1;

/// `√mean (ŷ − y)²`.
pub fn root_mean_square_error(predicted: ArrayView1<'_, f64>, targets: ArrayView1<'_, f64>) -> Result<f64> {
    check("root mean square error", predicted, targets)?;
    let scale = scale(predicted, targets);
    Ok((squares(predicted, targets, scale) / targets.len() as f64).sqrt() / scale)
}

/// `1 − Σ(ŷ − y)² / Σ(y − ȳ)²`; undefined for constant targets.
pub fn r_squared(predicted: ArrayView1<'_, f64>, targets: ArrayView1<'_, f64>) -> Result<f64> {
    check("R²", predicted, targets)?;
    let scale = scale(targets, targets);
    let mean = targets.mapv(|y| y * scale).sum() / targets.len() as f64;
    let around: f64 = targets.iter().map(|y| (y * scale - mean).powi(2)).sum();
    if around == 0.0 {
        return Err(LearnError::Undefined { metric: "R²", reason: "the targets are constant" });
    }
    let found = 1.0 - squares(predicted, targets, scale) / around;
    if !found.is_finite() {
        return Err(LearnError::Undefined { metric: "R²", reason: "the predictions are too far from the targets" });
    }
    Ok(found)
}

/// The mean of `ln N(y; mean, variance)`.
pub fn gaussian_log_likelihood(
    means: ArrayView1<'_, f64>,
    variances: ArrayView1<'_, f64>,
    targets: ArrayView1<'_, f64>,
) -> Result<f64> {
    check("log-likelihood", means, targets)?;
    check_size("the number of variances", targets.len(), variances.len())?;
    if !variances.iter().all(|variance| *variance > 0.0) {
        return Err(LearnError::Undefined { metric: "log-likelihood", reason: "a variance is not positive" });
    }
    let one = |((mean, variance), y): ((&f64, &f64), &f64)| {
        -0.5 * ((std::f64::consts::TAU * variance).ln() + (y - mean).powi(2) / variance)
    };
    Ok(means.iter().zip(variances).zip(targets).map(one).sum::<f64>() / targets.len() as f64)
}

/// A factor on numbers that keeps their squares from overflowing or vanishing; usually one.
fn scale(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    let largest = a.iter().chain(b).fold(0.0f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || (1e-140..1e140).contains(&largest) { 1.0 } else { 1.0 / largest.max(1e-300) }
}

/// The sum of squared differences of scaled numbers.
fn squares(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>, scale: f64) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a * scale - b * scale).powi(2)).sum()
}

fn check(metric: &'static str, predicted: ArrayView1<'_, f64>, targets: ArrayView1<'_, f64>) -> Result<()> {
    check_size("the number of predictions", targets.len(), predicted.len())?;
    if targets.is_empty() {
        return Err(LearnError::Empty { what: metric });
    }
    if predicted.iter().chain(targets).any(|value| !value.is_finite()) {
        return Err(LearnError::Undefined { metric, reason: "a prediction or a target is not finite" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, array};

    #[test]
    fn by_hand() {
        let (p, y) = (array![1.0, 2.0, 4.0], array![1.0, 3.0, 5.0]);
        assert!((root_mean_square_error(p.view(), y.view()).unwrap() - (2.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((r_squared(p.view(), y.view()).unwrap() - 0.75).abs() < 1e-15);
        let unit = gaussian_log_likelihood(p.view(), Array1::ones(3).view(), y.view()).unwrap();
        assert!((unit - (-0.5 * std::f64::consts::TAU.ln() - 1.0 / 3.0)).abs() < 1e-15);
        assert!(r_squared(p.view(), array![2.0, 2.0, 2.0].view()).is_err());
        // Numbers whose squares overflow.
        for size in [1e300, 1e-300] {
            let (p, y) = (&p * size, &y * size);
            assert!((r_squared(p.view(), y.view()).unwrap() - 0.75).abs() < 1e-12);
            let error = root_mean_square_error(p.view(), y.view()).unwrap() / size;
            assert!((error - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        }
        assert!(r_squared((&p * 1e300).view(), y.view()).is_err());
        assert!(gaussian_log_likelihood(p.view(), Array1::zeros(3).view(), y.view()).is_err());
    }
}
