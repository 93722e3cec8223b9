//! Both ends of a spectrum.
//!
//! Small matrices are decomposed. Of large ones, the largest eigenvalue comes from products with the matrix (Lanczos),
//! and the smallest from products with its inverse: with `A + σI = LLᵀ` it is `1/θ − σ`, where `θ` is the largest
//! eigenvalue of `L⁻ᵀL⁻¹` and `σ` the jitter that the factor needed, 0 or as small as rounding. The factor costs `n³/3`
//! operations, a decomposition about 9n³. A matrix without a factor is indefinite beyond rounding; its smallest
//! eigenvalue is negative, and comes from products with `−A`.

use crate::checks::check_count;
use crate::error::Result;
use mercer_linalg::{Cholesky, Lanczos, LinalgError, LinearOperator, check_symmetric, cholesky, symmetric_eigen};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1};
use serde::Serialize;

/// Matrices with at most this many rows are decomposed.
const SMALL: usize = 1024;

/// The tolerance on the residual of an eigenvector; the eigenvalue is about as exact as its square.
const TOLERANCE: f64 = 1e-8;

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

/// The extremes of the spectrum of a Gram matrix whose numbers have relative errors of about `epsilon`:
/// [`f64::EPSILON`], or that of `f32` for a matrix that was computed in single precision.
///
/// # Errors
/// For a matrix that is empty, not square, not finite or not symmetric.
pub fn extent(gram: ArrayView2<'_, f64>, epsilon: f64) -> Result<Extent> {
    check_count("a spectrum", 1, gram.nrows())?;
    let [lambda_max, lambda_min] = if gram.nrows() <= SMALL { decomposed(gram)? } else { iterated(gram)? };
    let rounding = gram.nrows() as f64 * epsilon * lambda_max.abs().max(lambda_min.abs());
    let condition = (lambda_min > rounding).then(|| lambda_max / lambda_min);
    Ok(Extent { lambda_max, lambda_min, condition })
}

/// By all eigenvalues.
fn decomposed(gram: ArrayView2<'_, f64>) -> Result<[f64; 2]> {
    let values = symmetric_eigen(gram)?.values;
    Ok([values[0], values[values.len() - 1]])
}

/// By products with the matrix and with its inverse.
fn iterated(gram: ArrayView2<'_, f64>) -> Result<[f64; 2]> {
    check_symmetric("a spectrum", gram)?;
    let lanczos = Lanczos::new(1).tolerance(TOLERANCE);
    let largest = lanczos.run(&gram)?.values[0];
    let least = match cholesky(gram) {
        Ok(factor) => {
            let jitter = factor.jitter;
            1.0 / lanczos.run(&Inverse(factor))?.values[0] - jitter
        }
        Err(LinalgError::NotPositiveDefinite { .. }) => -lanczos.run(&Negative(gram))?.values[0],
        Err(error) => return Err(error.into()),
    };
    Ok([largest, least])
}

/// `−A`.
struct Negative<'a>(ArrayView2<'a, f64>);

impl LinearOperator<f64> for Negative<'_> {
    fn dim(&self) -> usize {
        self.0.nrows()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
        self.0.apply(x, y.view_mut());
        y.mapv_inplace(|value| -value);
    }
}

/// `A⁻¹` by its factor.
struct Inverse(Cholesky<f64>);

impl LinearOperator<f64> for Inverse {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
        match self.0.solve_vector(x) {
            Ok(solution) => y.assign(&solution),
            Err(_) => y.fill(f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mercer_data::random::stream;
    use mercer_linalg::syrk;
    use ndarray::Array2;
    use rand::RngExt;

    fn gram(n: usize, n_features: usize) -> Array2<f64> {
        let mut random = stream(5, "extent");
        syrk(Array2::from_shape_simple_fn((n, n_features), || random.random_range(-1.0..1.0)).view())
    }

    /// The two ways agree: of a regular, a nearly singular, a singular and an indefinite matrix.
    #[test]
    fn products_find_what_a_decomposition_finds() {
        let regular = gram(150, 400);
        let mut indefinite = regular.clone();
        indefinite.diag_mut().mapv_inplace(|x| x - 60.0);
        let mut close = gram(150, 149);
        close.diag_mut().mapv_inplace(|x| x + 1e-7);
        for (name, matrix) in
            [("regular", regular), ("close", close), ("singular", gram(150, 40)), ("indefinite", indefinite)]
        {
            let ([most, least], [known_most, known_least]) =
                (iterated(matrix.view()).unwrap(), decomposed(matrix.view()).unwrap());
            assert!((most / known_most - 1.0).abs() < 1e-9, "{name}: {most} {known_most}");
            assert!((least - known_least).abs() < 1e-11 * known_most, "{name}: {least} {known_least}");
        }
    }

    /// A large matrix with known eigenvalues: `(1 − r)` and `1 + (n − 1)r`.
    #[test]
    fn a_large_matrix_has_the_ends_of_its_closed_form() {
        let (n, r) = (SMALL + 6, 0.25);
        let matrix = Array2::from_shape_fn((n, n), |(i, j)| if i == j { 1.0 } else { r });
        let found = extent(matrix.view(), f64::EPSILON).unwrap();
        assert!((found.lambda_min - 0.75).abs() < 1e-10, "{}", found.lambda_min);
        let most = 1.0 + (n - 1) as f64 * r;
        assert!((found.lambda_max / most - 1.0).abs() < 1e-12, "{}", found.lambda_max);
        assert!((found.condition.unwrap() - most / 0.75).abs() < 1e-6);
        // In single precision such a small eigenvalue could be an error of rounding.
        assert_eq!(extent(matrix.view(), 1e-3).unwrap().condition, None);
    }
}
