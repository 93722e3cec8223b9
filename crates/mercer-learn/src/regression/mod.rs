//! Regression: ridge, spectral filters, least squares, on Gram matrices and on features.
//!
//! ```
//! use mercer_learn::regression::Ridge;
//! use mercer_learn::{Fit, Predict, SampleRows};
//! use ndarray::array;
//!
//! // One sample with κ(x, x) = 1: the prediction is y / (1 + λ).
//! let machine = Ridge::new(1.0)?.fit(&SampleRows::Gram(array![[1.0]].view()), &array![[4.0]])?;
//! assert!((machine.predict(&SampleRows::Gram(array![[1.0]].view()))?[[0, 0]] - 2.0).abs() < 1e-12);
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

mod filter;
mod iterative;
mod least_squares;
mod ridge;

pub use filter::{Decomposition, Filter};
pub use iterative::{GramColumns, Iterated, IterativeRidge};
pub use least_squares::LeastSquares;
pub use ridge::Ridge;
pub(crate) use ridge::centre;

use crate::error::{LearnError, Result, check_size};
use crate::samples::SampleRows;
use mercer_linalg::check_finite;
use ndarray::ArrayView2;

/// Samples and targets that belong together, all finite.
pub(crate) fn check(samples: &SampleRows<'_>, targets: ArrayView2<'_, f64>) -> Result<()> {
    samples.check_for_fit()?;
    check_targets(samples, targets)
}

/// Targets that belong to samples, which are checked elsewhere.
fn check_targets(samples: &SampleRows<'_>, targets: ArrayView2<'_, f64>) -> Result<()> {
    if samples.n_samples() == 0 {
        return Err(LearnError::Empty { what: "fit" });
    }
    check_size("the number of targets", samples.n_samples(), targets.nrows())?;
    Ok(check_finite("the targets", targets)?)
}
