//! How far a matrix has moved.
//!
//! ```text
//! ‖W_t − W₀‖_F,   ‖W_t − W₀‖_F / ‖W₀‖_F,   ‖W_t − W₀‖_F / √d,   ‖W_t − W₀‖₂
//! ```
//!
//! For weights `W` of `h × d`, the third is the drift of Wang et al. 2022 (arXiv 2211.06506, corollary 4.3): it stays
//! bounded in the lazy regime. For kernel matrices they take the first. The operator norm is the largest singular
//! value; beyond 256 rows and columns it comes from Lanczos iteration on products, which costs far less than a
//! decomposition.

use crate::arrays::{largest, scaled};
use crate::checks::check_rows;
use crate::error::Result;
use mercer_learn::metrics::spectral_norm;
use mercer_linalg::check_finite;
use mercer_linalg::verify::frobenius;
use ndarray::ArrayView2;
use serde::Serialize;

/// The distance of two matrices of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// `‖now − initial‖_F`.
    pub frobenius: f64,
    /// Relative to `‖initial‖_F`; `None` if that is zero.
    pub relative: Option<f64>,
    /// `‖now − initial‖_F / √d`, with `d` columns.
    pub per_root_width: f64,
    /// `‖now − initial‖₂`; `None` if the iteration did not converge.
    pub operator: Option<f64>,
    /// Relative to `‖initial‖₂`; `None` if that is zero or did not converge.
    pub relative_operator: Option<f64>,
}

/// How far `now` is from `initial`.
///
/// ```
/// let (before, after) = (ndarray::array![[1.0, 0.0], [0.0, 1.0]], ndarray::array![[4.0, 0.0], [4.0, 1.0]]);
/// let found = mercer_lens::spectra::drift(before.view(), after.view())?;
/// assert!((found.frobenius - 5.0).abs() < 1e-12 && (found.operator.unwrap() - 5.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For matrices of different shapes, and numbers that are not finite.
pub fn drift(initial: ArrayView2<'_, f64>, now: ArrayView2<'_, f64>) -> Result<Drift> {
    check_rows("the later matrix", initial.nrows(), now.nrows())?;
    check_rows("the later matrix, transposed,", initial.ncols(), now.ncols())?;
    for matrix in [initial, now] {
        check_finite("a drift", matrix)?;
    }
    let difference = &now - &initial;
    let (frobenius, whole) = (scaled_norm(difference.view()), scaled_norm(initial));
    let operator = spectral_norm(difference.view()).ok();
    let ratio = |part: f64, whole: f64| Some(part / whole).filter(|ratio| ratio.is_finite());
    let relative_operator = operator.zip(spectral_norm(initial).ok()).and_then(|(part, whole)| ratio(part, whole));
    Ok(Drift {
        frobenius,
        relative: ratio(frobenius, whole),
        per_root_width: frobenius / (initial.ncols().max(1) as f64).sqrt(),
        operator,
        relative_operator,
    })
}

/// The Frobenius norm of numbers whose squares may overflow.
fn scaled_norm(matrix: ArrayView2<'_, f64>) -> f64 {
    largest(matrix) * frobenius(scaled(matrix).view())
}
