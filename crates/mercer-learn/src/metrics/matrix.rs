//! Measures of kernel matrices and subspaces.
//!
//! ```text
//! ‖A − B‖_F / ‖B‖_F,   ‖A − B‖₂ / ‖B‖₂         κ = λmax / λmin
//! KTA = ⟨K, YYᵀ⟩ / (‖K‖_F ‖YYᵀ‖_F)             cos θᵢ = σᵢ(Q₁ᵀQ₂)
//! ```
//!
//! KTA: Wang et al. 2022, arXiv 2211.06506, equation 15 (87 in the report that collects it), after Cristianini et al.
//! 2001; for one column of targets `‖YYᵀ‖_F = ‖y‖²`. Small angles come from sines: Björck and Golub, Numerical methods
//! for computing angles between linear subspaces, Math. Comp. 27, 1973.

use crate::error::{LearnError, Result, check_size};
use crate::normal::Normal;
use mercer_linalg::verify::frobenius;
use mercer_linalg::{Lanczos, check_finite, matmul, matmul_into, symmetric_eigen, syrk, thin_qr, thin_svd};
use ndarray::{Array1, Array2, ArrayView2};

/// Below this side all singular values are computed, which is cheaper than iterating.
const DENSE: usize = 256;

/// `‖a − reference‖_F / ‖reference‖_F`.
pub fn frobenius_difference(a: ArrayView2<'_, f64>, reference: ArrayView2<'_, f64>) -> Result<f64> {
    let difference = difference(a, reference)?;
    relative("the Frobenius difference", frobenius(difference.view()), frobenius(reference))
}

/// `‖a − reference‖₂ / ‖reference‖₂`.
pub fn spectral_difference(a: ArrayView2<'_, f64>, reference: ArrayView2<'_, f64>) -> Result<f64> {
    let difference = difference(a, reference)?;
    relative("the spectral difference", spectral_norm(difference.view())?, spectral_norm(reference)?)
}

/// The largest singular value.
pub fn spectral_norm(a: ArrayView2<'_, f64>) -> Result<f64> {
    check_finite("spectral norm", a)?;
    if a.is_empty() || a.iter().all(|value| *value == 0.0) {
        return Ok(0.0);
    }
    if a.nrows().min(a.ncols()) <= DENSE {
        return Ok(thin_svd(a)?.values[0]);
    }
    // Scaled, so that squares neither overflow nor vanish.
    let scale = a.iter().fold(0_f64, |most, value| most.max(value.abs()));
    let scaled = a.mapv(|value| value / scale);
    let square = Lanczos::new(1).run(&Normal(scaled.view()))?.values[0];
    Ok(scale * square.max(0.0).sqrt())
}

/// The extremes of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SpectrumSummary {
    /// The largest eigenvalue.
    pub largest: f64,
    /// The smallest eigenvalue; rounding may have made it negative.
    pub smallest: f64,
    /// `largest / smallest`, if the smallest is clear of rounding (`n ε λmax`).
    pub condition: Option<f64>,
}

/// `λmax`, `λmin` and the condition number of a symmetric matrix, from all its eigenvalues.
pub fn spectrum_summary(a: ArrayView2<'_, f64>) -> Result<SpectrumSummary> {
    let values = symmetric_eigen(a)?.values;
    let (Some(&largest), Some(&smallest)) = (values.first(), values.last()) else {
        return Err(LearnError::Empty { what: "spectrum" });
    };
    let clear = smallest > values.len() as f64 * f64::EPSILON * largest;
    Ok(SpectrumSummary { largest, smallest, condition: clear.then(|| largest / smallest) })
}

/// The alignment of a kernel with targets, a row per sample.
///
/// ```
/// use ndarray::array;
/// let y = array![[1.0], [-1.0]];
/// let ideal = y.dot(&y.t());
/// let aligned = mercer_learn::metrics::kernel_target_alignment(ideal.view(), y.view())?;
/// assert!((aligned - 1.0).abs() < 1e-15);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
pub fn kernel_target_alignment(gram: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<f64> {
    check_size("the columns of the kernel", gram.nrows(), gram.ncols())?;
    check_size("the rows of the targets", gram.nrows(), targets.nrows())?;
    check_finite("kernel target alignment", gram)?;
    check_finite("kernel target alignment, targets", targets)?;
    let inner = (&matmul(gram, targets) * &targets).sum();
    // ‖YYᵀ‖_F = ‖YᵀY‖_F, of the smaller one.
    relative("the kernel target alignment", inner, frobenius(gram) * frobenius(syrk(targets.t()).view()))
}

/// The angles between the spans of the columns of two matrices, ascending, in radians. The columns are assumed to be
/// linearly independent; this is not checked.
pub fn principal_angles(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Array1<f64>> {
    check_size("the rows of the second basis", a.nrows(), b.nrows())?;
    let (a, b) = if a.ncols() >= b.ncols() { (a, b) } else { (b, a) };
    check_size("the rows of a basis (at least its columns)", a.nrows().max(a.ncols()), a.nrows())?;
    let (p, q) = (thin_qr(a)?.q, thin_qr(b)?.q);
    let inner = matmul(p.t(), q.view());
    let cosines = thin_svd(inner.view())?.values;
    let mut rest = q;
    matmul_into(-1.0, p.view(), inner.view(), true, rest.view_mut());
    // Descending sines correspond to descending angles.
    let sines = thin_svd(rest.view())?.values;
    let angle = |(at, &cosine): (usize, &f64)| {
        let sine = sines[sines.len() - 1 - at];
        if cosine * cosine > 0.5 { sine.clamp(0.0, 1.0).asin() } else { cosine.clamp(0.0, 1.0).acos() }
    };
    Ok(cosines.iter().enumerate().map(angle).collect())
}

fn difference(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    check_size("the number of rows", b.nrows(), a.nrows())?;
    check_size("the number of columns", b.ncols(), a.ncols())?;
    check_finite("difference", a)?;
    check_finite("difference, reference", b)?;
    Ok(&a - &b)
}

fn relative(metric: &'static str, part: f64, whole: f64) -> Result<f64> {
    if whole > 0.0 {
        return Ok(part / whole);
    }
    Err(LearnError::Undefined { metric, reason: "the reference is zero" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use rand::RngExt;

    #[test]
    fn differences_of_diagonals() {
        let a = Array2::from_diag(&array![3.0, 1.0]);
        let b = Array2::from_diag(&array![2.0, 1.5]);
        assert!((frobenius_difference(a.view(), b.view()).unwrap() - (1.25f64 / 6.25).sqrt()).abs() < 1e-15);
        assert!((spectral_difference(a.view(), b.view()).unwrap() - 0.5).abs() < 1e-15);
        assert!(frobenius_difference(a.view(), Array2::zeros((2, 2)).view()).is_err());
        let summary = spectrum_summary(a.view()).unwrap();
        assert!((summary.condition.unwrap() - 3.0).abs() < 1e-14);
        assert_eq!(spectrum_summary(Array2::ones((3, 3)).view()).unwrap().condition, None);
    }

    /// The iteration against all singular values, on a matrix with both signs in its spectrum.
    #[test]
    fn the_norm_of_a_large_matrix() {
        let mut rng = mercer_data::random::stream(1, "norm");
        let a = Array2::from_shape_simple_fn((300, 280), || rng.random::<f64>() - 0.7);
        let all = thin_svd(a.view()).unwrap().values[0];
        assert!((spectral_norm(a.view()).unwrap() / all - 1.0).abs() < 1e-10);
    }

    #[test]
    fn angles_keep_their_digits() {
        // Two planes of space that share a line, at a tiny angle.
        let angle = 1e-9_f64;
        let a = array![[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]];
        let b = array![[2.0, 1.0], [0.0, angle.cos()], [0.0, angle.sin()]];
        let angles = principal_angles(a.view(), b.view()).unwrap();
        assert!(angles[0] < 1e-15 && (angles[1] / angle - 1.0).abs() < 1e-6, "{angles}");
        let across = principal_angles(array![[1.0], [0.0]].view(), array![[0.0], [3.0]].view()).unwrap();
        assert!((across[0] - std::f64::consts::FRAC_PI_2).abs() < 1e-15);
        let third = array![[1.0], [3f64.sqrt()]];
        let angles = principal_angles(array![[1.0], [0.0]].view(), third.view()).unwrap();
        assert!((angles[0] - std::f64::consts::FRAC_PI_3).abs() < 1e-15);
    }

    #[test]
    fn alignment_of_one_hot_targets() {
        let y = array![[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
        let k = array![[2.0, 1.0, 0.5], [1.0, 2.0, 0.5], [0.5, 0.5, 2.0]];
        // ⟨K, YYᵀ⟩ = 2+1+1+2+2 = 8; ‖YYᵀ‖ = √5.
        let expected = 8.0 / (frobenius(k.view()) * 5f64.sqrt());
        assert!((kernel_target_alignment(k.view(), y.view()).unwrap() - expected).abs() < 1e-15);
    }
}
