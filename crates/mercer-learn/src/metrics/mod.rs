//! Measures of predictions, uncertainties and kernels.
//!
//! Labels are indices of classes; probabilities have a row per sample and a column per class. An undefined measure is a
//! typed error, never a NaN.
//!
//! ```
//! use mercer_learn::metrics::{accuracy, negative_log_likelihood};
//! use ndarray::array;
//!
//! assert_eq!(accuracy(&[0, 1, 1, 2], &[0, 1, 2, 2])?, 0.75);
//! let probabilities = array![[0.5, 0.5], [0.25, 0.75]];
//! let expected = (2.0f64.ln() - 0.75f64.ln()) / 2.0;
//! assert!((negative_log_likelihood(probabilities.view(), &[0, 1])? - expected).abs() < 1e-12);
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

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
