//! Features of any kernel from some landmarks.
//!
//! ```text
//! K_LL = U diag(λ) Uᵀ,   φ(x) = diag(λ)^(−1/2) Uᵀ κ(L, x)          Williams and Seeger 2001
//! ```
//!
//! If all samples are landmarks, `φ(x)·φ(y)` is the kernel. Directions with eigenvalues of rounding are left out.

use crate::checks::{check_count, check_rows};
use crate::error::Result;
use mercer_linalg::{matmul, symmetric_eigen};
use ndarray::{Array2, ArrayView2, Axis, s};

/// Eigenvalues below this share of the largest are left out.
const LEAST: f64 = 1e-8;

/// A map from kernel values with landmarks to features.
#[derive(Clone, Debug)]
pub struct Landmarks {
    map: Array2<f64>,
}

impl Landmarks {
    /// From the Gram matrix of the landmarks.
    ///
    /// # Errors
    /// Without landmarks, and for a matrix that is not symmetric and finite.
    pub fn new(gram: ArrayView2<'_, f64>) -> Result<Self> {
        check_count("features from landmarks", 1, gram.nrows())?;
        let eigen = symmetric_eigen(gram)?;
        let least = LEAST * eigen.values[0].max(0.0);
        let kept = eigen.values.iter().take_while(|value| **value > least && **value > 0.0).count();
        let mut map = eigen.vectors.slice(s![.., ..kept]).to_owned();
        map.axis_iter_mut(Axis(1)).zip(&eigen.values).for_each(|(mut column, value)| column /= value.sqrt());
        Ok(Self { map })
    }

    /// The number of features.
    pub fn n_features(&self) -> usize {
        self.map.ncols()
    }

    /// The features of samples from their kernel values with the landmarks, a row per sample.
    ///
    /// # Errors
    /// For values with another number of landmarks.
    pub fn features(&self, values: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_rows("the transposed kernel values", self.map.nrows(), values.ncols())?;
        Ok(matmul(values, self.map.view()))
    }
}
