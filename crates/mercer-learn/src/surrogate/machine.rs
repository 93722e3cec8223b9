//! The machine in dual form.
//!
//! ```text
//! s_c(x) = Σᵢ W_ic κ(x, xᵢ) + b_c        A_i = W_ic κ(x, xᵢ) + b_c/N,    Σᵢ A_i = s_c(x)
//! ```
//!
//! Every training sample has a share in every score, and the shares add up to the score: the attribution is exact
//! (Engel et al. 2023, arXiv 2305.14585, equation 3).

use super::rows::DualRows;
use crate::classes::ClassSet;
use crate::error::{LearnError, Result, check_positive, check_size};
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::repair::Repair;
use crate::samples::SampleKind;
use mercer_linalg::{check_finite, matmul};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// What the penalty of a dual machine measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PenaltyNorm {
    /// `‖W‖²`.
    Weights,
    /// `tr WᵀKW`.
    Function,
}

mercer_run::named! {
    PenaltyNorm, "norm":
    Weights = "weights", "Sum of squared weights of the kernel rows, as in the report";
    Function = "function", "Norm of the function in the kernel's space";
}

/// Scores that are sums over training samples.
#[derive(Clone, Debug, PartialEq)]
pub struct DualMachine {
    weights: Array2<f64>,
    bias: Array1<f64>,
    solved: Solved,
    penalty: f64,
    norm: PenaltyNorm,
    repairs: Vec<Repair>,
}

impl DualMachine {
    /// From weights (a row per training sample, a column per output) and biases.
    ///
    /// # Errors
    /// For shapes that do not fit, numbers that are not finite, and a penalty that is not positive.
    pub fn new(
        weights: Array2<f64>,
        bias: Array1<f64>,
        solved: Solved,
        penalty: f64,
        norm: PenaltyNorm,
    ) -> Result<Self> {
        check_size("the number of biases", weights.ncols(), bias.len())?;
        if weights.iter().chain(&bias).any(|number| !number.is_finite()) {
            return Err(LearnError::NotFinite { what: "weights" });
        }
        check_positive("the penalty", penalty)?;
        Ok(Self { weights, bias, solved, penalty, norm, repairs: Vec::new() })
    }

    pub(super) fn with_repairs(self, repairs: Vec<Repair>) -> Self {
        Self { repairs, ..self }
    }

    /// `W`: a row per training sample, a column per output.
    pub fn weights(&self) -> &Array2<f64> {
        &self.weights
    }

    /// `b`: a number per output.
    pub fn bias(&self) -> &Array1<f64> {
        &self.bias
    }

    /// How the solver ended.
    pub fn solved(&self) -> Solved {
        self.solved
    }

    /// The penalty `λ`.
    pub fn penalty(&self) -> f64 {
        self.penalty
    }

    /// What the penalty measures.
    pub fn norm(&self) -> PenaltyNorm {
        self.norm
    }

    /// The repairs of the fit.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// The number of training samples.
    pub fn n_samples(&self) -> usize {
        self.weights.nrows()
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.weights.ncols()
    }

    /// The scores of samples from their kernel values with the training samples, a row per sample.
    ///
    /// # Errors
    /// For rows of another length, and numbers that are not finite.
    pub fn scores(&self, kernel_rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let what = "the number of training samples (columns of the kernel matrix)";
        check_size(what, self.n_samples(), kernel_rows.ncols())?;
        check_finite("the kernel rows", kernel_rows)?;
        Ok(matmul(kernel_rows, self.weights.view()) + &self.bias)
    }

    /// The scores of queries, given with the training samples. With features no kernel row is formed.
    ///
    /// # Errors
    /// For samples of another number, kind or width, and numbers that are not finite.
    pub fn scores_of(&self, training: &DualRows<'_>, queries: &DualRows<'_>) -> Result<Array2<f64>> {
        check_size("the number of training samples", self.n_samples(), training.n_samples())?;
        training.check_queries(queries)?;
        let latent = match queries {
            DualRows::Gram(_) => queries.forward(self.weights.view()),
            _ => queries.forward(training.backward(self.weights.view()).view()),
        };
        Ok(latent + &self.bias)
    }

    /// `ΦᵀW` from the features of the training samples: the score of a new sample is `φ(x)·ΦᵀW + b`.
    ///
    /// # Errors
    /// For another number of samples, and numbers that are not finite.
    pub fn primal(&self, features: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_size("the number of training samples", self.n_samples(), features.nrows())?;
        check_finite("the features", features)?;
        Ok(DualRows::Features(features).backward(self.weights.view()))
    }

    /// The shares `A_i` of the training samples in one score of a sample with this kernel row. They sum to the score.
    ///
    /// # Errors
    /// For a row of another length, and an output that does not exist.
    pub fn attribute(&self, kernel_row: &[f64], class: usize) -> Result<Vec<f64>> {
        let what = "the number of training samples (columns of the kernel matrix)";
        check_size(what, self.n_samples(), kernel_row.len())?;
        check_class(class, self.n_outputs())?;
        let share = self.bias[class] / self.n_samples() as f64;
        Ok(self.weights.column(class).iter().zip(kernel_row).map(|(w, k)| w * k + share).collect())
    }

    /// The same machine as a classifier on kernel rows, which can be saved. There is an output per class with samples.
    ///
    /// # Errors
    /// For classes of another number.
    pub fn into_classifier(self, classes: ClassSet, link: ScoreLink) -> Result<LinearClassifier> {
        check_size("the number of outputs", classes.present().len(), self.n_outputs())?;
        let mut repairs = self.repairs;
        repairs.extend(classes.repairs());
        let scores = Linear { basis: SampleKind::Gram, weights: self.weights, bias: self.bias, repairs };
        Ok(LinearClassifier { scores, classes, link, solved: self.solved })
    }

    /// The total share of every training sample in the scores of several samples: the sum of [`attribute`] over rows.
    ///
    /// [`attribute`]: Self::attribute
    ///
    /// # Errors
    /// As [`attribute`](Self::attribute).
    pub fn attribute_all(&self, kernel_rows: ArrayView2<'_, f64>, class: usize) -> Result<Array1<f64>> {
        let what = "the number of training samples (columns of the kernel matrix)";
        check_size(what, self.n_samples(), kernel_rows.ncols())?;
        check_class(class, self.n_outputs())?;
        let share = kernel_rows.nrows() as f64 * self.bias[class] / self.n_samples() as f64;
        Ok(kernel_rows.sum_axis(Axis(0)) * self.weights.column(class) + share)
    }
}

/// Returns an error unless the output exists.
pub(super) fn check_class(class: usize, n_outputs: usize) -> Result<()> {
    if class < n_outputs {
        return Ok(());
    }
    Err(crate::error::setting("the class", class, "there are fewer outputs"))
}
