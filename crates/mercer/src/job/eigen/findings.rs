//! What is found.

use crate::spec::Precision;
use mercer_spectral::retrieval::Retrieval;
use mercer_spectral::{Measured, Repairs, TangentChoice};
use serde::Serialize;

/// The findings for eigenfunctions that were computed or evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct EigenFindings {
    /// The kind of folder: `eigenfunctions`.
    pub kind: &'static str,
    /// The kernel, as it was named.
    pub kernel: Option<String>,
    /// The method that found the functions; `load` if they were evaluated.
    pub method: String,
    /// The precision to compute in.
    pub precision: Precision,
    /// The number of samples, or of matrix rows, they were found from.
    pub samples: usize,
    /// The number of samples they were evaluated on.
    pub evaluated: Option<usize>,
    /// The number requested.
    pub wanted: usize,
    /// μ, descending.
    pub values: Vec<f64>,
    /// What was dropped or clipped.
    pub repairs: Repairs,
    /// `Σ_n κ(x_n, x_n) / N`, the sum of all eigenvalues.
    pub mean_diagonal: Option<f64>,
    /// Of Nyström's approximation with all its components.
    pub trace_residual: Option<f64>,
    /// Of Nyström's approximation.
    pub landmarks: Option<usize>,
    /// The exact decomposition, if requested.
    pub truth: Option<Compared>,
    /// Learnt functions before the Rayleigh–Ritz step.
    pub before: Option<Before>,
    /// Whether the matrix of a tangent kernel was formed, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<TangentChoice>,
    /// The quality of codes by length, if both the data and the evaluated samples have labels.
    pub codes: Option<CodesFindings>,
}

impl EigenFindings {
    /// Nothing yet.
    pub(super) fn new(method: &str, precision: Precision, wanted: usize) -> Self {
        Self {
            kind: mercer_spectral::KIND.name,
            kernel: None,
            method: method.to_owned(),
            precision,
            samples: 0,
            evaluated: None,
            wanted,
            values: Vec::new(),
            repairs: Repairs::default(),
            mean_diagonal: None,
            trace_residual: None,
            landmarks: None,
            truth: None,
            before: None,
            choice: None,
            codes: None,
        }
    }
}

/// The exact decomposition.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The true μ.
    pub values: Vec<f64>,
    /// The error of the functions.
    #[serde(flatten)]
    pub measured: Measured,
}

/// The quality of codes by length.
#[derive(Clone, Debug, Serialize)]
pub struct CodesFindings {
    /// The number of items for precision.
    pub nearest: usize,
    /// Powers of two, and the whole code.
    pub lengths: Vec<CodeScore>,
}

/// Codes of one length.
#[derive(Clone, Debug, Serialize)]
pub struct CodeScore {
    /// The retrieval quality.
    #[serde(flatten)]
    pub found: Retrieval,
    /// The accuracy of a linear classifier.
    pub accuracy: f64,
}

/// The learnt functions before the final step.
#[derive(Clone, Debug, Serialize)]
pub struct Before {
    /// μ.
    pub values: Vec<f64>,
    /// The error of the functions.
    pub comparison: Option<Measured>,
}
