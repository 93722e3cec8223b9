//! Findings of a fit.

use super::machine::MachineName;
use mercer_learn::classification::By;
use mercer_learn::selection::{Candidate, Criterion};
use serde::Serialize;

/// The findings of a fit.
#[derive(Clone, Debug, Serialize)]
pub struct FitFindings {
    /// The machine.
    pub machine: MachineName,
    /// The files.
    pub data: String,
    /// The samples.
    pub n_samples: usize,
    /// The training accuracy.
    pub training_accuracy: Option<f64>,
    /// The training R² of each target; none for a constant target.
    pub training_r_squared: Option<Vec<Option<f64>>>,
    /// How it was found.
    #[serde(flatten)]
    pub solution: SolutionFindings,
    /// The repairs that were needed.
    pub repairs: Vec<String>,
}

/// How the solver got there. Fields that do not apply to a machine are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SolutionFindings {
    /// The strength of the penalty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<f64>,
    /// The cost of a sample on the wrong side of the margin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How the penalty or the cost was chosen from several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionFindings>,
    /// The objective that the solver reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<f64>,
    /// Its iterations, passes or steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
    /// Whether it reached its tolerance; if not, the machine is the best it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// The relative residual of conjugate gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// The training samples that a support vector machine depends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_vectors: Option<usize>,
    /// The distance that defines neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours_by: Option<By>,
    /// The variance of the noise of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_variance: Option<f64>,
    /// The logarithm of the marginal likelihood of a process, after tuning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_marginal_likelihood: Option<f64>,
    /// The parameters that tuning changed.
    #[serde(flatten)]
    pub tuning: Option<Tuning>,
}

/// The parameters of a process that were tuned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuning {
    /// The kernel with its new parameters.
    pub kernel: String,
    /// The parameters of the kernel, and the noise.
    pub tuned: Vec<TunedParameter>,
    /// The log marginal likelihood at the start; none if it is not finite there.
    pub log_marginal_likelihood_before: Option<f64>,
    /// Evaluations of the marginal likelihood.
    pub evaluations: usize,
}

/// A parameter before and after tuning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunedParameter {
    /// Such as `rbf.lengthscale` or `noise_variance`.
    pub name: String,
    /// The value at the start.
    pub before: f64,
    /// The value that maximises the marginal likelihood.
    pub after: f64,
}

/// How one of several values was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelectionFindings {
    /// `leave-one-out` or `cross-validation`.
    pub by: &'static str,
    /// The score: `mean-squared-error`, `log-loss` or `accuracy`.
    pub criterion: String,
    /// The folds of cross-validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// All values with their scores, ascending.
    pub candidates: Vec<Candidate>,
}

impl SelectionFindings {
    pub(crate) fn leave_one_out(candidates: Vec<Candidate>) -> Self {
        Self { by: "leave-one-out", criterion: "mean-squared-error".to_owned(), folds: None, candidates }
    }

    pub(crate) fn cross_validation(folds: usize, criterion: Criterion, candidates: Vec<Candidate>) -> Self {
        Self { by: "cross-validation", criterion: criterion.to_string(), folds: Some(folds), candidates }
    }
}
