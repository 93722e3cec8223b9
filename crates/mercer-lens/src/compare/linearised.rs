//! The network that is linear in its parameters.
//!
//! ```text
//! f_lin(x) = f₀(x) + K(x, D) (K(D, D) + σI)⁻¹ (Y − f₀(D))
//! ```
//!
//! where `f₀` is the network, and `K` its tangent kernel `Θ`, or a scalar kernel `κ` for every output by itself, which
//! is `κ ⊗ I` (Mohamadi and Sutherland 2022, arXiv 2206.12543, equations 5 and 6). It is what gradient descent on the
//! squared loss ends with. `σ` is what was asked for, plus the least jitter that a Cholesky factor needs; their sum is
//! reported, with the residual that is left on the training samples.

use super::Valued;
use crate::checks::{check_count, check_rows};
use crate::error::{LensError, Result};
use mercer_linalg::verify::frobenius;
use mercer_linalg::{check_finite, cholesky_shifted, matmul};
use ndarray::{Array2, ArrayView2};

/// A linear network that fits its training samples.
#[derive(Clone, Debug)]
pub struct Linearised {
    /// `(K + σI)⁻¹ (Y − f₀)`: a row per row of the kernel.
    weights: Array2<f64>,
    n_outputs: usize,
    /// Whether the kernel has a row per sample.
    is_scalar: bool,
    /// What was added to the diagonal of the kernel.
    pub ridge: f64,
    /// `‖Y − f₀ − K·weights‖ / ‖Y − f₀‖`; zero if there was nothing to fit.
    pub residual: f64,
}

impl Linearised {
    /// Fits what the network leaves over, `Y − f₀` with a row per sample and a column per output. `ridge` is relative
    /// to the mean of the diagonal.
    ///
    /// ```
    /// use mercer_lens::{Linearised, Valued};
    /// use ndarray::array;
    ///
    /// let kernel = array![[2.0, 0.0], [0.0, 4.0]];
    /// let fit = Linearised::fit(Valued::scalar(kernel.view()), array![[1.0], [1.0]].view(), 0.0)?;
    /// assert!((fit.predict(array![[2.0, 2.0]].view())?[(0, 0)] - 1.5).abs() < 1e-12);
    /// # Ok::<(), mercer_lens::LensError>(())
    /// ```
    ///
    /// # Errors
    /// For no samples, other sizes, numbers that are not finite, and a kernel that is not positive semidefinite.
    pub fn fit(kernel: Valued<'_>, targets: ArrayView2<'_, f64>, ridge: f64) -> Result<Self> {
        check_count("a linear network", 1, targets.nrows())?;
        check_rows("the kernel", targets.nrows(), kernel.n_samples())?;
        check_finite("targets", targets)?;
        if !(ridge >= 0.0 && ridge.is_finite()) {
            let reason = "it must be zero or more";
            return Err(LensError::Setting { name: "the ridge", value: ridge.to_string(), reason });
        }
        let (n_outputs, is_scalar) = (targets.ncols(), kernel.n_outputs == 1);
        let rows = if is_scalar { targets.to_owned() } else { column(targets, kernel.n_outputs)? };
        let n_rows = kernel.matrix.nrows();
        let shift = ridge * kernel.matrix.diag().sum() / n_rows as f64;
        let factor = cholesky_shifted(kernel.matrix, shift)?;
        let weights = factor.solve(rows.view())?;
        let left = frobenius((&rows - &matmul(kernel.matrix, weights.view())).view());
        let residual = if left == 0.0 { 0.0 } else { left / frobenius(rows.view()) };
        Ok(Self { weights, n_outputs, is_scalar, ridge: shift + factor.jitter, residual })
    }

    /// What is added to the network on other samples: a row per sample and a column per output. `rows` are the kernel
    /// values of these samples with the training samples.
    ///
    /// # Errors
    /// For a matrix of another size, and numbers that are not finite.
    pub fn predict(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_rows("kernel values with the training samples", self.weights.nrows(), rows.ncols())?;
        check_finite("kernel values", rows)?;
        let found = matmul(rows, self.weights.view());
        if self.is_scalar {
            return Ok(found);
        }
        let shape = (rows.nrows() / self.n_outputs, self.n_outputs);
        let expected = shape.0 * shape.1;
        found.into_shape_with_order(shape).map_err(|_| LensError::Rows {
            what: "kernel values of whole samples",
            expected,
            found: rows.nrows(),
        })
    }
}

/// The outputs of all samples as one column.
fn column(targets: ArrayView2<'_, f64>, n_outputs: usize) -> Result<Array2<f64>> {
    check_rows("a block of outputs", targets.ncols(), n_outputs)?;
    let numbers: Vec<f64> = targets.iter().copied().collect();
    let length = numbers.len();
    Array2::from_shape_vec((length, 1), numbers).map_err(|_| LensError::Rows {
        what: "targets",
        expected: length,
        found: targets.nrows(),
    })
}

/// `‖A − B‖ / ‖A‖` of two arrays of predictions; `None` if the first is zero and the second is not.
///
/// # Errors
/// For arrays of different sizes, and numbers that are not finite.
pub fn relative_difference(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Option<f64>> {
    check_rows("the other predictions", a.nrows(), b.nrows())?;
    check_rows("the other predictions' transpose", a.ncols(), b.ncols())?;
    check_finite("predictions", a)?;
    check_finite("predictions", b)?;
    let (length, distance) = (frobenius(a), frobenius((&a - &b).view()));
    Ok(if distance == 0.0 { Some(0.0) } else { (length > 0.0).then(|| distance / length) })
}
