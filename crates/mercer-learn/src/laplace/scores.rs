//! Scores of predictions with uncertainty, the same for the network alone and for the posterior.

use crate::error::Result;
use crate::metrics::{
    BINS, Reliability, accuracy, area_under_precision_recall, area_under_roc, brier, gaussian_log_likelihood,
    negative_log_likelihood, reliability, root_mean_square_error,
};
use mercer_net::network::largest;
use ndarray::{Array1, ArrayView2};
use serde::Serialize;

/// Scores of class probabilities.
#[derive(Clone, Debug, Serialize)]
pub struct ClassScores {
    /// The fraction of correct predictions.
    pub accuracy: f64,
    /// The mean negative log likelihood.
    pub nll: f64,
    /// The expected calibration error, in fifteen bins.
    pub ece: f64,
    /// The Brier score, summed over classes.
    pub brier: f64,
    /// The bins behind the calibration error.
    pub reliability: Reliability,
}

impl ClassScores {
    /// From one row of probabilities per sample.
    pub fn measure(probabilities: ArrayView2<'_, f64>, labels: &[usize]) -> Result<Self> {
        let rows = probabilities.outer_iter().map(|row| largest(&row.to_vec()));
        let reliability = reliability(probabilities, labels, BINS)?;
        Ok(Self {
            accuracy: accuracy(&rows.collect::<Vec<_>>(), labels)?,
            nll: negative_log_likelihood(probabilities, labels)?,
            ece: reliability.expected_error,
            brier: brier(probabilities, labels)?,
            reliability,
        })
    }
}

/// Scores of a regression.
#[derive(Clone, Debug, Serialize)]
pub struct RegressionScores {
    /// The root mean square error.
    pub rmse: f64,
    /// The mean negative log density of the targets.
    pub nll: f64,
}

impl RegressionScores {
    /// From means and variances, which include the observation noise, with one row per sample.
    pub fn measure(
        means: ArrayView2<'_, f64>,
        variances: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
    ) -> Result<Self> {
        let (mut rmse, mut nll) = (0.0, 0.0);
        let columns = means.columns().into_iter().zip(variances.columns()).zip(targets.columns());
        for ((mean, variance), target) in columns {
            rmse += root_mean_square_error(mean, target)?.powi(2);
            nll -= gaussian_log_likelihood(mean, variance, target)?;
        }
        Ok(Self { rmse: (rmse / means.ncols().max(1) as f64).sqrt(), nll })
    }
}

/// A note if something (`the posterior`) predicts labelled data worse than the network alone, by the mean negative log
/// likelihood of each.
pub fn worse(what: &str, network: f64, own: f64) -> Option<String> {
    // Ignore differences within rounding.
    (own > network + 1e-6 * network.abs().max(1.0)).then(|| {
        format!("{what} predicts these labels worse than the network alone (NLL {own:.4} instead of {network:.4})")
    })
}

/// How well uncertainty distinguishes out-of-distribution data.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Detection {
    /// The area under the ROC curve.
    pub auroc: f64,
    /// The area under the precision–recall curve, with the out-of-distribution data as positives.
    pub aupr: f64,
}

impl Detection {
    /// From a score per sample that should be larger for out-of-distribution data, such as the entropy of its
    /// prediction.
    pub fn measure(usual: &[f64], other: &[f64]) -> Result<Self> {
        let scores: Vec<f64> = usual.iter().chain(other).copied().collect();
        let positive: Vec<bool> = (0..scores.len()).map(|at| at >= usual.len()).collect();
        Ok(Self { auroc: area_under_roc(&scores, &positive)?, aupr: area_under_precision_recall(&scores, &positive)? })
    }
}

/// `−Σ p ln p` of every row.
pub fn entropies(probabilities: ArrayView2<'_, f64>) -> Array1<f64> {
    let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    probabilities.outer_iter().map(|row| row.iter().map(|&p| entropy(p)).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_posterior_that_is_worse_is_told() {
        assert!(worse("it", 0.1, 0.2).is_some_and(|text| text.contains("0.2000 instead of 0.1000")));
        assert!(worse("it", 0.2, 0.1).is_none() && worse("it", 0.2, 0.2 + 1e-9).is_none());
    }

    #[test]
    fn sure_and_unsure_are_told_apart() {
        let p = array![[1.0, 0.0], [0.5, 0.5]];
        let found = entropies(p.view());
        assert!(found[0] == 0.0 && (found[1] - 2f64.ln()).abs() < 1e-15);
        let detection = Detection::measure(&[0.0, 0.1], &[0.6, 0.7, 0.9]).expect("numbers");
        assert_eq!((detection.auroc, detection.aupr), (1.0, 1.0));
        assert!(Detection::measure(&[0.0], &[]).is_err());
        let scores = ClassScores::measure(p.view(), &[0, 1]).expect("scores");
        assert_eq!(scores.accuracy, 0.5);
        assert!((scores.nll - 0.5 * 2f64.ln()).abs() < 1e-15 && (scores.brier - 0.25).abs() < 1e-15);
    }
}
