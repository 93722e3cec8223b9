//! Similarity of two kernels on the same samples.
//!
//! The relative distance is `‖A − B‖ / ‖A‖` in the Frobenius norm. The alignment is the debiased CKA of
//! [`cka`](crate::cka).

use crate::checks::check_count;
use crate::cka::cka_from_grams;
use crate::error::Result;
use mercer_linalg::symmetric_eigen;
use ndarray::{Array2, ArrayView2};
use serde::Serialize;

/// The extremes of the spectrum of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// Its largest eigenvalue.
    pub lambda_max: f64,
    /// Its smallest eigenvalue.
    pub lambda_min: f64,
    /// Their ratio; `None` if the smallest is not positive beyond rounding.
    pub condition: Option<f64>,
}

/// The similarity of two matrices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// `‖A − B‖ / ‖A‖`.
    pub frobenius: f64,
    /// Debiased CKA; `None` if one of the two is constant off its diagonal.
    pub cka: Option<f64>,
}

/// The extremes of the spectrum of a Gram matrix.
///
/// # Errors
/// For a matrix that is empty, not square, not finite or not symmetric.
pub fn extent(gram: ArrayView2<'_, f64>) -> Result<Extent> {
    check_count("a spectrum", 1, gram.nrows())?;
    let values = symmetric_eigen(gram)?.values;
    let (lambda_max, lambda_min) = (values[0], values[values.len() - 1]);
    let rounding = values.len() as f64 * f64::EPSILON * lambda_max.abs().max(lambda_min.abs());
    let condition = (lambda_min > rounding).then(|| lambda_max / lambda_min);
    Ok(Extent { lambda_max, lambda_min, condition })
}

/// Compares two Gram matrices of the same samples.
///
/// ```
/// use ndarray::array;
/// let a = array![[2.0, 1.0, 0.0, 0.5], [1.0, 2.0, 0.3, 0.0], [0.0, 0.3, 2.0, 1.0], [0.5, 0.0, 1.0, 2.0]];
/// let found = mercer_lens::likeness(a.view(), (&a * 3.0).view())?;
/// assert!((found.cka.unwrap() - 1.0).abs() < 1e-12 && (found.frobenius - 2.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For fewer than four samples, and matrices that are of different sizes, not finite or not symmetric.
pub fn likeness(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Likeness> {
    let cka = cka_from_grams(a, b)?.debiased;
    let norm = |matrix: &Array2<f64>| matrix.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (length, distance) = (norm(&a.to_owned()), norm(&(&a - &b)));
    let frobenius = if distance == 0.0 { 0.0 } else { distance / length };
    Ok(Likeness { frobenius, cka })
}
