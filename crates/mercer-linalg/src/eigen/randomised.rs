//! The largest eigenvalues of a symmetric operator by randomised subspace iteration.
//!
//! ```text
//! Q ← orth(Ω),   Q ← orth(A·Q)  (q times),   QᵀAQ = S·diag(θ)·Sᵀ,   u = Q·s
//! ```
//!
//! Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 53, 2011 (arXiv 0909.4061), algorithms
//! 4.4 and 5.3. Every step is a product with a block of vectors, so a matrix is read `q + 1` times in all. The accuracy
//! depends on how fast the eigenvalues decay. The method does not iterate to convergence; the residuals report what was
//! reached.

use super::{LinearOperator, TopEigen, symmetric_eigen};
use crate::random::Signs;
use crate::{LinalgError, Result, Scalar, check_finite, matmul, thin_qr, verify};
use ndarray::{Array1, Array2, Axis, s};

const ROUTINE: &str = "randomised eigen";

/// The method and its settings.
#[derive(Clone, Copy, Debug)]
pub struct Randomised {
    n_components: usize,
    oversampling: usize,
    n_products: usize,
    seed: u64,
}

impl Randomised {
    /// For this many of the largest eigenvalues.
    pub fn new(n_components: usize) -> Self {
        Self { n_components, oversampling: 10, n_products: 4, seed: 0 }
    }

    /// The number of extra vectors beyond the components (oversampling); 10 by default.
    pub fn oversampling(self, oversampling: usize) -> Self {
        Self { oversampling, ..self }
    }

    /// The number of products with the block before the last one (power iterations); 4 by default.
    pub fn products(self, n_products: usize) -> Self {
        Self { n_products, ..self }
    }

    /// The seed of the random start.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How often an operator with this many rows is applied to a vector.
    pub fn n_applications(&self, rows: usize) -> usize {
        (self.n_components + self.oversampling).min(rows) * (self.n_products + 1)
    }

    /// The approximate eigenpairs, with their residuals. Large negative values take up places in the block but come
    /// last.
    ///
    /// ```
    /// let a = ndarray::Array2::from_diag(&ndarray::Array1::from_shape_fn(100, |i| 0.5f64.powi(i as i32)));
    /// let top = mercer_linalg::Randomised::new(3).run(&a)?;
    /// assert!((top.values[2] - 0.25).abs() < 1e-12 && top.residuals[2] < 1e-6);
    /// # Ok::<(), mercer_linalg::LinalgError>(())
    /// ```
    ///
    /// # Errors
    /// [`LinalgError::TooManyComponents`], [`LinalgError::NotFinite`] if the operator returns such a value, and the errors of
    /// [`symmetric_eigen`] and [`thin_qr`].
    pub fn run<T: Scalar>(&self, operator: &impl LinearOperator<T>) -> Result<TopEigen<T>> {
        T::randomised(self, operator)
    }

    pub(crate) fn iterate<T: Scalar>(&self, operator: &dyn LinearOperator<T>) -> Result<TopEigen<T>> {
        let (n, wanted) = (operator.dim(), self.n_components);
        if wanted > n {
            return Err(LinalgError::TooManyComponents { routine: ROUTINE, wanted, available: n });
        }
        let width = (wanted + self.oversampling).min(n);
        let mut random = Signs::new(self.seed ^ n as u64);
        let start =
            Array2::from_shape_vec((n, width), random.vector::<T>(n * width).to_vec()).expect("as many numbers");
        let mut basis = orthonormal(&start)?;
        let mut image = Array2::zeros((n, width));
        for product in 0..=self.n_products {
            operator.apply_block(basis.view(), image.view_mut());
            check_finite("randomised eigen operator", image.view())?;
            if product < self.n_products {
                basis = orthonormal(&image)?;
            }
        }
        let projected = matmul(basis.t(), image.view());
        let projected = (&projected + &projected.t()).mapv(|v| v * T::narrow(0.5));
        let ritz = symmetric_eigen(projected.view())?;
        let rotation = ritz.vectors.slice(s![.., ..wanted]);
        let values = ritz.values.slice(s![..wanted]).to_owned();
        let (vectors, images) = (matmul(basis.view(), rotation), matmul(image.view(), rotation));
        let distance = |pair: usize| {
            let difference = &images.column(pair) - &vectors.column(pair).mapv(|v| v * values[pair]);
            T::narrow(verify::frobenius(difference.view().insert_axis(Axis(0))))
        };
        let residuals = Array1::from_shape_fn(wanted, distance);
        verify::require(ROUTINE, "orthogonality", verify::orthogonality(vectors.view(), verify::Depth::Full))?;
        let others = ritz.values.slice(s![wanted..]).to_owned();
        Ok(TopEigen { values, vectors, residuals, others, n_applications: (self.n_products + 1) * width })
    }
}

/// An orthonormal basis that contains the span of the columns. Zero columns, as from a matrix of low rank, are replaced
/// by vectors with which the factorisation completes the basis.
fn orthonormal<T: Scalar>(columns: &Array2<T>) -> Result<Array2<T>> {
    Ok(thin_qr(columns.view())?.q)
}
