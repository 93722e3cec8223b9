//! The quality of predictions with known labels.

use crate::Error;
use mercer_learn::metrics::{
    BINS, Reliability, accuracy, brier, gaussian_log_likelihood, negative_log_likelihood, r_squared, reliability,
    root_mean_square_error,
};
use ndarray::{Array1, Array2, ArrayView2};
use serde::Serialize;

/// The quality of predictions. Measures that are unknown or do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// The share of correct decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Of the true classes, per sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negative_log_likelihood: Option<f64>,
    /// The calibration error: how far probabilities are from frequencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_calibration_error: Option<f64>,
    /// The bins behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// The mean squared distance from certainty in the true class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brier: Option<f64>,
    /// Of a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_mean_square_error: Option<f64>,
    /// The share of the variance explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r_squared: Option<f64>,
    /// Of a regression that knows its variance, per sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_likelihood: Option<f64>,
}

impl Quality {
    /// The quality of decisions and, if given, of class probabilities.
    pub(super) fn of_classes(
        decided: &[usize],
        probabilities: Option<ArrayView2<'_, f64>>,
        truth: &[usize],
    ) -> Result<Self, Error> {
        let mut quality = Self { accuracy: Some(accuracy(decided, truth)?), ..Self::default() };
        if let Some(found) = probabilities {
            quality.negative_log_likelihood = Some(negative_log_likelihood(found, truth)?);
            let diagram = reliability(found, truth, BINS)?;
            quality.expected_calibration_error = Some(diagram.expected_error);
            quality.reliability = Some(diagram);
            quality.brier = Some(brier(found, truth)?);
        }
        Ok(quality)
    }

    /// The quality of numbers and, if known, of the variances of observations.
    pub(super) fn of_numbers(
        found: &Array2<f64>,
        variances: Option<&Array2<f64>>,
        truth: &Array2<f64>,
    ) -> Result<Self, Error> {
        if found.dim() != truth.dim() {
            let text = format!("‹labels›: {} targets for {} predictions per sample", truth.ncols(), found.ncols());
            return Err(Error::new(text));
        }
        let flat = |array: &Array2<f64>| array.iter().copied().collect::<Array1<f64>>();
        let (predicted, truth) = (flat(found), flat(truth));
        let likelihood = |variances: &Array2<f64>| {
            gaussian_log_likelihood(predicted.view(), flat(variances).view(), truth.view()).ok()
        };
        Ok(Self {
            root_mean_square_error: Some(root_mean_square_error(predicted.view(), truth.view())?),
            r_squared: r_squared(predicted.view(), truth.view()).ok(),
            log_likelihood: variances.and_then(likelihood),
            ..Self::default()
        })
    }
}
