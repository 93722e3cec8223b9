//! Residual networks for small images (He et al., arXiv 1512.03385, section 4.2).
//!
//! `n = 6k + 2` layers: a 3×3 convolution, then three stages of `k` blocks with 16, 32 and 64 channels, each block two
//! 3×3 convolutions, then the mean of each channel and a dense layer. The first block of stages two and three halves
//! the image by a stride of two; shortcuts are the paper's option A, without parameters: every second pixel, and zeros
//! for the new channels, half of them before the old ones and half after.
//!
//! We deviate from the paper: samples must not mix, so there is no batch normalisation. Instead there is a choice of
//!
//! - `affine`: a scale and a shift per channel after each convolution, which is what batch normalisation is at
//!   inference. The second scale of each block begins at `1/√(number of blocks)`, so that the signal does not grow with
//!   depth (De and Smith, arXiv 2002.10444, section 4), all others at 1, shifts at 0;
//! - `none`: biases only, and the weights of the second convolution are drawn smaller by the same factor.

use super::assemble::{Assembly, Sizes};
use super::initialise::{Draw, Initialisation, Scheme};
use super::{Activation, assemble::positive};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::graph::ValueId;
use crate::network::Network;
use crate::op::{Binary, Combine, Margin, Pad, Reduce, Reduction, Slice};
use serde::{Deserialize, Serialize};

/// A ResNet-n for small images.
///
/// ```
/// let network = mercer_net::arch::Resnet::new(20, 10).build(0)?;
/// assert_eq!(network.inputs()[0].declared_sample()?, [3, 32, 32]);
/// assert_eq!(network.n_params(), 269_722);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resnet {
    /// The number of layers, `6k + 2`.
    pub depth: usize,
    /// The number of outputs.
    pub outputs: usize,
    /// The shape of a sample: `[channels, height, width]`, CIFAR's by default.
    #[serde(default = "cifar")]
    pub inputs: Vec<usize>,
    /// The number of channels of the first stage.
    #[serde(default = "sixteen")]
    pub width: usize,
    /// The replacement for batch normalisation.
    #[serde(default)]
    pub normalisation: Normalisation,
    /// The activation.
    #[serde(default)]
    pub activation: Activation,
    /// The initial weights; `ntk` is not offered.
    #[serde(default = "he")]
    pub initialisation: Initialisation,
}

/// The replacement for batch normalisation in a [`Resnet`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalisation {
    /// A scale and a shift per channel.
    #[default]
    Affine,
    /// Nothing: the convolutions have biases.
    None,
}

fn cifar() -> Vec<usize> {
    vec![3, 32, 32]
}

fn sixteen() -> usize {
    16
}

fn he() -> Initialisation {
    Initialisation::He
}

impl Resnet {
    /// A network for CIFAR with scales and shifts, ReLU and He's initialisation.
    pub fn new(depth: usize, n_outputs: usize) -> Self {
        Self {
            depth,
            outputs: n_outputs,
            inputs: cifar(),
            width: sixteen(),
            normalisation: Normalisation::default(),
            activation: Activation::default(),
            initialisation: he(),
        }
    }

    /// The network with its initial weights.
    pub fn build(&self, seed: u64) -> Result<Network> {
        self.within(seed, Budget::unlimited())
    }

    pub(super) fn within(&self, seed: u64, budget: Budget) -> Result<Network> {
        if self.depth < 8 || !(self.depth - 2).is_multiple_of(6) {
            let text = format!("depth = {}; accepted: 6k + 2, that is 8, 14, 20, 26, 32, 38, 44, …", self.depth);
            return Err(NetError::Setting(text));
        }
        if self.inputs.len() != 3 {
            let text = format!("inputs = {:?}; accepted: [channels, height, width]", self.inputs);
            return Err(NetError::Setting(text));
        }
        if self.initialisation == Initialisation::Ntk {
            let text = "initialisation = \"ntk\"; accepted for a resnet: standard, he, lecun";
            return Err(NetError::Setting(text.into()));
        }
        positive("resnet", "outputs", self.outputs)?;
        positive("resnet", "width", self.width)?;
        let per_stage = (self.depth - 2) / 6;
        let bias = self.normalisation == Normalisation::None;
        let mut net = Assembly::new(Scheme::new(self.initialisation, None, None)?, bias, seed, budget);
        // Every residual branch begins with this factor, so that the variances of all branches add up to that of the
        // signal.
        let damping = (3.0 * per_stage as f64).sqrt().recip();
        let x = net.input(&self.inputs)?;
        let x = self.conv(&mut net, "stem", x, self.width, 1, 1.0)?;
        let mut x = net.activate("stem", x, self.activation)?;
        for stage in 0..3 {
            let channels = self.width << stage;
            for block in 0..per_stage {
                let name = format!("stage{}.block{}", stage + 1, block + 1);
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let inner = self.conv(&mut net, &format!("{name}.conv1"), x, channels, stride, 1.0)?;
                let inner = net.activate(&format!("{name}.conv1"), inner, self.activation)?;
                let inner = self.conv(&mut net, &format!("{name}.conv2"), inner, channels, 1, damping)?;
                let around = shortcut(&mut net, &name, x, channels, stride)?;
                let sum = net.builder.node(&format!("{name}/sum"), Binary(Combine::Add), &[inner, around])?;
                x = net.activate(&name, sum, self.activation)?;
            }
        }
        let mean = Reduce { kind: Reduction::Mean, axes: vec![2, 3], keep: false };
        let x = net.builder.node("pool", mean, &[x])?;
        net.bias = true;
        let y = net.dense("head", x, self.outputs)?;
        net.finish(y)
    }

    /// A 3×3 convolution with its replacement for normalisation; `factor` scales it down.
    fn conv(
        &self,
        net: &mut Assembly,
        name: &str,
        x: ValueId,
        channels: usize,
        stride: usize,
        factor: f64,
    ) -> Result<ValueId> {
        let sizes = Sizes { channels, kernel: 3, stride, padding: 1 };
        let draw = self.initialisation.weight(net.builder.shape(x)[1] * 9);
        if self.normalisation == Normalisation::None {
            let draw = match draw {
                Draw::Uniform(bound) => Draw::Uniform(bound * factor),
                Draw::Normal(deviation) => Draw::Normal(deviation * factor),
                constant => constant,
            };
            return net.conv_drawn(name, x, sizes, draw);
        }
        let y = net.conv_drawn(name, x, sizes, draw)?;
        let scale = net.parameter(&format!("{name}.scale"), &[channels, 1, 1], Draw::Constant(factor))?;
        let shift = net.parameter(&format!("{name}.shift"), &[channels, 1, 1], Draw::Constant(0.0))?;
        let y = net.builder.node(&format!("{name}/scale"), Binary(Combine::Mul), &[y, scale])?;
        net.builder.node(&format!("{name}/shift"), Binary(Combine::Add), &[y, shift])
    }
}

/// Option A: every second pixel, and zeros for the new channels.
fn shortcut(net: &mut Assembly, name: &str, x: ValueId, channels: usize, stride: usize) -> Result<ValueId> {
    let shape = net.builder.shape(x).to_vec();
    let mut x = x;
    if stride > 1 {
        let sizes = vec![1, shape[1], shape[2].div_ceil(stride), shape[3].div_ceil(stride)];
        let slice = Slice { starts: vec![0; 4], steps: vec![1, 1, stride as isize, stride as isize], sizes };
        x = net.builder.node(&format!("{name}/subsample"), slice, &[x])?;
    }
    let missing = channels - shape[1];
    if missing > 0 {
        let before = vec![0, missing / 2, 0, 0];
        let after = vec![0, missing - missing / 2, 0, 0];
        x = net.builder.node(&format!("{name}/pad"), Pad { before, after, mode: Margin::Constant(0.0) }, &[x])?;
    }
    Ok(x)
}
