//! What is found.

use crate::spec::Precision;
use mercer_spectral::retrieval::Retrieval;
use mercer_spectral::{Measured, Repairs, TangentChoice};
use serde::Serialize;

/// What is known of eigenfunctions that were found, or evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct EigenFindings {
    /// What the folder holds: `eigenfunctions`.
    pub kind: &'static str,
    /// The kernel, as it was named.
    pub kernel: Option<String>,
    /// How the functions were found; `load` if they were evaluated.
    pub method: String,
    /// The scalar of the work.
    pub precision: Precision,
    /// Samples that they were found from, or rows of a matrix.
    pub samples: usize,
    /// Samples that they were evaluated on.
    pub evaluated: Option<usize>,
    /// How many were asked for.
    pub wanted: usize,
    /// μ, descending.
    pub values: Vec<f64>,
    /// What was dropped or clipped.
    pub repairs: Repairs,
    /// `Σ_n κ(x_n, x_n) / N`, which all eigenvalues sum to.
    pub mean_diagonal: Option<f64>,
    /// Of Nyström's approximation with all its components.
    pub trace_residual: Option<f64>,
    /// Of Nyström's approximation.
    pub landmarks: Option<usize>,
    /// The exact decomposition, if it was asked for.
    pub truth: Option<Compared>,
    /// Before the Rayleigh–Ritz finish of functions that were learnt.
    pub before: Option<Before>,
    /// Whether the matrix of a tangent kernel was made, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<TangentChoice>,
    /// How much the first numbers of a code tell, with labels of the data and of the samples that are evaluated.
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
    /// How far the functions are from the true ones.
    #[serde(flatten)]
    pub measured: Measured,
}

/// How much the first numbers of a code tell.
#[derive(Clone, Debug, Serialize)]
pub struct CodesFindings {
    /// The items that precision looks at.
    pub nearest: usize,
    /// Powers of two, and the whole code.
    pub lengths: Vec<CodeScore>,
}

/// Codes of one length.
#[derive(Clone, Debug, Serialize)]
pub struct CodeScore {
    /// What is found by them.
    #[serde(flatten)]
    pub found: Retrieval,
    /// Of a linear classifier.
    pub accuracy: f64,
}

/// What networks learnt, as it was.
#[derive(Clone, Debug, Serialize)]
pub struct Before {
    /// μ.
    pub values: Vec<f64>,
    /// How far the functions were from the true ones.
    pub comparison: Option<Measured>,
}
