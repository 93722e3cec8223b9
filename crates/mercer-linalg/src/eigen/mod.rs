//! Eigendecompositions of symmetric matrices: complete, or from products alone the largest eigenpairs and
//! the density of all eigenvalues.
//!
//! ```text
//! A = U·diag(λ)·Uᵀ,  λ₁ ≥ λ₂ ≥ …
//! ```

mod lanczos;
mod operator;
mod quadrature;
mod randomised;

pub use lanczos::{Lanczos, TopEigen, top_eigen};
pub use operator::{LinearOperator, Watched};
pub use quadrature::{Node, SpectralDensity, StochasticLanczos};
pub use randomised::Randomised;

use crate::matmul::{lend, lend_mut};
use crate::verify::{self, Depth};
use crate::{LinalgError, Result, Scalar, input, order};
use ndarray::{Array1, Array2, ArrayView2, ShapeBuilder};

const ROUTINE: &str = "symmetric eigen";

/// Eigenvalues, largest first, and their vectors.
#[derive(Clone, Debug)]
pub struct Eigen<T> {
    /// The eigenvalues, descending.
    pub values: Array1<T>,
    /// The orthonormal eigenvectors, as columns in the same order.
    pub vectors: Array2<T>,
}

/// All eigenvalues and eigenvectors of a symmetric matrix, largest first.
///
/// ```
/// use ndarray::array;
/// let eigen = mercer_linalg::symmetric_eigen(array![[2.0, 1.0], [1.0, 2.0]].view())?;
/// assert!((eigen.values[0] - 3.0f64).abs() < 1e-14 && (eigen.values[1] - 1.0).abs() < 1e-14);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// For a matrix that is not square, finite and symmetric; [`LinalgError::NotConverged`], or [`LinalgError::CheckFailed`] when the
/// result does not reproduce the matrix.
pub fn symmetric_eigen<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Eigen<T>> {
    T::symmetric_eigen(a)
}

pub(crate) fn decompose<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Eigen<T>> {
    let input::Scaled { matrix, factor } = input::symmetric_copy(ROUTINE, a)?;
    let n = matrix.nrows();
    let mut values = Array1::zeros(n);
    let mut vectors = Array2::zeros((n, n).f());
    if n > 0 {
        let slots = values.as_slice_mut().expect("a fresh array is contiguous");
        if !T::eigen_seq(lend(&matrix.view()), slots, lend_mut(&mut vectors.view_mut())) {
            return Err(LinalgError::NotConverged { routine: ROUTINE, converged: 0, wanted: n });
        }
        let order = order::descending(&values);
        (values, vectors) = (order::values(&values, &order), order::columns(&vectors, &order));
        let depth = Depth::of_this_build();
        verify::require_descending(ROUTINE, values.view())?;
        let residual = verify::eigen_residual(matrix.view(), values.view(), vectors.view(), depth);
        verify::require(ROUTINE, "residual", residual)?;
        verify::require(ROUTINE, "orthogonality", verify::orthogonality(vectors.view(), depth))?;
        values.mapv_inplace(|v| v / factor);
    }
    Ok(Eigen { values, vectors })
}
