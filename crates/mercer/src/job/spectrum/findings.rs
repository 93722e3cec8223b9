//! The findings of spectra.

use mercer_lens::spectra::{Drift, SpectrumKind, TargetAlignment};
use serde::Serialize;

/// The findings of spectra.
#[derive(Clone, Debug, Serialize)]
pub struct SpectrumFindings {
    /// The network's file.
    pub network: String,
    /// Of which matrix eigenvalues of weights are.
    pub normalisation: &'static str,
    /// Samples of the kernels.
    pub n_samples: usize,
    /// The checkpoints, or the network of the file.
    pub checkpoints: Vec<CheckpointSpectra>,
    /// What was found, in words.
    pub sentences: Vec<String>,
}

/// The spectra of a checkpoint.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointSpectra {
    /// The checkpoint.
    pub name: String,
    /// Its weights.
    pub weights: Vec<WeightSpectrum>,
    /// The conjugate kernel, if there are samples and a last hidden layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ck: Option<KernelSpectrum>,
    /// The tangent kernel, if there are samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntk: Option<KernelSpectrum>,
    /// The alignment of the kernels with the labels, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kta: Option<KernelTargets>,
}

/// The spectrum of a weight.
#[derive(Clone, Debug, Serialize)]
pub struct WeightSpectrum {
    /// The parameter.
    pub layer: String,
    /// Its shape in the file.
    pub shape: Vec<usize>,
    /// How it became a matrix.
    pub layout: &'static str,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// `‖W‖²_F/‖W‖₂²`.
    pub stable_rank: Option<f64>,
    /// The exponential of the entropy of the singular values.
    pub effective_rank: Option<f64>,
    /// The largest eigenvalue.
    pub largest: f64,
    /// The standard deviation of the entries that the bulk fits.
    pub sigma: Option<f64>,
    /// The upper edge of the fitted Marchenko–Pastur law.
    pub edge: Option<f64>,
    /// The lower edge.
    pub lower_edge: Option<f64>,
    /// Above this an eigenvalue counts as a spike: the edge of noise in a matrix of this size, at 99 %.
    pub threshold: Option<f64>,
    /// The Kolmogorov–Smirnov distance of the bulk from the law.
    pub bulk_distance: Option<f64>,
    /// Eigenvalues beyond the threshold.
    pub n_spikes: usize,
    /// The largest eigenvalue of the same numbers in random places.
    pub shuffled_edge: f64,
    /// Eigenvalues beyond it.
    pub n_above_shuffled: usize,
    /// The exponent of the power law that fits the tail.
    pub alpha: Option<f64>,
    /// Its standard error.
    pub alpha_error: Option<f64>,
    /// Where the tail begins.
    pub x_min: Option<f64>,
    /// Eigenvalues in the tail.
    pub n_tail: Option<usize>,
    /// The Kolmogorov–Smirnov distance of the tail from the power law.
    pub tail_distance: Option<f64>,
    /// Hill's estimate of the same exponent, from the largest tenth.
    pub hill: Option<f64>,
    /// Its standard error.
    pub hill_error: Option<f64>,
    /// Bulk, spikes, heavy tail, or other.
    pub kind: SpectrumKind,
    /// The distance from the first checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// The largest distance between the distributions of eigenvalues now and at the first checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile_distance: Option<f64>,
    /// The largest angle, in degrees, between the leading right singular vectors now and at the first checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_angle: Option<f64>,
    /// Compared with the directions of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<DirectionFindings>,
    /// All eigenvalues, descending.
    pub eigenvalues: Vec<f64>,
}

/// Directions of the user, and the leading right singular vectors of a weight.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionFindings {
    /// `|βᵀu₁|/‖β‖` for every direction.
    pub cosines: Vec<Option<f64>>,
    /// Principal angles, in degrees, between the span of the directions and the leading singular vectors.
    pub angles: Vec<f64>,
    /// How many singular vectors these are.
    pub leading: usize,
}

/// The spectrum of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelSpectrum {
    /// The kernel.
    pub kernel: String,
    /// Its trace.
    pub trace: f64,
    /// Its largest eigenvalue.
    pub largest: f64,
    /// `(Σλ)²/Σλ²`.
    pub participation_ratio: Option<f64>,
    /// The exponential of the entropy of the eigenvalues.
    pub effective_rank: Option<f64>,
    /// The exponent of the power law that fits the tail.
    pub alpha: Option<f64>,
    /// Its standard error.
    pub alpha_error: Option<f64>,
    /// `|Yᵀv|/‖Y‖` for the leading eigenvectors, with centred labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub label_alignment: Vec<f64>,
    /// The share of the centred labels in the span of the leading eigenvectors, cumulated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub captured: Vec<f64>,
    /// The distance from the kernel of the first checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// The largest angle, in degrees, between the leading eigenvectors now and at the first checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_angle: Option<f64>,
    /// The eigenvalues, descending; the leading ones if the kernel is known by its products alone.
    pub eigenvalues: Vec<f64>,
    /// Estimates from products, if there is no matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<LargeFindings>,
}

/// Estimates from products with a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct LargeFindings {
    /// Products with the kernel.
    pub n_products: usize,
    /// The standard error of the trace.
    pub trace_error: Option<f64>,
    /// Values of the spectral density by stochastic Lanczos quadrature: eigenvalue and weight.
    pub nodes: Vec<[f64; 2]>,
}

/// The alignment of kernels with labels.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct KernelTargets {
    /// Of the conjugate kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ck: Option<TargetAlignment>,
    /// Of the tangent kernel.
    pub ntk: TargetAlignment,
}
