//! What a kernel's eigenvectors have to do with labels, teachers and each other.
//!
//! ```text
//! plain alignment     ⟨K, YYᵀ⟩ / (‖K‖_F ‖YYᵀ‖_F)                      Cristianini et al. 2001
//! centred alignment   ⟨HKH, HYYᵀH⟩ / (‖HKH‖_F ‖HYYᵀH‖_F),  H = I − 11ᵀ/n
//! cosine              |uᵀv| / (‖u‖ ‖v‖)
//! captured share      ‖U_kᵀY‖²_F / ‖Y‖²_F,  U_k the first k eigenvectors
//! principal angles    cos θᵢ = σᵢ(QᵀQ′)
//! ```
//!
//! The plain alignment is equation 15 of Wang et al. 2022 (arXiv 2211.06506; 87 in the report that collects it), where
//! `y` is one column. For several classes `Y` has a column per class, one for the members of the class and zero for the
//! others. The centred alignment (Cortes, Mohri and Rostamizadeh, JMLR 13, 2012) does not depend on the means of kernel
//! and labels: with one-hot columns or with centred ones it is the same. It is the biased linear CKA of kernel and
//! labels.
//!
//! Eigenvectors are not unique where eigenvalues are equal, so the captured share is meaningful at the ends of groups
//! of equal eigenvalues only. Angles below 45° come from sines (Björck and Golub, Math. Comp. 27, 1973), which keeps
//! the digits of small ones.

use crate::arrays::{centred, doubly_centred, scaled};
use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::{LensError, Result};
use mercer_learn::LearnError;
use mercer_learn::metrics::kernel_target_alignment;
use mercer_linalg::verify::{Depth, LIMIT, orthogonality};
use mercer_linalg::{check_finite, check_symmetric, matmul, thin_svd};
use ndarray::{Array2, ArrayView2, Axis, s};
use serde::Serialize;

/// The alignment of a kernel with targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TargetAlignment {
    /// As it is; `None` if kernel or targets are zero.
    pub plain: Option<f64>,
    /// After centring; `None` if kernel or targets are constant.
    pub centred: Option<f64>,
}

/// The alignment of a Gram matrix with targets: a row per sample, a column of labels or a column per class.
///
/// ```
/// use ndarray::array;
/// let y = array![[1.0], [-1.0]];
/// let found = mercer_lens::spectra::target_alignment(y.dot(&y.t()).view(), y.view())?;
/// assert!((found.plain.unwrap() - 1.0).abs() < 1e-12 && (found.centred.unwrap() - 1.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no samples, a matrix that is not symmetric, another number of targets, and numbers that are not finite.
pub fn target_alignment(gram: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<TargetAlignment> {
    check_count("an alignment with targets", 1, gram.nrows())?;
    check_symmetric("an alignment with targets", gram)?;
    check_rows("the targets", gram.nrows(), targets.nrows())?;
    check_finite("targets", targets)?;
    // The alignment does not depend on the scale, and squares of scaled numbers do not overflow.
    let (gram, targets) = (scaled(gram), scaled(targets));
    let plain = defined(kernel_target_alignment(gram.view(), targets.view()))?;
    let (gram, targets) = (doubly_centred(gram), centred(targets, Axis(0)));
    let centred = defined(kernel_target_alignment(gram.view(), targets.view()))?;
    Ok(TargetAlignment { plain, centred })
}

/// `|uᵀv| / (‖u‖ ‖v‖)`, of an eigenvector and a direction; `None` if one of them is zero.
///
/// ```
/// assert_eq!(mercer_lens::spectra::cosine(&[3.0, 4.0], &[0.0, -2.0])?, Some(0.8));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For vectors of different lengths, and numbers that are not finite.
pub fn cosine(u: &[f64], v: &[f64]) -> Result<Option<f64>> {
    check_rows("the other vector", u.len(), v.len())?;
    for vector in [u, v] {
        check_numbers("a cosine", vector)?;
    }
    let [u, v] = [u, v].map(|vector| {
        let largest = vector.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        vector.iter().map(|x| if largest > 0.0 { x / largest } else { 0.0 }).collect::<Vec<f64>>()
    });
    Ok(crate::ranks::correlation(&u, &v).map(f64::abs))
}

/// The share of targets in the span of the first `k` orthonormal vectors (columns, such as eigenvectors), for
/// `k = 1, 2, …`. `None` if the targets are zero.
///
/// # Errors
/// For another number of rows, numbers that are not finite, and columns that are not orthonormal.
pub fn captured(vectors: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<Option<Vec<f64>>> {
    check_rows("the targets", vectors.nrows(), targets.nrows())?;
    check_finite("eigenvectors", vectors)?;
    check_finite("targets", targets)?;
    let ratio = orthogonality(vectors, Depth::of_this_build());
    // Eigenvectors may come from single precision.
    if ratio > LIMIT * f64::from(f32::EPSILON) / f64::EPSILON {
        let reason = "columns must be orthonormal";
        return Err(LensError::Setting { name: "the error of orthogonality", value: format!("{ratio:e} ε"), reason });
    }
    let targets = scaled(targets);
    let total: f64 = targets.iter().map(|x| x * x).sum();
    let parts = matmul(vectors.t(), targets.view());
    let mut sum = 0.0;
    let cumulative = parts.outer_iter().map(|row| {
        sum += row.iter().map(|x| x * x).sum::<f64>();
        (sum / total).min(1.0)
    });
    Ok((total > 0.0).then(|| cumulative.collect()))
}

/// The principal angles between the spans of the columns of two matrices, ascending, in radians: as many as the smaller
/// span has dimensions. Columns may be linearly dependent.
///
/// ```
/// use ndarray::array;
/// let found = mercer_lens::spectra::principal_angles(array![[1.0], [0.0]].view(), array![[1.0], [1e-8]].view())?;
/// assert!((found[0] - 1e-8).abs() < 1e-16);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For different numbers of rows, and numbers that are not finite.
pub fn principal_angles(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
    check_rows("the other subspace", a.nrows(), b.nrows())?;
    let (a, b) = (span(a)?, span(b)?);
    Ok(defined(mercer_learn::metrics::principal_angles(a.view(), b.view()))?
        .map_or(Vec::new(), |angles| angles.to_vec()))
}

/// An orthonormal basis of the span of the columns.
fn span(columns: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    let svd = thin_svd(columns)?;
    let largest = svd.values.first().copied().unwrap_or(0.0);
    let rounding = columns.nrows().max(columns.ncols()) as f64 * f64::EPSILON * largest;
    let rank = svd.values.iter().take_while(|value| **value > rounding).count();
    Ok(svd.left.slice(s![.., ..rank]).to_owned())
}

/// A measure that may be undefined.
fn defined<T>(measured: mercer_learn::Result<T>) -> Result<Option<T>> {
    match measured {
        Ok(value) => Ok(Some(value)),
        Err(LearnError::Algebra(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}
