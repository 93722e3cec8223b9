//! The spectrum of a kernel from its matrix.

use super::findings::KernelSpectrum;
use super::weights::degrees;
use crate::Error;
use crate::error::OVERFLOW;
use mercer_lens::spectra::{TargetAlignment, captured, drift, power_law, principal_angles, size, target_alignment};
use mercer_linalg::symmetric_eigen;
use ndarray::{Array2, Axis, s};

/// Values in the tail of a power law, at least.
const LEAST_TAIL: usize = 2;

/// What kernels of later checkpoints are compared with.
pub(super) struct FirstKernel {
    pub(super) gram: Option<Array2<f64>>,
    /// The leading eigenvectors, a column each.
    pub(super) vectors: Array2<f64>,
}

/// The labels, and how they are aligned with a kernel.
pub(super) struct Aligned {
    pub(super) alignment: Vec<f64>,
    pub(super) captured: Vec<f64>,
}

/// The spectrum of a Gram matrix, its alignment with the labels, and what later ones are compared with.
pub(super) fn spectrum(
    kernel: &str,
    gram: Array2<f64>,
    targets: Option<&Array2<f64>>,
    (leading, epsilon): (usize, f64),
    first: Option<&FirstKernel>,
) -> Result<(KernelSpectrum, Option<TargetAlignment>, FirstKernel), Error> {
    let about = |error| Error::from(error).with_place(&format!("kernel {kernel}"));
    let n = gram.nrows();
    if let Some(((row, column), value)) = gram.indexed_iter().find(|(_, value)| !value.is_finite()) {
        let text = format!("kernel {kernel}: the value of samples {row} and {column} is {value}");
        return Err(Error::with_code("not-finite", text).hint(OVERFLOW));
    }
    let eigen = symmetric_eigen(gram.view()).map_err(|error| about(error.into()))?;
    // Rounding makes some eigenvalues of a positive semidefinite matrix negative.
    let eigenvalues: Vec<f64> = eigen.values.iter().map(|value| value.max(0.0)).collect();
    let sizes = size(&eigenvalues, n, n).map_err(about)?;
    let tail = power_law(&eigenvalues, LEAST_TAIL).map_err(about)?;
    let vectors = eigen.vectors.slice(s![.., ..above_rounding(&eigenvalues, leading, n, epsilon)]).to_owned();
    let kta = targets.map(|targets| target_alignment(gram.view(), targets.view())).transpose().map_err(about)?;
    let aligned = aligned(&vectors, targets)?;
    let drift = match first.and_then(|first| first.gram.as_ref()) {
        Some(first) => Some(drift(first.view(), gram.view()).map_err(about)?),
        None => None,
    };
    let found = KernelSpectrum {
        kernel: kernel.to_owned(),
        trace: gram.diag().sum(),
        largest: eigenvalues.first().copied().unwrap_or(0.0),
        participation_ratio: ratio(&eigenvalues),
        effective_rank: sizes.effective_rank,
        alpha: tail.as_ref().map(|tail| tail.alpha),
        alpha_error: tail.as_ref().map(|tail| tail.standard_error),
        label_alignment: aligned.alignment,
        captured: aligned.captured,
        drift,
        largest_angle: angle(first, &vectors)?,
        eigenvalues,
        estimated: None,
    };
    Ok((found, kta, FirstKernel { gram: Some(gram), vectors }))
}

/// How many of the leading eigenvectors belong to an eigenvalue above rounding. The others are arbitrary directions of
/// the null space.
pub(super) fn above_rounding(eigenvalues: &[f64], leading: usize, n: usize, epsilon: f64) -> usize {
    let least = n as f64 * epsilon * eigenvalues.first().copied().unwrap_or(0.0);
    eigenvalues.iter().take(leading).take_while(|value| **value > least).count()
}

/// `(Σλ)²/Σλ²`.
fn ratio(values: &[f64]) -> Option<f64> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let relative = || values.iter().map(|value| value / largest);
    (largest > 0.0).then(|| relative().sum::<f64>().powi(2) / relative().map(|value| value * value).sum::<f64>())
}

/// The largest angle between leading eigenvectors now and at the first checkpoint, in degrees.
pub(super) fn angle(first: Option<&FirstKernel>, vectors: &Array2<f64>) -> Result<Option<f64>, Error> {
    let Some(first) = first else { return Ok(None) };
    if first.vectors.ncols() == 0 || vectors.ncols() == 0 {
        return Ok(None);
    }
    Ok(degrees(principal_angles(first.vectors.view(), vectors.view())?).into_iter().reduce(f64::max))
}

/// How the leading eigenvectors are aligned with centred labels.
pub(super) fn aligned(vectors: &Array2<f64>, targets: Option<&Array2<f64>>) -> Result<Aligned, Error> {
    let none = Aligned { alignment: Vec::new(), captured: Vec::new() };
    let Some(targets) = targets else { return Ok(none) };
    let Some(mean) = targets.mean_axis(Axis(0)).filter(|_| vectors.ncols() > 0) else { return Ok(none) };
    let Some(captured) = captured(vectors.view(), (targets - &mean).view())? else { return Ok(none) };
    let each = |at: usize| captured[at] - if at > 0 { captured[at - 1] } else { 0.0 };
    let alignment = (0..captured.len()).map(|at| each(at).max(0.0).sqrt()).collect();
    Ok(Aligned { alignment, captured })
}
