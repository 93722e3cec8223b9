//! Fully connected networks.

use super::assemble::{Assembly, positive};
use super::initialise::Scheme;
use super::{Initialisation, ScaledActivation, WeightLaw};
use crate::budget::Budget;
use crate::error::Result;
use crate::network::Network;
use serde::{Deserialize, Serialize};

/// A fully connected network: layers of these widths, an activation after each, and a linear layer for the outputs.
///
/// ```
/// use mercer_net::arch::{Activation, Initialisation, Mlp};
///
/// let network = Mlp::new(784, &[256, 256], 10)
///     .activation(Activation::SinCos)
///     .initialisation(Initialisation::Ntk)
///     .bias(false)
///     .build(0)?;
/// assert_eq!(network.n_params(), 784 * 256 + 256 * 256 + 256 * 10);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mlp {
    /// The shape of a sample; images are flattened.
    pub inputs: Vec<usize>,
    /// The widths of the hidden layers.
    #[serde(default)]
    pub widths: Vec<usize>,
    /// The number of outputs.
    pub outputs: usize,
    /// The activation after each hidden layer.
    #[serde(default)]
    pub activation: ScaledActivation,
    /// The initial weights.
    #[serde(default)]
    pub initialisation: Initialisation,
    /// The law of the weights.
    #[serde(default, skip_serializing_if = "WeightLaw::is_normal")]
    pub law: WeightLaw,
    /// Whether layers have biases.
    #[serde(default = "super::yes")]
    pub bias: bool,
    /// Whether there is batch normalisation between each hidden layer and its activation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch_norm: bool,
    /// `σ_w` of the `ntk` initialisation, 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_std: Option<f64>,
    /// `σ_b` of the `ntk` initialisation, 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_std: Option<f64>,
}

impl Mlp {
    /// A network with ReLU, biases and the standard initialisation.
    pub fn new(n_inputs: usize, widths: &[usize], n_outputs: usize) -> Self {
        Self {
            inputs: vec![n_inputs],
            widths: widths.to_vec(),
            outputs: n_outputs,
            activation: ScaledActivation::default(),
            initialisation: Initialisation::default(),
            law: WeightLaw::default(),
            bias: true,
            batch_norm: false,
            weight_std: None,
            bias_std: None,
        }
    }

    /// The same with another activation.
    pub fn activation(self, activation: impl Into<ScaledActivation>) -> Self {
        Self { activation: activation.into(), ..self }
    }

    /// The same with another initialisation.
    pub fn initialisation(self, initialisation: Initialisation) -> Self {
        Self { initialisation, ..self }
    }

    /// The same with weights of another law.
    pub fn law(self, law: WeightLaw) -> Self {
        Self { law, ..self }
    }

    /// The same with or without biases.
    pub fn bias(self, bias: bool) -> Self {
        Self { bias, ..self }
    }

    /// The same with or without batch normalisation.
    pub fn batch_norm(self, batch_norm: bool) -> Self {
        Self { batch_norm, ..self }
    }

    /// The network with its initial weights.
    pub fn build(&self, seed: u64) -> Result<Network> {
        self.within(seed, Budget::unlimited())
    }

    pub(super) fn within(&self, seed: u64, budget: Budget) -> Result<Network> {
        let scheme = Scheme::new(self.initialisation, self.law, self.weight_std, self.bias_std)?;
        positive("mlp", "outputs", self.outputs)?;
        let mut net = Assembly::new(scheme, self.bias, seed, budget);
        let x = net.input(&self.inputs)?;
        let mut x = net.flatten(x)?;
        for (index, &width) in self.widths.iter().enumerate() {
            let name = format!("layer{}", index + 1);
            x = net.dense(&name, x, width)?;
            if self.batch_norm {
                x = net.batch_norm(&format!("{name}.norm"), x)?;
            }
            x = net.activate(&name, x, self.activation)?;
        }
        let y = net.dense("output", x, self.outputs)?;
        net.finish(y)
    }
}

/// The two-layer network in the NTK parametrisation of the spectral experiments of the PNNL report (section 5, eq. 79):
/// `f(x) = 1/√h Σᵢ vᵢ σ(wᵢ·x/√d)`, all weights standard normal, no biases.
///
/// ```
/// let network = mercer_net::arch::TwoLayer::new(100, 500).build(0)?;
/// assert_eq!(network.n_params(), 100 * 500 + 500);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoLayer {
    /// The number of inputs `d`.
    pub inputs: usize,
    /// The number of hidden units `h`.
    pub width: usize,
    /// The number of outputs; the report has one.
    #[serde(default = "one")]
    pub outputs: usize,
    /// The activation `σ`.
    #[serde(default)]
    pub activation: ScaledActivation,
    /// The law of the hidden weights `w`; those of the outputs, `v`, are normal.
    #[serde(default, skip_serializing_if = "WeightLaw::is_normal")]
    pub law: WeightLaw,
}

fn one() -> usize {
    1
}

impl TwoLayer {
    /// A network with one output and ReLU.
    pub fn new(n_inputs: usize, width: usize) -> Self {
        Self { inputs: n_inputs, width, outputs: 1, activation: ScaledActivation::default(), law: WeightLaw::default() }
    }

    /// The same with another activation.
    pub fn activation(self, activation: impl Into<ScaledActivation>) -> Self {
        Self { activation: activation.into(), ..self }
    }

    /// The network with its initial weights.
    pub fn build(&self, seed: u64) -> Result<Network> {
        self.within(seed, Budget::unlimited())
    }

    pub(super) fn within(&self, seed: u64, budget: Budget) -> Result<Network> {
        let scheme = Scheme::new(Initialisation::Ntk, self.law, None, None)?;
        positive("two-layer", "width", self.width)?;
        positive("two-layer", "outputs", self.outputs)?;
        let mut net = Assembly::new(scheme, false, seed, budget);
        let x = net.input(&[self.inputs])?;
        let x = net.dense("layer1", x, self.width)?;
        let x = net.activate("layer1", x, self.activation)?;
        net.scheme.law = WeightLaw::Normal;
        let y = net.dense("output", x, self.outputs)?;
        net.finish(y)
    }
}
