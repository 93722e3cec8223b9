//! How far eigenfunctions are from the truth, where it is known.

use crate::error::{Result, SpectralError};
use crate::spectrum::Spectrum;
use mercer_kernel::Real;
use mercer_linalg::{Scalar, matmul, thin_qr, thin_svd};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use serde::Serialize;

/// Functions beside the true ones, on the same rows; a number per component.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// `|⟨ψ̂_j, ψ_j⟩| / (‖ψ̂_j‖ ‖ψ_j‖)`.
    pub cosines: Vec<f64>,
    /// `(μ̂_j - μ_j) / μ_j`.
    pub value_errors: Vec<f64>,
    /// The largest principal angle between the spans of the first `j` functions, in degrees. It tells a rotation within
    /// nearly equal eigenvalues, which spoils cosines and harms nobody, from functions that are wrong.
    pub subspace_angles: Vec<f64>,
}

impl Comparison {
    /// Compares the first components, as many as both have.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the rows are not the same in number.
    pub fn new<T: Real>(
        values: ArrayView1<'_, f64>,
        functions: ArrayView2<'_, T>,
        truth: &Spectrum<T>,
    ) -> Result<Self> {
        if functions.nrows() != truth.functions.nrows() || functions.ncols() != values.len() {
            return Err(SpectralError::Setting(format!(
                "{} functions on {} rows and {} values cannot be compared with functions on {} rows",
                functions.ncols(),
                functions.nrows(),
                values.len(),
                truth.functions.nrows()
            )));
        }
        let k = values.len().min(truth.values.len());
        let wide = |view: ArrayView2<'_, T>| view.slice(s![.., ..k]).mapv(Scalar::wide);
        let (found, expected) = (wide(functions), wide(truth.functions.view()));
        let cosines = found.axis_iter(Axis(1)).zip(expected.axis_iter(Axis(1))).map(|(a, b)| cosine(a, b)).collect();
        let value_errors = values.iter().zip(&truth.values).map(|(found, truth)| (found - truth) / truth).collect();
        Ok(Self { cosines, value_errors, subspace_angles: subspace_angles(&found, &expected)? })
    }
}

fn cosine(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    let lengths = (a.dot(&a) * b.dot(&b)).sqrt();
    if lengths > 0.0 { (a.dot(&b) / lengths).abs() } else { 0.0 }
}

/// For every `j`, the largest angle between the first `j` columns of both, from `sin θ = ‖(I - Q Qᵀ) P‖`, which unlike the
/// cosine is exact for small angles.
fn subspace_angles(a: &Array2<f64>, b: &Array2<f64>) -> Result<Vec<f64>> {
    if a.nrows() < a.ncols() || a.ncols() == 0 {
        return Ok(Vec::new());
    }
    let (p, q) = (thin_qr(a.view())?.q, thin_qr(b.view())?.q);
    (1..=a.ncols())
        .map(|j| {
            let (p, q) = (p.slice(s![.., ..j]), q.slice(s![.., ..j]));
            let outside = &p - &matmul(q, matmul(q.t(), p).view());
            let sine = thin_svd(outside.view())?.values.first().copied().unwrap_or(0.0);
            Ok(sine.min(1.0).asin().to_degrees())
        })
        .collect()
}

/// `‖(1/R) K ψ_j - μ_j ψ_j‖ / (μ_1 √R)` per function: how well the integral equation holds on the rows of a Gram matrix.
pub fn integral_residuals<T: Real>(
    gram: ArrayView2<'_, T>,
    values: ArrayView1<'_, f64>,
    functions: ArrayView2<'_, T>,
) -> Vec<f64> {
    let rows = gram.nrows().max(1) as f64;
    let largest = values.first().copied().unwrap_or(1.0);
    let image = matmul(gram, functions);
    let columns = image.axis_iter(Axis(1)).zip(functions.axis_iter(Axis(1))).zip(values);
    let residual = |((image, function), value): ((ArrayView1<'_, T>, ArrayView1<'_, T>), &f64)| {
        let square = |(y, x): (&T, &T)| (y.wide() / rows - value * x.wide()).powi(2);
        (image.iter().zip(function).map(square).sum::<f64>() / rows).sqrt() / largest
    };
    columns.map(residual).collect()
}
