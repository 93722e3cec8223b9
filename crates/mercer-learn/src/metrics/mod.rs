//! Measures of predictions, uncertainties and kernels.
//!
//! Labels are indices of classes; probabilities have a row per sample and a column per class. An undefined measure is a
//! typed error, never a NaN.

mod calibration;
mod classification;
mod matrix;
mod ranking;
mod regression;

pub use calibration::{BINS, Reliability, ReliabilityBin, reliability};
pub use classification::{
    PrecisionRecall, accuracy, brier, negative_log_likelihood, precision_recall, test_accuracy_differential,
};
pub use matrix::{
    SpectrumSummary, frobenius_difference, kernel_target_alignment, principal_angles, spectral_difference,
    spectral_norm, spectrum_summary,
};
pub use ranking::{area_under_precision_recall, area_under_roc, kendall_tau};
pub use regression::{gaussian_log_likelihood, r_squared, root_mean_square_error};
