//! Similarity of two kernels on the same samples.
//!
//! The relative distance is `‖A − B‖ / ‖A‖` in the Frobenius norm. The alignment is the debiased CKA,
//!
//! ```text
//! CKA = H(A, B) / √(H(A, A)·H(B, B))
//! H(A, B) = [ tr ÃB̃ + (1ᵀÃ1)(1ᵀB̃1)/((n−1)(n−2)) − 2·1ᵀÃB̃1/(n−2) ] / (n(n−3))
//! ```
//!
//! where `Ã` is `A` with zeros on its diagonal: `H` is the unbiased estimate of the Hilbert–Schmidt independence
//! criterion (Song, Smola, Gretton, Bedo and Borgwardt, Feature selection via dependence maximization, JMLR 13, 2012,
//! equation 5). With few samples, the usual biased CKA of two unrelated kernels is far from zero. The debiased CKA is
//! zero on average, and may be negative.

use crate::checks::{check_count, check_rows};
use crate::error::Result;
use mercer_linalg::{check_finite, check_symmetric, matmul, symmetric_eigen};
use ndarray::{Array2, ArrayView2, Axis};
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
    check_count("an alignment", 4, a.nrows())?;
    check_rows("the other matrix", a.nrows(), b.nrows())?;
    for matrix in [a, b] {
        check_finite("comparison", matrix)?;
        check_symmetric("comparison", matrix)?;
    }
    let norm = |matrix: &Array2<f64>| matrix.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (length, distance) = (norm(&a.to_owned()), norm(&(&a - &b)));
    let frobenius = if distance == 0.0 { 0.0 } else { distance / length };
    let [a, b] = [a, b].map(|matrix| {
        // Sums of squares of numbers near 10²⁰⁰ would overflow, and the alignment does not depend on the scale.
        let scale = matrix.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let mut hollow = if scale > 0.0 { &matrix / scale } else { matrix.to_owned() };
        hollow.diag_mut().fill(0.0);
        hollow
    });
    let (own, other) = (dependence(&a, &a), dependence(&b, &b));
    // For a constant matrix, only rounding is left.
    let is_positive = |value: f64, of: &Array2<f64>| value > 1e-12 * norm(of).powi(2) / (of.len() as f64);
    let cka = (is_positive(own, &a) && is_positive(other, &b)).then(|| dependence(&a, &b) / (own * other).sqrt());
    Ok(Likeness { frobenius, cka })
}

/// `H(A, B)` of matrices with zeros on their diagonals.
fn dependence(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let n = a.nrows() as f64;
    let (rows, columns) = (a.sum_axis(Axis(0)), b.sum_axis(Axis(1)));
    let trace: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
    let sums = rows.sum() * columns.sum() / ((n - 1.0) * (n - 2.0));
    let cross = matmul(rows.view().insert_axis(Axis(0)), columns.view().insert_axis(Axis(1)))[[0, 0]];
    (trace + sums - 2.0 * cross / (n - 2.0)) / (n * (n - 3.0))
}
