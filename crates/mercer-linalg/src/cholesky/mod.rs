//! Cholesky factorisation with jitter, and the solves that use it.
//!
//! ```text
//! A + σI = L·Lᵀ        σ = ρ · mean(diag A)
//! ```
//!
//! Kernel matrices are positive semidefinite in theory and slightly indefinite in floating point. `ρ` climbs a ladder
//! that starts at zero until every pivot is clear of rounding. The result reports the jitter that was needed. A pivot
//! is accepted when `L_ii² > √n ε A_ii`. Below that, its digits are the rounding errors of the `i` subtractions that
//! produced it, and a solve would divide by noise. The rule is invariant under scaling of rows and columns.

mod solve;
mod triangular;

pub use triangular::{Triangle, solve_triangular};

use crate::matmul::lend_mut;
use crate::verify::{self, Depth};
use crate::{LinalgError, Result, Scalar, input, matmul};
use ndarray::{Array2, ArrayView1, ArrayView2};

const ROUTINE: &str = "cholesky";

/// The relative jitters tried by [`cholesky`] in `f64`, in this order.
pub const LADDER: [f64; 6] = [0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4];

/// The relative jitters tried by [`cholesky`] in `f32`, in this order.
pub const LADDER_F32: [f64; 6] = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2];

/// `A + jitter·I = lower·lowerᵀ`.
#[derive(Clone, Debug)]
pub struct Cholesky<T> {
    /// The factor; zero above the diagonal.
    pub lower: Array2<T>,
    /// The amount added to the diagonal.
    pub jitter: T,
    /// The same relative to the mean of the diagonal: the rung of the ladder.
    pub relative_jitter: f64,
}

/// Factorises a symmetric matrix, with as little jitter as [`LADDER`] (or [`LADDER_F32`]) allows.
///
/// ```
/// use ndarray::array;
/// let factor = mercer_linalg::cholesky(array![[4.0, 2.0], [2.0, 5.0]].view())?;
/// assert_eq!((factor.lower, factor.jitter), (array![[2.0, 0.0], [1.0, 2.0]], 0.0));
///
/// let singular = array![[1.0, 1.0], [1.0, 1.0]];
/// assert_eq!(mercer_linalg::cholesky(singular.view())?.relative_jitter, 1e-12);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// For a matrix that is not square, finite and symmetric, and [`LinalgError::NotPositiveDefinite`] if the ladder ends first.
pub fn cholesky<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Cholesky<T>> {
    T::cholesky(a, T::zero(), ladder_of::<T>())
}

/// As [`cholesky`], for `A + shift·I`, without the copy that adding the shift would take. The jitter is added on top of
/// the shift.
///
/// ```
/// use ndarray::array;
/// let factor = mercer_linalg::cholesky_shifted(array![[3.0, 2.0], [2.0, 4.0]].view(), 1.0)?;
/// assert_eq!((factor.lower, factor.jitter), (array![[2.0, 0.0], [1.0, 2.0]], 0.0));
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// As [`cholesky`], and [`LinalgError::NotFinite`] for a shift that is not finite.
pub fn cholesky_shifted<T: Scalar>(a: ArrayView2<'_, T>, shift: T) -> Result<Cholesky<T>> {
    input::check_finite_vector("cholesky shift", ndarray::ArrayView1::from(&[shift]), 0)?;
    T::cholesky(a, shift, ladder_of::<T>())
}

/// As [`cholesky`], with a custom ladder; `&[0.0]` allows no jitter.
///
/// # Errors
/// As [`cholesky`]; an empty ladder fails at pivot 0.
pub fn cholesky_with_ladder<T: Scalar>(a: ArrayView2<'_, T>, ladder: &[f64]) -> Result<Cholesky<T>> {
    T::cholesky(a, T::zero(), ladder)
}

fn ladder_of<T: Scalar>() -> &'static [f64] {
    let wide = T::epsilon().wide() < 1e-12;
    if wide { &LADDER } else { &LADDER_F32 }
}

pub(crate) fn climb<T: Scalar>(a: ArrayView2<'_, T>, shift: T, ladder: &[f64]) -> Result<Cholesky<T>> {
    let input::Scaled { mut matrix, factor: scale } = input::symmetric_copy(ROUTINE, a)?;
    let n = matrix.nrows();
    if n == 0 {
        return Ok(Cholesky { lower: matrix, jitter: T::zero(), relative_jitter: 0.0 });
    }
    matrix.diag_mut().mapv_inplace(|v| v + shift * scale);
    let diagonal = matrix.diag().to_owned();
    let mean = diagonal.iter().map(|v| v.wide()).sum::<f64>() / n as f64;
    // Taken now, because the factor overwrites the matrix.
    let original = verify::Image::new(matrix.view(), Depth::of_this_build());
    let mut failure = LinalgError::NotPositiveDefinite { pivot: 0, relative_jitter: 0.0 };
    for (rung, &relative_jitter) in ladder.iter().enumerate() {
        if rung > 0 {
            // Free what the last attempt left before copying the matrix again.
            drop(std::mem::take(&mut matrix));
            matrix = input::symmetric_copy(ROUTINE, a)?.matrix;
        }
        let jitter = T::narrow(relative_jitter * mean);
        matrix.diag_mut().zip_mut_with(&diagonal, |v, &d| *v = d + jitter);
        match factorise(&mut matrix, diagonal.mapv(|d| d + jitter).view()) {
            Ok(()) => {
                let multiply = |p: Array2<T>| matmul(matrix.view(), matmul(matrix.t(), p.view()).view());
                verify::require(ROUTINE, "residual", original.residual(jitter, multiply))?;
                // The scale is a power of four, so its root is exact.
                let unscale = T::one() / scale.sqrt();
                if unscale != T::one() {
                    matrix.mapv_inplace(|v| v * unscale);
                }
                return Ok(Cholesky { lower: matrix, jitter: jitter / scale, relative_jitter });
            }
            Err(pivot) => failure = LinalgError::NotPositiveDefinite { pivot, relative_jitter },
        }
    }
    Err(failure)
}

/// Replaces a symmetric matrix by its factor. If a pivot is not clear of rounding, the pivot is the error, and the
/// matrix is left in an undefined state.
fn factorise<T: Scalar>(a: &mut Array2<T>, diagonal: ArrayView1<'_, T>) -> std::result::Result<(), usize> {
    T::cholesky_seq(lend_mut(&mut a.view_mut()))?;
    let noise = T::narrow((a.nrows() as f64).sqrt()) * T::epsilon();
    let clear = |pivot: T, diagonal: T| pivot * pivot > noise * diagonal;
    if let Some(pivot) = a.diag().iter().zip(diagonal).position(|(&l, &d)| !clear(l, d)) {
        return Err(pivot);
    }
    // Only the lower triangle is the factor; the columns are contiguous.
    for (column, mut values) in a.columns_mut().into_iter().enumerate() {
        values.slice_mut(ndarray::s![..column]).fill(T::zero());
    }
    Ok(())
}
