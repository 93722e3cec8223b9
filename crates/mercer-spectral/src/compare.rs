//! Comparison of eigenfunctions with the exact ones, where these are known.
//!
//! On the samples from which they were found, functions with enough parameters may agree with the exact ones and be
//! meaningless elsewhere. So [`Truth`] also measures them on held-out samples. There, the exact eigenfunctions are
//! given by Nyström's extension (Deng, Shi and Zhu 2022, arXiv 2205.00165, equation 8),
//! `ψ_j(x) = 1/(R μ_j) Σ_n κ(x, x_n) ψ_j(x_n)`.

use crate::error::{Result, SpectralError};
use crate::exact::{Solver, extend, gram_matrix};
use crate::spectrum::Spectrum;
use mercer_data::Dataset;
use mercer_kernel::{Kernel, Real};
use mercer_linalg::{Scalar, matmul, thin_qr, thin_svd};
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use serde::Serialize;
use std::sync::Arc;

/// Functions compared with the exact ones on the same rows, with one number per component.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// `|⟨ψ̂_j, ψ_j⟩| / (‖ψ̂_j‖ ‖ψ_j‖)`.
    pub cosines: Vec<f64>,
    /// `(μ̂_j - μ_j) / μ_j`.
    pub value_errors: Vec<f64>,
    /// The largest principal angle between the spans of the first `j` functions, in degrees. It distinguishes a
    /// rotation within nearly equal eigenvalues, which spoils the cosines but is harmless, from wrong functions.
    pub subspace_angles: Vec<f64>,
}

impl Comparison {
    /// Compares the components that both have.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the numbers of rows differ.
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

/// The exact eigenfunctions of a kernel on data, and on held-out samples.
#[derive(Clone, Debug)]
pub struct Truth<T> {
    /// On the data.
    pub spectrum: Spectrum<T>,
    /// The same functions on the held-out samples, `rows × k`.
    held_out: Option<Array2<T>>,
}

/// Functions compared with the exact ones, on the data and on held-out samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// On the data from which both were found.
    #[serde(flatten)]
    pub data: Comparison,
    /// On the held-out samples, if there are any.
    pub held_out: Option<HeldOut>,
}

/// Functions compared with the exact ones on held-out samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOut {
    /// As in [`Comparison`].
    pub cosines: Vec<f64>,
    /// As in [`Comparison`].
    pub subspace_angles: Vec<f64>,
    /// How much larger the cosines on the data are: the generalisation gap.
    pub gaps: Vec<f64>,
}

impl<T: Real> Truth<T> {
    /// From a decomposition of the whole matrix, where the kernel itself is unknown.
    pub fn of_spectrum(spectrum: Spectrum<T>) -> Self {
        Self { spectrum, held_out: None }
    }

    /// Decomposes the whole matrix of a kernel on data, one data set per input, and extends it to the held-out samples.
    pub fn new(
        kernel: Arc<dyn Kernel<T>>,
        data: &[Dataset],
        held_out: Option<&[Dataset]>,
        k: usize,
        context: &Context,
    ) -> Result<Self> {
        let gram = gram_matrix(&*kernel, data, context)?;
        let spectrum = Spectrum::of_matrix(gram.view(), k, Solver::Full, context)?;
        drop(gram);
        let held_out = match held_out {
            Some(others) => Some(extend(&spectrum, kernel, data)?.eval_data(others, context)?),
            None => None,
        };
        Ok(Self { spectrum, held_out })
    }

    /// Compares functions by their values on the data, and on the held-out samples if there are any.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the numbers of rows differ.
    pub fn measure(
        &self,
        values: ArrayView1<'_, f64>,
        data: ArrayView2<'_, T>,
        held_out: Option<ArrayView2<'_, T>>,
    ) -> Result<Measured> {
        let on_data = Comparison::new(values, data, &self.spectrum)?;
        let held_out = match (held_out, &self.held_out) {
            (Some(found), Some(truth)) => {
                let truth = Spectrum { functions: truth.clone(), ..self.spectrum.clone() };
                let Comparison { cosines, subspace_angles, .. } = Comparison::new(values, found, &truth)?;
                let gaps = on_data.cosines.iter().zip(&cosines).map(|(seen, new)| seen - new).collect();
                Some(HeldOut { cosines, subspace_angles, gaps })
            }
            _ => None,
        };
        Ok(Measured { data: on_data, held_out })
    }
}

fn cosine(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    let lengths = (a.dot(&a) * b.dot(&b)).sqrt();
    if lengths > 0.0 { (a.dot(&b) / lengths).abs() } else { 0.0 }
}

/// For every `j`, the largest angle between the first `j` columns of both, from `sin θ = ‖(I - Q Qᵀ) P‖`, which is
/// accurate for small angles, unlike the cosine.
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

/// `‖(1/R) K ψ_j - μ_j ψ_j‖ / (μ_1 √R)` per function: how well the integral equation holds on the rows of a Gram
/// matrix.
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
