//! Spectral signatures (Tran, Li and Mądry 2018, arXiv 1811.00636).
//!
//! For the features `φᵢ` of the samples of one class, with mean `μ` and leading right singular vector `v` of the centred
//! matrix,
//!
//! ```text
//! score(i) = ⟨φᵢ − μ, v⟩² = λ·uᵢ²                relative(i) = score(i) / mean of the scores of the class = n·uᵢ²
//! ```
//!
//! where `λ` and `u` are the leading eigenvalue and eigenvector of the centred Gram matrix. The same scores therefore
//! follow from a kernel alone. Relative scores do not depend on the scale of the features, and can be compared between
//! classes. If the leading eigenvalue is not simple, the direction is not unique.
//!
//! A class of one sample, or of equal samples, has no direction: its scores are zero.

use super::principal::{Principal, of_features, of_gram};
use super::{block, members};
use crate::checks::check_rows;
use crate::error::Result;
use ndarray::{ArrayView2, Axis};
use serde::Serialize;

/// The signature of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassSpectral {
    /// The squared projections.
    pub scores: Vec<f64>,
    /// Divided by their mean.
    pub relative: Vec<f64>,
    /// The share of the variance along the leading direction; `None` if there is no variance.
    pub share: Option<f64>,
}

/// What is known about the leading direction of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassSummary {
    /// The class.
    pub class: usize,
    /// The number of its samples.
    pub samples: usize,
    /// The share of the variance along the leading direction; `None` if there is no variance.
    pub share: Option<f64>,
}

/// Spectral signatures of all samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectral {
    /// The squared projection of every sample on the leading direction of its class.
    pub scores: Vec<f64>,
    /// Divided by the mean of its class.
    pub relative: Vec<f64>,
    /// The classes.
    pub classes: Vec<ClassSummary>,
}

/// Scores from the features of one class, a row per sample.
///
/// # Errors
/// For features that are not finite.
pub fn class_spectral_from_features(features: ArrayView2<'_, f64>) -> Result<ClassSpectral> {
    Ok(scored(of_features(features, 1)?))
}

/// Scores from the Gram matrix of one class.
///
/// # Errors
/// For a matrix that is not square, symmetric and finite.
pub fn class_spectral_from_gram(gram: ArrayView2<'_, f64>) -> Result<ClassSpectral> {
    Ok(scored(of_gram(gram, 1)?))
}

/// Scores from the features of all samples.
///
/// ```
/// use mercer_lens::signatures::spectral_from_features;
/// let features = ndarray::array![[1.0, 0.0], [1.0, 0.1], [1.1, 0.0], [1.0, 5.0]];
/// let found = spectral_from_features(features.view(), &[0, 0, 0, 0], 1)?;
/// assert!(found.relative[3] > 2.9 && found.relative[..3].iter().all(|score| *score < 0.5));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For no samples, features that are not finite, classes that do not exist, and another number of labels.
pub fn spectral_from_features(features: ArrayView2<'_, f64>, labels: &[usize], n_classes: usize) -> Result<Spectral> {
    by_class(labels, n_classes, features.nrows(), |samples| {
        class_spectral_from_features(features.select(Axis(0), samples).view())
    })
}

/// Scores from the Gram matrix of all samples. Only the blocks of pairs of the same class are read.
///
/// # Errors
/// For no samples, a matrix that is not square, blocks that are not symmetric or not finite, classes that do not exist,
/// and another number of labels.
pub fn spectral_from_gram(gram: ArrayView2<'_, f64>, labels: &[usize], n_classes: usize) -> Result<Spectral> {
    check_rows("the transposed Gram matrix", gram.nrows(), gram.ncols())?;
    by_class(labels, n_classes, gram.nrows(), |samples| class_spectral_from_gram(block(gram, samples).view()))
}

fn scored(principal: Principal) -> ClassSpectral {
    let n = principal.coordinates.nrows();
    let Some(&value) = principal.values.first() else {
        return ClassSpectral { scores: vec![0.0; n], relative: vec![0.0; n], share: None };
    };
    let scores: Vec<f64> = principal.coordinates.column(0).iter().map(|x| x * x).collect();
    let relative = scores.iter().map(|score| score * n as f64 / value).collect();
    ClassSpectral { scores, relative, share: Some((value / principal.total).min(1.0)) }
}

fn by_class(
    labels: &[usize],
    n_classes: usize,
    rows: usize,
    signature: impl Fn(&[usize]) -> Result<ClassSpectral>,
) -> Result<Spectral> {
    let n = labels.len();
    let mut all = Spectral { scores: vec![0.0; n], relative: vec![0.0; n], classes: Vec::new() };
    for (class, samples) in members(labels, n_classes, rows)?.iter().enumerate() {
        let found = signature(samples)?;
        for (place, &sample) in samples.iter().enumerate() {
            all.scores[sample] = found.scores[place];
            all.relative[sample] = found.relative[place];
        }
        all.classes.push(ClassSummary { class, samples: samples.len(), share: found.share });
    }
    Ok(all)
}
