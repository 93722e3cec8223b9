//! Convolutional networks, layer by layer.

use super::assemble::{Assembly, Sizes, positive};
use super::initialise::Scheme;
use super::{Initialisation, ScaledActivation, WeightLaw};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::graph::ValueId;
use crate::network::Network;
use crate::op::{Pool, Pooling, Reduce, Reduction, Window};
use serde::{Deserialize, Serialize};

/// A convolutional network: a list of layers, then a linear layer for the outputs. The input of a dense layer is
/// flattened.
///
/// ```
/// use mercer_net::arch::{Cnn, CnnLayer};
///
/// let layers = [CnnLayer::conv(16, 3), CnnLayer::max_pool(2), CnnLayer::conv(32, 3), CnnLayer::max_pool(2), CnnLayer::dense(64)];
/// let network = Cnn::new(&[1, 8, 8], &layers, 10).build(0)?;
/// assert_eq!(network.inputs()[0].declared_sample()?, [1, 8, 8]);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cnn {
    /// The shape of a sample: `[channels, height, width]`.
    pub inputs: Vec<usize>,
    /// The layers.
    pub layers: Vec<CnnLayer>,
    /// The number of outputs.
    pub outputs: usize,
    /// The activation after convolutions and dense layers.
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
    /// Whether there is batch normalisation between each convolution or dense layer and its activation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch_norm: bool,
    /// `σ_w` of the `ntk` initialisation, 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_std: Option<f64>,
    /// `σ_b` of the `ntk` initialisation, 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_std: Option<f64>,
}

/// A layer of a [`Cnn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CnnLayer {
    /// A convolution with a square kernel, and the activation.
    Conv {
        /// The number of output channels.
        channels: usize,
        /// The kernel's size.
        kernel: usize,
        /// The stride of the window.
        #[serde(default = "one")]
        stride: usize,
        /// Zeros around the image; by default `(kernel − 1) / 2`, which keeps the size at stride one.
        #[serde(default)]
        padding: Option<usize>,
    },
    /// The largest number in each window.
    MaxPool {
        /// The window's size.
        size: usize,
        /// The stride of the window; its size by default.
        #[serde(default)]
        stride: Option<usize>,
    },
    /// The mean of each window.
    AveragePool {
        /// The window's size.
        size: usize,
        /// The stride of the window; its size by default.
        #[serde(default)]
        stride: Option<usize>,
    },
    /// The mean of each channel.
    GlobalAveragePool,
    /// A dense layer, and the activation.
    Dense {
        /// The number of units.
        width: usize,
    },
}

fn one() -> usize {
    1
}

impl CnnLayer {
    /// A convolution that keeps the size of the image.
    pub fn conv(channels: usize, kernel: usize) -> Self {
        Self::Conv { channels, kernel, stride: 1, padding: None }
    }

    /// A max pool with adjacent windows.
    pub fn max_pool(size: usize) -> Self {
        Self::MaxPool { size, stride: None }
    }

    /// An average pool with adjacent windows.
    pub fn average_pool(size: usize) -> Self {
        Self::AveragePool { size, stride: None }
    }

    /// A dense layer.
    pub fn dense(width: usize) -> Self {
        Self::Dense { width }
    }
}

impl Cnn {
    /// A network with ReLU, biases and the standard initialisation.
    pub fn new(sample: &[usize], layers: &[CnnLayer], n_outputs: usize) -> Self {
        Self {
            inputs: sample.to_vec(),
            layers: layers.to_vec(),
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
        if self.inputs.len() != 3 {
            let text = format!("inputs = {:?}; accepted: [channels, height, width]", self.inputs);
            return Err(NetError::Setting(text));
        }
        positive("cnn", "outputs", self.outputs)?;
        let scheme = Scheme::new(self.initialisation, self.law, self.weight_std, self.bias_std)?;
        let mut net = Assembly::new(scheme, self.bias, seed, budget);
        let mut x = net.input(&self.inputs)?;
        for (index, layer) in self.layers.iter().enumerate() {
            x = self.layer(&mut net, &format!("layer{}", index + 1), layer, x)?;
        }
        let flat = net.flatten(x)?;
        let y = net.dense("output", flat, self.outputs)?;
        net.finish(y)
    }

    fn layer(&self, net: &mut Assembly, name: &str, layer: &CnnLayer, x: ValueId) -> Result<ValueId> {
        let is_image = net.builder.shape(x).len() == 4;
        if !is_image && !matches!(layer, CnnLayer::Dense { .. }) {
            let text = format!("{name}: only dense layers can follow a dense layer or a global pool");
            return Err(NetError::Setting(text));
        }
        match *layer {
            CnnLayer::Conv { channels, kernel, stride, padding } => {
                let padding = padding.unwrap_or(kernel.saturating_sub(1) / 2);
                let y = net.conv(name, x, Sizes { channels, kernel, stride, padding })?;
                self.after(net, name, y)
            }
            CnnLayer::MaxPool { size, stride } => pool(net, name, Pooling::Max, size, stride, x),
            CnnLayer::AveragePool { size, stride } => {
                pool(net, name, Pooling::Average { count_padding: false }, size, stride, x)
            }
            CnnLayer::GlobalAveragePool => {
                net.builder.node(name, Reduce { kind: Reduction::Mean, axes: vec![2, 3], keep: false }, &[x])
            }
            CnnLayer::Dense { width } => {
                let flat = net.flatten(x)?;
                let y = net.dense(name, flat, width)?;
                self.after(net, name, y)
            }
        }
    }

    /// Normalisation and activation of a layer.
    fn after(&self, net: &mut Assembly, name: &str, y: ValueId) -> Result<ValueId> {
        let y = if self.batch_norm { net.batch_norm(&format!("{name}.norm"), y)? } else { y };
        net.activate(name, y, self.activation)
    }
}

fn pool(
    net: &mut Assembly,
    name: &str,
    kind: Pooling,
    size: usize,
    stride: Option<usize>,
    x: ValueId,
) -> Result<ValueId> {
    let stride = stride.unwrap_or(size);
    positive(name, "size", size)?;
    positive(name, "stride", stride)?;
    let window = Window { strides: vec![stride; 2], ..Window::plain(2) };
    net.builder.node(name, Pool { kind, kernel: vec![size; 2], window, round_up: false }, &[x])
}
