//! The Gram matrix of the landmarks: its features, and the treatment of indefinite kernels.
//!
//! With `K_ZZ = U Λ Uᵀ` and the signs `S` of `Λ`, `κ̃(x, x') = φ(x) S φ(x')ᵀ` for `φ(x) = κ(x, Z) U |Λ|^{-½}`. If all
//! signs are positive, its eigenfunctions are those of the features. Otherwise, with `Φ = P Σ Vᵀ` over the data,
//!
//! ```text
//! Σ Vᵀ S V Σ = G diag(d) Gᵀ,    μ_j = d_j / N,    ψ_j(x) = √N φ(x)·S V Σ g_j / d_j
//! ```
//!
//! The entries of a positive semidefinite kernel are bounded by its diagonal. Those of an indefinite kernel are not,
//! and division by a small eigenvalue of `K_ZZ` can then make `κ̃` arbitrarily wrong. Only the largest two thirds in
//! magnitude are kept (Nakatsukasa and Park, Randomized low-rank approximation for symmetric indefinite matrices,
//! 2022): with 200 of 400 points as landmarks of `tanh(x·x'/2)` in five dimensions (five draws) the leading eigenvalues
//! are then off by less than 1 % of the largest, and by 34 to 64 % of it if all are kept.

use crate::error::{Result, SpectralError};
use crate::exact::{follow_signs, scale_columns};
use crate::spectrum::{Spectrum, rounding};
use mercer_kernel::Real;
use mercer_linalg::{matmul, symmetric_eigen, thin_svd};
use ndarray::{Array1, Array2, Axis, s};

/// The share of the eigenvalues of an indefinite matrix that is kept.
const KEPT: f64 = 2.0 / 3.0;

/// `K_ZZ⁺`, up to rounding.
pub(super) struct Core<T> {
    /// `U |Λ|^{-½}`: a column per eigenvalue.
    pub(super) whitening: Array2<T>,
    /// `Λ`.
    values: Array1<f64>,
    /// The rounding error of an eigenvalue.
    floor: f64,
}

impl<T: Real> Core<T> {
    /// From the Gram matrix of the landmarks; `complete` means that all samples are landmarks.
    pub(super) fn new(gram: &Array2<T>, complete: bool) -> Result<Self> {
        let rows = gram.nrows();
        let eigen = symmetric_eigen(gram.mapv(|v| v.wide()).view())?;
        let floor = rounding(eigen.values.view(), rows, T::epsilon().wide());
        let mut kept: Vec<usize> = (0..rows).filter(|&j| eigen.values[j].abs() > floor).collect();
        kept.sort_by(|&i, &j| eigen.values[j].abs().total_cmp(&eigen.values[i].abs()));
        if !complete && kept.iter().any(|&j| eigen.values[j] < 0.0) {
            kept.truncate((KEPT * rows as f64).ceil() as usize);
        }
        if kept.is_empty() {
            let largest = eigen.values.first().map_or(0.0, |value| value / rows as f64);
            return Err(SpectralError::NoSpectrum { rows, largest });
        }
        let values = Array1::from_iter(kept.iter().map(|&j| eigen.values[j]));
        let mut whitening = eigen.vectors.select(Axis(1), &kept);
        scale_columns(&mut whitening, values.mapv(|value| value.abs().sqrt().recip()));
        Ok(Self { whitening: whitening.mapv(T::narrow), values, floor })
    }

    pub(super) fn is_positive(&self) -> bool {
        self.values.iter().all(|value| *value > 0.0)
    }

    /// The eigenpairs of `Φ S Φᵀ`, and the weights that give the functions from the features.
    pub(super) fn decompose(&self, features: &Array2<T>, k: usize) -> Result<(Spectrum<T>, Array2<T>)> {
        let svd = thin_svd(features.mapv(|v| v.wide()).view())?;
        let mut right = svd.right;
        scale_columns(&mut right, svd.values);
        let signed = &right * &self.values.mapv(f64::signum).insert_axis(Axis(1));
        let inner = matmul(right.t(), signed.view());
        let eigen = symmetric_eigen(((&inner + &inner.t()) * 0.5).view())?;
        let first = eigen.vectors.slice(s![.., ..k.min(eigen.values.len())]);
        let vectors = matmul(svd.left.view(), first).mapv(T::narrow);
        let values = eigen.values.mapv(T::narrow);
        let spectrum = Spectrum::from_eigenpairs(values.view(), vectors.clone(), k, false, T::epsilon().wide())?;
        let root = (features.nrows() as f64).sqrt();
        let mut weights = matmul(signed.view(), first);
        scale_columns(&mut weights, eigen.values.mapv(|value| if value > 0.0 { root / value } else { 0.0 }));
        let weights = follow_signs(weights.mapv(T::narrow), &vectors, &spectrum);
        Ok((spectrum, weights))
    }

    /// The part of `κ(x, x)` that the approximation explains, for every row of the data.
    pub(super) fn explained(&self, features: &Array2<T>) -> Array1<f64> {
        features.map_axis(Axis(1), |row| {
            row.iter().zip(&self.values).map(|(v, value)| v.wide() * v.wide() * value.signum()).sum()
        })
    }

    /// An upper bound on a negative eigenvalue of the kernel's matrix, if the data prove that there is one: a sample of
    /// which more than everything is explained.
    ///
    /// Beside the landmarks, the vector `(-K_ZZ⁺ κ(Z, x), 1)` has the quadratic form `κ(x, x) - κ̃(x, x)`.
    pub(super) fn least(&self, features: &Array2<T>, left: &Array1<f64>) -> Option<f64> {
        let quotient = |(row, left): (ndarray::ArrayView1<'_, T>, &f64)| {
            let length: f64 = row.iter().zip(&self.values).map(|(v, value)| v.wide() * v.wide() / value.abs()).sum();
            left / (1.0 + length)
        };
        let least = features.outer_iter().zip(left).map(quotient).fold(0.0, f64::min);
        // Features are products in the precision of the kernel, with their own errors.
        (least < -4.0 * self.floor).then_some(least)
    }
}
