//! How the weights of infinitely wide and of random networks are distributed.

use super::kind::KernelKind;
use crate::Error;
use mercer_kernel::infinite::{Parametrisation, Rule, Variances};
use mercer_net::arch::Initialisation;
use serde::{Deserialize, Serialize};

/// Random networks over which to average, if nothing is said.
const DEFAULT_SAMPLES: usize = 100;

/// The distribution of weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomSpec {
    /// Average over so many random networks; 100 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Variances of weights and biases by this rule; that of the description, or the standard one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialisation: Option<Initialisation>,
    /// Weights of variance σ²/fan-in in every layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_std: Option<f64>,
    /// Biases of variance σ² in every layer that has them; 0 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias_std: Option<f64>,
    /// Which parameters gradients are taken in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parametrisation: Option<Parametrisation>,
}

impl RandomSpec {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rule that this and the source say.
    pub fn rule(&self, own: Initialisation) -> Rule {
        let (variances, usual) = match self.weight_std {
            Some(weight) => {
                let bias = self.bias_std.unwrap_or(0.0);
                (Variances::Deviations { weight, bias }, Parametrisation::Ntk)
            }
            None => (Variances::Initialisation(self.initialisation.unwrap_or(own)), Parametrisation::AsWritten),
        };
        Rule { variances, parametrisation: self.parametrisation.unwrap_or(usual) }
    }

    /// Random networks to average over.
    pub fn samples(&self) -> usize {
        self.samples.unwrap_or(DEFAULT_SAMPLES)
    }

    /// Settings that mean nothing for a kind are refused instead of ignored.
    pub fn check(&self, kind: KernelKind) -> Result<(), Error> {
        let flags = [
            ("‹initialisation›", self.initialisation.is_some()),
            ("‹weight-std›", self.weight_std.is_some()),
            ("‹parametrisation›", self.parametrisation.is_some()),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && !kind.draws_weights()) {
            return Err(Error::new(format!("{flag}: ‹kind› {kind} is of the weights that the network has"))
                .hint("‹kind› nngp, ntk-limit, nngp-mc or ntk-mc"));
        }
        if self.samples.is_some() && !matches!(kind, KernelKind::MonteCarlo(_)) {
            return Err(Error::new(format!("‹samples›: ‹kind› {kind} is no average over random networks"))
                .hint("‹kind› nngp-mc or ntk-mc"));
        }
        Ok(())
    }
}
