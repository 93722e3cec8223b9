//! The distribution of a network's weights, and the parametrisation of its gradients.

use crate::error::{KernelError, Result};
use crate::infinite::net::Scales;
use mercer_net::arch::Initialisation;
use serde::{Deserialize, Serialize};

/// How a graph becomes a network of infinite width. The values of its weights do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The variances of weights and biases.
    pub variances: Variances,
    /// The parametrisation, which affects only the NTK.
    pub parametrisation: Parametrisation,
}

/// The variances of weights and biases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variances {
    /// The variances of an initialisation, multiplied by the scales of the graph.
    Initialisation(Initialisation),
    /// `σ_w` and `σ_b` of every layer that has them, regardless of the graph's scales: a weight has variance
    /// `σ_w²/fan_in`.
    Deviations {
        /// `σ_w`.
        weight: f64,
        /// `σ_b`, of layers that have biases.
        bias: f64,
    },
}

/// The parametrisation in which gradients are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parametrisation {
    /// The parametrisation of the graph: `y = c (W x) + c_b b` with its own scales, `Θ' = c² fan_in K + c_b² + σ_w² Θ`.
    /// A graph without scales is in standard parametrisation, with its own widths.
    #[default]
    AsWritten,
    /// `y = (σ_w/√fan_in) W x + σ_b b` with standard normal `W`, `b`.
    Ntk,
    /// `y = W x + b` with the fan-in of the graph's layers.
    Standard,
}

mercer_run::named! {
    Parametrisation, "parametrisation":
    AsWritten = "as-written", "The parameters that the network has";
    Ntk = "ntk", "σ_w/√fan-in · W x + σ_b b with weights of variance 1";
    Standard = "standard", "W x + b with the fan-in that the network has";
}

impl Rule {
    /// An initialisation, in the parametrisation of the graph.
    pub fn initialisation(initialisation: Initialisation) -> Self {
        Self { variances: Variances::Initialisation(initialisation), parametrisation: Parametrisation::AsWritten }
    }

    /// The NTK parametrisation with these deviations.
    pub fn ntk(weight_std: f64, bias_std: f64) -> Self {
        let variances = Variances::Deviations { weight: weight_std, bias: bias_std };
        Self { variances, parametrisation: Parametrisation::Ntk }
    }

    /// The standard parametrisation with these deviations.
    pub fn standard(weight_std: f64, bias_std: f64) -> Self {
        Self { parametrisation: Parametrisation::Standard, ..Self::ntk(weight_std, bias_std) }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Variances::Deviations { weight, bias } = self.variances
            && !(weight > 0.0 && weight.is_finite() && bias >= 0.0 && bias.is_finite())
        {
            let text =
                format!("weight deviation {weight} and bias deviation {bias}; accepted: above 0, and at least 0");
            return Err(KernelError::Setting(text));
        }
        Ok(())
    }

    /// The variances of a weight and of a bias of a layer without scales.
    pub(crate) fn drawn(&self, fan_in: usize) -> [f64; 2] {
        let n = fan_in.max(1) as f64;
        match self.variances {
            Variances::Initialisation(Initialisation::Standard) => [1.0 / (3.0 * n), 1.0 / (3.0 * n)],
            Variances::Initialisation(Initialisation::He) => [2.0 / n, 0.0],
            Variances::Initialisation(Initialisation::LeCun) => [1.0 / n, 0.0],
            Variances::Initialisation(Initialisation::Normal) => [1.0, 0.0],
            Variances::Initialisation(Initialisation::Ntk) => [1.0, 1.0],
            Variances::Deviations { weight, bias } => [weight * weight / n, bias * bias],
        }
    }

    /// A weight that has not been scaled yet.
    pub(super) fn weight(&self, fan_in: usize) -> Scales {
        let n = fan_in.max(1) as f64;
        Scales { weight: self.drawn(fan_in)[0] * n, bias: 0.0, weight_rate: n, bias_rate: 0.0, mixes: true }
    }

    /// A bias, times a factor, added to the result of a layer with this fan-in.
    pub(super) fn bias(&self, fan_in: usize, factor: f64) -> Scales {
        let bias = match self.variances {
            Variances::Initialisation(_) => factor * factor * self.drawn(fan_in)[1],
            Variances::Deviations { bias, .. } => bias * bias,
        };
        let bias_rate = match self.parametrisation {
            Parametrisation::AsWritten => factor * factor,
            Parametrisation::Ntk => bias,
            Parametrisation::Standard => 1.0,
        };
        Scales { weight: 1.0, bias, weight_rate: 0.0, bias_rate, mixes: false }
    }

    /// The limit of a layer of the graph, once all scales around it are known.
    pub(super) fn settle(&self, scales: &mut Scales, fan_in: usize) {
        let has_bias = scales.bias_rate > 0.0;
        if let Variances::Deviations { weight, bias } = self.variances {
            scales.weight = weight * weight;
            scales.bias = if has_bias { bias * bias } else { 0.0 };
        }
        match self.parametrisation {
            Parametrisation::AsWritten => {}
            Parametrisation::Ntk => (scales.weight_rate, scales.bias_rate) = (scales.weight, scales.bias),
            Parametrisation::Standard => {
                (scales.weight_rate, scales.bias_rate) = (fan_in as f64, f64::from(u8::from(has_bias)));
            }
        }
    }
}
