//! The samples of a machine: Gram matrices and features.

use crate::error::{LearnError, Result};
use mercer_linalg::{check_finite, check_symmetric, syrk};
use ndarray::{Array1, Array2, ArrayView2, CowArray, Ix2};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The two kinds of [`SampleRows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// Kernel values between samples and training samples.
    Gram,
    /// Features of samples.
    Features,
}

impl fmt::Display for SampleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gram => "a Gram matrix",
            Self::Features => "features",
        })
    }
}

/// Samples, one per row, as kernel values `κ(x, xᵢ)` with the training samples, or as features `φ(x)`.
///
/// Eigenfunctions are features: with `ψⱼ(x)√μⱼ` as columns both views give the same machine.
#[derive(Clone, Copy, Debug)]
pub enum SampleRows<'a> {
    /// `κ(x, xᵢ)`: a column per training sample. For fitting, the symmetric matrix of the training samples.
    Gram(ArrayView2<'a, f64>),
    /// `φ(x)`: a column per feature.
    Features(ArrayView2<'a, f64>),
}

impl<'a> SampleRows<'a> {
    /// The kind of samples.
    pub fn basis(&self) -> SampleKind {
        match self {
            Self::Gram(_) => SampleKind::Gram,
            Self::Features(_) => SampleKind::Features,
        }
    }

    /// The numbers.
    pub fn rows(&self) -> ArrayView2<'a, f64> {
        match self {
            Self::Gram(rows) | Self::Features(rows) => *rows,
        }
    }

    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.rows().nrows()
    }

    /// Checks samples for fitting: there is at least one, all numbers are finite, and a Gram matrix is symmetric.
    pub fn check_for_fit(&self) -> Result<()> {
        match self {
            Self::Gram(gram) => check_symmetric("the Gram matrix", *gram)?,
            Self::Features(features) => check_finite("the features", *features)?,
        }
        if self.n_samples() == 0 { Err(LearnError::Empty { what: "fit" }) } else { Ok(()) }
    }

    /// Checks samples for prediction against those of the fit.
    pub fn check_for_predict(&self, basis: SampleKind, width: usize) -> Result<()> {
        if self.basis() != basis {
            return Err(LearnError::Basis { fitted: basis, given: self.basis() });
        }
        let what = match basis {
            SampleKind::Gram => "the number of training samples (columns of the kernel matrix)",
            SampleKind::Features => "the number of features",
        };
        crate::error::check_size(what, width, self.rows().ncols())?;
        Ok(check_finite("the samples", self.rows())?)
    }

    /// The Gram matrix, which for features is `Φ·Φᵀ`.
    pub fn gram(&self) -> CowArray<'a, f64, Ix2> {
        match self {
            Self::Gram(gram) => CowArray::from(*gram),
            Self::Features(features) => CowArray::from(syrk(*features)),
        }
    }

    /// Weights for rows of these samples from coefficients of training samples: `α`, or `Φᵀ·α`.
    pub fn weights(&self, coefficients: Array2<f64>) -> Array2<f64> {
        match self {
            Self::Gram(_) => coefficients,
            Self::Features(features) => mercer_linalg::matmul(features.t(), coefficients.view()),
        }
    }

    /// `κ(xᵢ, xᵢ)` of the training samples.
    pub fn diagonal(&self) -> Array1<f64> {
        match self {
            Self::Gram(gram) => gram.diag().to_owned(),
            Self::Features(features) => features.rows().into_iter().map(|row| row.dot(&row)).collect(),
        }
    }
}
