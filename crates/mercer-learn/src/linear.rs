//! The result of most fits: scores that are linear in a sample's row.
//!
//! ```text
//! s(x) = r(x)·W + b,     r(x) = (κ(x, x₁), …, κ(x, x_N)) or φ(x)
//! ```
//!
//! With kernel rows this is the form of the representer theorem, with features the primal form. Ridge, filters, least
//! squares, generalised linear models and support vector machines differ only in how they find `W` and `b`.

use crate::classes::ClassSet;
use crate::error::{LearnError, Result};
use crate::repair::Repair;
use crate::samples::{SampleKind, SampleRows};
use crate::softmax::softmax;
use crate::traits::{Classify, Predict};
use mercer_linalg::matmul;
use ndarray::{Array1, Array2, ArrayViewD, aview0};
use serde::{Deserialize, Serialize};

/// `s(x) = r(x)·W + b`.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    pub(crate) basis: SampleKind,
    pub(crate) weights: Array2<f64>,
    pub(crate) bias: Array1<f64>,
    pub(crate) repairs: Vec<Repair>,
}

impl Linear {
    /// A row per training sample or feature, a column per output.
    pub fn weights(&self) -> &Array2<f64> {
        &self.weights
    }

    /// A number per output.
    pub fn bias(&self) -> &Array1<f64> {
        &self.bias
    }

    /// What it was fitted on.
    pub fn basis(&self) -> SampleKind {
        self.basis
    }
}

impl Predict for Linear {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        samples.check_for_predict(self.basis, self.weights.nrows())?;
        Ok(matmul(samples.rows(), self.weights.view()) + &self.bias)
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        vec![("weights", self.weights.view().into_dyn()), ("biases", self.bias.view().into_dyn())]
    }

    fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}

/// The meaning of a classifier's scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreLink {
    /// Unnormalised log-probabilities: softmax.
    Softmax,
    /// Log-odds of each class against the others: normalised sigmoids.
    OneVsRest,
    /// Signed distances from boundaries, which are not probabilities.
    Margin,
}

/// Scores of classes that are linear in a sample's row.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearClassifier {
    pub(crate) scores: Linear,
    pub(crate) classes: ClassSet,
    pub(crate) link: ScoreLink,
    /// How the solver ended.
    pub(crate) solved: Solved,
}

/// How a solver ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Solved {
    /// Its iterations, passes or steps.
    pub iterations: usize,
    /// The final objective, in the convention of the machine's settings.
    pub objective: f64,
    /// Whether it converged; if not, the machine is the best one found.
    pub converged: bool,
    /// The training samples that a support vector machine depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support_vectors: Option<usize>,
}

impl LinearClassifier {
    /// The scores as a regression machine.
    pub fn scores(&self) -> &Linear {
        &self.scores
    }

    /// How the solver ended.
    pub fn solved(&self) -> Solved {
        self.solved
    }

    /// What the scores mean.
    pub fn link(&self) -> ScoreLink {
        self.link
    }

    /// The same machine with its scores read as log-probabilities: softmax instead of normalised sigmoids. Margins stay
    /// margins.
    pub fn with_softmax(self) -> Self {
        let link = if self.link == ScoreLink::Margin { ScoreLink::Margin } else { ScoreLink::Softmax };
        Self { link, ..self }
    }
}

impl Predict for LinearClassifier {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        self.scores.predict(samples)
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        let mut numbers = self.scores.numbers();
        numbers.push(("objective", aview0(&self.solved.objective).into_dyn()));
        numbers
    }

    fn repairs(&self) -> &[Repair] {
        &self.scores.repairs
    }
}

impl Classify for LinearClassifier {
    fn classes(&self) -> &ClassSet {
        &self.classes
    }

    fn probabilities(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        let scores = self.predict(samples)?;
        let present = match self.link {
            ScoreLink::Softmax => softmax(scores.view()),
            ScoreLink::OneVsRest => one_vs_rest(scores),
            ScoreLink::Margin => {
                let reason = "the machine gives margins, not probabilities; use its scores, or a logistic machine";
                return Err(LearnError::Undefined { metric: "the probability of a class", reason });
            }
        };
        Ok(self.classes.spread(present))
    }
}

/// Normalised sigmoids; equal probabilities where all vanish.
fn one_vs_rest(mut scores: Array2<f64>) -> Array2<f64> {
    for mut row in scores.outer_iter_mut() {
        row.mapv_inplace(|score| 1.0 / (1.0 + (-score).exp()));
        let sum = row.sum();
        let share = 1.0 / row.len() as f64;
        row.mapv_inplace(|p| if sum > 0.0 { p / sum } else { share });
    }
    scores
}
