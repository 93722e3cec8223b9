//! The settings of a surrogate.

use crate::Error;
use mercer_learn::surrogate::PenaltyNorm;
use serde::{Deserialize, Serialize};

/// A machine that can stand in for a network, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SurrogateMachine {
    /// Multinomial logistic regression.
    #[default]
    Glm,
    /// One class against the others by stochastic gradient descent, as in the report.
    Sgd,
    /// Kernel ridge regression.
    Ridge,
    /// Votes of the samples with the largest kernel values.
    Neighbours,
}

mercer_run::named! {
    SurrogateMachine, "surrogate":
    Glm = "glm", "Multinomial logistic regression";
    Sgd = "sgd", "One-vs-rest logistic regression by stochastic gradient descent, as in the report";
    Ridge = "ridge", "Kernel ridge regression, in closed form";
    Neighbours = "neighbours", "Votes of the samples with the largest kernel values; sparse";
}

/// What a surrogate is fitted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FitTo {
    /// The labels of the training samples, as in the report.
    #[default]
    Labels,
    /// The network's own outputs on the training samples.
    Network,
}

mercer_run::named! {
    FitTo, "target":
    Labels = "labels", "The labels of the training samples";
    Network = "network", "The network's own outputs on the training samples";
}

/// A machine with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SurrogateSpec {
    /// The machine.
    pub machine: SurrogateMachine,
    /// What it is fitted to.
    pub to: FitTo,
    /// The norm that the penalty of `glm` is of.
    pub norm: PenaltyNorm,
    /// The penalties to choose from; by default those of the machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalty: Vec<f64>,
    /// The folds of cross-validation.
    pub folds: usize,
    /// The number of votes of `neighbours`.
    pub neighbours: usize,
}

impl Default for SurrogateSpec {
    fn default() -> Self {
        let (machine, to, norm) = (SurrogateMachine::default(), FitTo::default(), PenaltyNorm::Weights);
        Self { machine, to, norm, penalty: Vec::new(), folds: 5, neighbours: 5 }
    }
}

impl SurrogateSpec {
    /// The penalties to choose from. By default they are relative to the mean of `κ(x, x)`, so that a multiple of a
    /// kernel gives the same machine; the norm of the weights goes with its square.
    pub(crate) fn penalties(&self, diagonal: f64) -> Vec<f64> {
        if !self.penalty.is_empty() {
            return self.penalty.clone();
        }
        let scale = if diagonal > 0.0 && diagonal.is_finite() { diagonal } else { 1.0 };
        let times = |scale: f64, powers: std::ops::RangeInclusive<i32>| {
            powers.map(|power| scale * 10_f64.powi(power)).collect::<Vec<f64>>()
        };
        match (self.machine, self.penalty_norm()) {
            (SurrogateMachine::Glm, PenaltyNorm::Weights) => times(scale * scale, -3..=3),
            (SurrogateMachine::Glm, PenaltyNorm::Function) => times(scale, -4..=2),
            (SurrogateMachine::Ridge, _) => times(scale, -6..=2),
            // The report's.
            (SurrogateMachine::Sgd, _) => vec![1e-4],
            (SurrogateMachine::Neighbours, _) => Vec::new(),
        }
    }

    /// The norm that the penalty of the machine is of.
    pub(crate) fn penalty_norm(&self) -> PenaltyNorm {
        match self.machine {
            SurrogateMachine::Glm => self.norm,
            SurrogateMachine::Sgd => PenaltyNorm::Weights,
            SurrogateMachine::Ridge | SurrogateMachine::Neighbours => PenaltyNorm::Function,
        }
    }

    /// Rejects settings that no machine takes.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(penalty) = self.penalty.iter().find(|penalty| !(penalty.is_finite() && **penalty > 0.0)) {
            return Err(Error::new(format!("‹penalty› {penalty}: must be a positive number")));
        }
        if self.machine == SurrogateMachine::Neighbours && !self.penalty.is_empty() {
            return Err(Error::new("‹penalty›: neighbours have no penalty"));
        }
        if self.neighbours == 0 {
            return Err(Error::new("‹neighbours› 0: must be at least one"));
        }
        if self.folds < 2 {
            return Err(Error::new(format!("‹folds› {}: must be at least two", self.folds)));
        }
        Ok(())
    }
}
