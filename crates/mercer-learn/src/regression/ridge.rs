//! Kernel ridge regression, exactly.
//!
//! ```text
//! min_f Σᵢ (f(xᵢ) − yᵢ)² + α‖f‖²        f(x) = κ(x, X)·(K + αI)⁻¹·y
//! ```
//!
//! With features, the smaller of `Φ·Φᵀ + αI` and `Φᵀ·Φ + αI` is factorised. Jitter for a singular matrix is reported.

use crate::error::{Result, check_not_negative};
use crate::linear::Linear;
use crate::repair::{self, Repair};
use crate::samples::SampleRows;
use crate::traits::Fit;
use mercer_linalg::{LinalgError, cholesky_shifted, matmul, syrk};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Kernel ridge regression.
///
/// ```
/// use mercer_learn::{Fit, Predict, SampleRows, regression::Ridge};
/// use ndarray::array;
/// let gram = array![[2.0, 1.0], [1.0, 2.0]];
/// let machine = Ridge::new(1.0)?.fit(&SampleRows::Gram(gram.view()), &array![[8.0], [0.0]])?;
/// assert!((machine.weights()[(0, 0)] - 3.0).abs() < 1e-12);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ridge {
    alpha: f64,
    centred: bool,
}

impl Ridge {
    /// With this `α`, zero or positive. Zero interpolates, as far as the matrix allows.
    pub fn new(alpha: f64) -> Result<Self> {
        Ok(Self { alpha: check_not_negative("alpha", alpha)?, centred: false })
    }

    /// Centres the targets, and adds their mean to predictions.
    pub fn centred(self) -> Self {
        Self { centred: true, ..self }
    }
}

/// The means of the columns, the centred columns, and a note for constant ones.
pub(crate) fn centre(targets: ArrayView2<'_, f64>, centred: bool) -> (Array1<f64>, Array2<f64>, Vec<Repair>) {
    if !centred {
        return (Array1::zeros(targets.ncols()), targets.to_owned(), Vec::new());
    }
    let means = targets.sum_axis(Axis(0)) / targets.nrows() as f64;
    let rest = &targets - &means;
    let constant = |column: &usize| targets.column(*column).iter().all(|y| *y == targets[(0, *column)]);
    let notes = (0..targets.ncols()).filter(constant).map(|column| Repair::ConstantTarget { column }).collect();
    (means, rest, notes)
}

/// Converts an error about the factorised matrix to one about the given matrix.
fn of_the_gram_matrix(error: LinalgError) -> LinalgError {
    let name = "the Gram matrix";
    match error {
        LinalgError::NotFinite { row, column, value, .. } => {
            LinalgError::NotFinite { routine: name, row, column, value }
        }
        LinalgError::NotSymmetric { row, column, difference, tolerance, .. } => {
            LinalgError::NotSymmetric { routine: name, row, column, difference, tolerance }
        }
        LinalgError::ShapeMismatch { what, expected, found, .. } => {
            LinalgError::ShapeMismatch { routine: name, what, expected, found }
        }
        other => other,
    }
}

impl Fit<Array2<f64>> for Ridge {
    type Machine = Linear;

    fn learn(&self, samples: &SampleRows<'_>, targets: &Array2<f64>, _: &Context) -> Result<Linear> {
        super::check_targets(samples, targets.view())?;
        let (bias, targets, mut repairs) = centre(targets.view(), self.centred);
        let (rows, columns) = samples.rows().dim();
        let primal = matches!(samples, SampleRows::Features(_)) && columns < rows;
        let factor = match samples {
            SampleRows::Features(features) => {
                samples.check_for_fit()?;
                cholesky_shifted(syrk(if primal { features.t() } else { *features }).view(), self.alpha)?
            }
            // The factorisation makes all checks of a fit while it copies the matrix.
            SampleRows::Gram(gram) => cholesky_shifted(*gram, self.alpha).map_err(of_the_gram_matrix)?,
        };
        repairs.extend(repair::jitter(&factor));
        let weights = if primal {
            factor.solve(matmul(samples.rows().t(), targets.view()).view())?
        } else {
            samples.weights(factor.solve(targets.view())?)
        };
        Ok(Linear { basis: samples.basis(), weights, bias, repairs })
    }
}
