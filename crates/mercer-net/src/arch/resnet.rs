//! Residual networks for small images (He et al., arXiv 1512.03385, section 4.2).
//!
//! `n = 6k + 2` layers: a 3×3 convolution, then three stages of `k` blocks with 16, 32 and 64 channels, each block two
//! 3×3 convolutions, then the mean of each channel and a dense layer. The first block of stages two and three halves
//! the image by a stride of two; shortcuts are the paper's option A, without parameters: every second pixel, and zeros
//! for the new channels, half of them before the old ones and half after.
//!
//! Batch normalisation is a choice (`normalisation = "batch"`). By default there is a scale and a shift per channel,
//! which is what batch normalisation is at inference, so that samples do not meet in training; see [`Residual`], of
//! which these are special cases.

use super::initialise::Initialisation;
use super::{Residual, ScaledActivation, Shortcut};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::network::Network;
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
    /// The normalisation.
    #[serde(default)]
    pub normalisation: Normalisation,
    /// The activation.
    #[serde(default)]
    pub activation: ScaledActivation,
    /// The initial weights; `ntk` is not offered.
    #[serde(default = "he")]
    pub initialisation: Initialisation,
}

/// What normalises the convolutions of a residual network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalisation {
    /// A scale and a shift per channel.
    #[default]
    Affine,
    /// Nothing: the convolutions have biases.
    None,
    /// Batch normalisation.
    Batch,
}

pub(super) fn cifar() -> Vec<usize> {
    vec![3, 32, 32]
}

fn sixteen() -> usize {
    16
}

pub(super) fn he() -> Initialisation {
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
            activation: ScaledActivation::default(),
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
        let residual = Residual {
            inputs: self.inputs.clone(),
            width: self.width,
            shortcut: Shortcut::Padding,
            normalisation: self.normalisation,
            activation: self.activation,
            initialisation: self.initialisation,
            ..Residual::new(&[(self.depth - 2) / 6; 3], self.outputs)
        };
        residual.within(seed, budget)
    }
}
