//! Residual networks of any number of stages: ResNet-18 and 34, wide residual networks, and their kind.
//!
//! A stem, then stages of blocks of two 3×3 convolutions, then the mean of each channel and a dense layer. Stage `s`
//! has `width · widen · 2ˢ` channels, and all but the first begin with a stride of two.
//!
//! | network | `blocks` | `width` | `widen` | `pre_activation` | parameters (CIFAR-10, `stem = "cifar"`) |
//! |---|---|---|---|---|---|
//! | ResNet-18 | `[2, 2, 2, 2]` | 64 | 1 | no | 11,173,962 |
//! | ResNet-34 | `[3, 4, 6, 3]` | 64 | 1 | no | 21,282,122 |
//! | WRN-16-4 | `[2, 2, 2]` | 16 | 4 | yes | 2,748,890 |
//! | WRN-28-10 | `[4, 4, 4]` | 16 | 10 | yes | 36,479,194 |
//!
//! These are trainable numbers with batch normalisation: weights, scales and shifts; running statistics do not count. A
//! WRN-d-k has `(d − 4) / 6` blocks per stage.
//!
//! - Blocks are `act(norm(conv(act(norm(conv x)))) + shortcut x)` (He et al., arXiv 1512.03385), or with pre-activation
//!   `conv(act(norm(conv a))) + shortcut` with `a = act(norm x)`, and a last norm and activation before the pool
//!   (Zagoruyko and Komodakis, arXiv 1605.07146).
//! - The stem `cifar` is a 3×3 convolution; `imagenet` is a 7×7 convolution with a stride of two and a 3×3 max pool
//!   with a stride of two.
//! - The shortcut `projection` is a 1×1 convolution wherever the shape changes, normalised like the others; with
//!   pre-activation it starts from `a` and is not normalised. `padding` has no parameters: every second pixel, and
//!   zeros for the new channels, half of them before the old ones and half after.
//!
//! What stands in place of `norm`:
//!
//! - `batch`: batch normalisation. Convolutions have no biases.
//! - `affine`: a scale and a shift per channel. Nothing is measured, so samples do not meet in training. The last scale
//!   of each block begins at `1/√(number of blocks)`, so that the signal does not grow with depth (De and Smith, arXiv
//!   2002.10444, section 4), all others at 1, shifts at 0. With pre-activation no scale comes last, and the weights of
//!   the second convolution are drawn smaller by this factor.
//! - `none`: biases only, and the weights of the second convolution are drawn smaller by the same factor.

use super::assemble::{Assembly, Sizes, positive};
use super::initialise::{Draw, Initialisation, Scheme};
use super::resnet::{cifar, he};
use super::{Normalisation, ScaledActivation, WeightLaw};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::graph::ValueId;
use crate::network::Network;
use crate::op::{Binary, Combine, Margin, Pad, Pool, Pooling, Reduce, Reduction, Slice, Window};
use serde::{Deserialize, Serialize};

/// The most stages: images are halved in each.
const MOST_STAGES: usize = 8;

/// A residual network.
///
/// ```
/// use mercer_net::arch::Residual;
///
/// assert_eq!(Residual::resnet(18, 10)?.build(0)?.n_params(), 11_173_962);
/// assert_eq!(Residual::wide(16, 4, 10)?.build(0)?.n_params(), 2_748_890);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// The shape of a sample: `[channels, height, width]`, CIFAR's by default.
    #[serde(default = "cifar")]
    pub inputs: Vec<usize>,
    /// The number of outputs.
    pub outputs: usize,
    /// The number of blocks of each stage.
    pub blocks: Vec<usize>,
    /// The number of channels of the stem.
    pub width: usize,
    /// The first stage has this many times the channels of the stem.
    #[serde(default = "one")]
    pub widen: usize,
    /// The layers before the first stage.
    #[serde(default)]
    pub stem: Stem,
    /// The way around a block whose shape changes.
    #[serde(default)]
    pub shortcut: Shortcut,
    /// Whether normalisation and activation come before each convolution.
    #[serde(default)]
    pub pre_activation: bool,
    /// The normalisation; `batch` by default.
    #[serde(default = "batch")]
    pub normalisation: Normalisation,
    /// The activation.
    #[serde(default)]
    pub activation: ScaledActivation,
    /// The initial weights; `ntk` is not offered.
    #[serde(default = "he")]
    pub initialisation: Initialisation,
    /// The law of the weights.
    #[serde(default, skip_serializing_if = "WeightLaw::is_normal")]
    pub law: WeightLaw,
}

/// The layers before the first stage of a [`Residual`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// A 3×3 convolution.
    #[default]
    Cifar,
    /// A 7×7 convolution with a stride of two, and a 3×3 max pool with a stride of two.
    ImageNet,
}

/// The way around a block whose shape changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shortcut {
    /// A 1×1 convolution.
    #[default]
    Projection,
    /// Every second pixel, and zeros for the new channels.
    Padding,
}

fn one() -> usize {
    1
}

fn batch() -> Normalisation {
    Normalisation::Batch
}

impl Residual {
    /// Blocks per stage with 64 channels, batch normalisation, ReLU and He's initialisation, for CIFAR.
    pub fn new(blocks: &[usize], n_outputs: usize) -> Self {
        Self {
            inputs: cifar(),
            outputs: n_outputs,
            blocks: blocks.to_vec(),
            width: 64,
            widen: 1,
            stem: Stem::default(),
            shortcut: Shortcut::default(),
            pre_activation: false,
            normalisation: batch(),
            activation: ScaledActivation::default(),
            initialisation: he(),
            law: WeightLaw::default(),
        }
    }

    /// ResNet-18 or ResNet-34 with the stem for CIFAR.
    ///
    /// # Errors
    /// For another depth.
    pub fn resnet(depth: usize, n_outputs: usize) -> Result<Self> {
        match depth {
            18 => Ok(Self::new(&[2, 2, 2, 2], n_outputs)),
            34 => Ok(Self::new(&[3, 4, 6, 3], n_outputs)),
            _ => Err(NetError::Setting(format!("depth = {depth}; accepted: 18, 34"))),
        }
    }

    /// The wide residual network WRN-depth-widen.
    ///
    /// # Errors
    /// For a depth that is not `6k + 4`.
    pub fn wide(depth: usize, widen: usize, n_outputs: usize) -> Result<Self> {
        if depth < 10 || !(depth - 4).is_multiple_of(6) {
            return Err(NetError::Setting(format!("depth = {depth}; accepted: 6k + 4, that is 10, 16, 22, 28, …")));
        }
        let blocks = [(depth - 4) / 6; 3];
        Ok(Self { width: 16, widen, pre_activation: true, ..Self::new(&blocks, n_outputs) })
    }

    /// The network with its initial weights.
    pub fn build(&self, seed: u64) -> Result<Network> {
        self.within(seed, Budget::unlimited())
    }

    fn check(&self) -> Result<()> {
        let refuse = |text: String| Err(NetError::Setting(text));
        if self.inputs.len() != 3 {
            return refuse(format!("inputs = {:?}; accepted: [channels, height, width]", self.inputs));
        }
        if self.blocks.is_empty() || self.blocks.len() > MOST_STAGES || self.blocks.contains(&0) {
            return refuse(format!(
                "blocks = {:?}; accepted: 1 to {MOST_STAGES} stages of at least one block",
                self.blocks
            ));
        }
        if self.initialisation == Initialisation::Ntk {
            return refuse(
                "initialisation = \"ntk\"; accepted for a resnet or residual network: standard, he, lecun, normal"
                    .into(),
            );
        }
        positive("residual", "outputs", self.outputs)?;
        positive("residual", "width", self.width)?;
        positive("residual", "widen", self.widen)
    }

    pub(super) fn within(&self, seed: u64, budget: Budget) -> Result<Network> {
        self.check()?;
        let scheme = Scheme::new(self.initialisation, self.law, None, None)?;
        let bias = self.normalisation == Normalisation::None;
        let mut net = Assembly::new(scheme, bias, seed, budget);
        let x = net.input(&self.inputs)?;
        let mut x = self.stem(&mut net, x)?;
        for (stage, &blocks) in self.blocks.iter().enumerate() {
            let channels = self.width.saturating_mul(self.widen).saturating_mul(1 << stage);
            for block in 0..blocks {
                let name = format!("stage{}.block{}", stage + 1, block + 1);
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                x = match self.pre_activation {
                    true => self.pre_activated(&mut net, &name, x, channels, stride)?,
                    false => self.post_activated(&mut net, &name, x, channels, stride)?,
                };
            }
        }
        if self.pre_activation {
            x = self.before(&mut net, "norm", x)?;
        }
        let mean = Reduce { kind: Reduction::Mean, axes: vec![2, 3], keep: false };
        let x = net.builder.node("pool", mean, &[x])?;
        net.bias = true;
        let y = net.dense("head", x, self.outputs)?;
        net.finish(y)
    }

    /// The factor with which every residual branch begins where nothing normalises it, so that the variances of all
    /// branches add up to that of the signal.
    fn damping(&self) -> f64 {
        (self.blocks.iter().sum::<usize>() as f64).sqrt().recip()
    }

    fn stem(&self, net: &mut Assembly, x: ValueId) -> Result<ValueId> {
        let (kernel, stride) = match self.stem {
            Stem::Cifar => (3, 1),
            Stem::ImageNet => (7, 2),
        };
        let sizes = Sizes { channels: self.width, kernel, stride, padding: kernel / 2 };
        let mut x = match self.pre_activation {
            true => return self.conv(net, "stem", x, sizes, 1.0).and_then(|x| self.stem_pool(net, x)),
            false => self.conv_norm(net, "stem", x, sizes, 1.0)?,
        };
        x = net.activate("stem", x, self.activation)?;
        self.stem_pool(net, x)
    }

    fn stem_pool(&self, net: &mut Assembly, x: ValueId) -> Result<ValueId> {
        if self.stem == Stem::Cifar {
            return Ok(x);
        }
        let window = Window { strides: vec![2; 2], before: vec![1; 2], after: vec![1; 2], ..Window::plain(2) };
        net.builder.node("stem/pool", Pool { kind: Pooling::Max, kernel: vec![3; 2], window, round_up: false }, &[x])
    }

    fn post_activated(
        &self,
        net: &mut Assembly,
        name: &str,
        x: ValueId,
        channels: usize,
        stride: usize,
    ) -> Result<ValueId> {
        let sizes = Sizes { channels, kernel: 3, stride, padding: 1 };
        let inner = self.conv_norm(net, &format!("{name}.conv1"), x, sizes, 1.0)?;
        let inner = net.activate(&format!("{name}.conv1"), inner, self.activation)?;
        let sizes = Sizes { stride: 1, ..sizes };
        let inner = self.conv_norm(net, &format!("{name}.conv2"), inner, sizes, self.damping())?;
        let around = match self.shortcut {
            Shortcut::Projection if self.changes(net, x, channels, stride) => {
                let sizes = Sizes { channels, kernel: 1, stride, padding: 0 };
                self.conv_norm(net, &format!("{name}.shortcut"), x, sizes, 1.0)?
            }
            Shortcut::Projection => x,
            Shortcut::Padding => padded(net, name, x, channels, stride)?,
        };
        let sum = net.builder.node(&format!("{name}/sum"), Binary(Combine::Add), &[inner, around])?;
        net.activate(name, sum, self.activation)
    }

    fn pre_activated(
        &self,
        net: &mut Assembly,
        name: &str,
        x: ValueId,
        channels: usize,
        stride: usize,
    ) -> Result<ValueId> {
        let active = self.before(net, &format!("{name}.norm1"), x)?;
        let sizes = Sizes { channels, kernel: 3, stride, padding: 1 };
        let inner = self.conv(net, &format!("{name}.conv1"), active, sizes, 1.0)?;
        let inner = self.before(net, &format!("{name}.norm2"), inner)?;
        let factor = if self.normalisation == Normalisation::Batch { 1.0 } else { self.damping() };
        let inner = self.conv(net, &format!("{name}.conv2"), inner, Sizes { stride: 1, ..sizes }, factor)?;
        let around = match self.shortcut {
            Shortcut::Projection if self.changes(net, x, channels, stride) => {
                let sizes = Sizes { channels, kernel: 1, stride, padding: 0 };
                self.conv(net, &format!("{name}.shortcut"), active, sizes, 1.0)?
            }
            Shortcut::Projection => x,
            Shortcut::Padding => padded(net, name, x, channels, stride)?,
        };
        net.builder.node(&format!("{name}/sum"), Binary(Combine::Add), &[inner, around])
    }

    fn changes(&self, net: &Assembly, x: ValueId, channels: usize, stride: usize) -> bool {
        stride > 1 || net.builder.shape(x)[1] != channels
    }

    /// Normalisation and activation before a convolution.
    fn before(&self, net: &mut Assembly, name: &str, x: ValueId) -> Result<ValueId> {
        let x = match self.normalisation {
            Normalisation::Batch => net.batch_norm(name, x)?,
            Normalisation::Affine => affine(net, name, x, 1.0)?,
            Normalisation::None => x,
        };
        net.activate(name, x, self.activation)
    }

    /// A convolution whose weights are drawn smaller by a factor.
    fn conv(&self, net: &mut Assembly, name: &str, x: ValueId, sizes: Sizes, factor: f64) -> Result<ValueId> {
        let fan_in = net.builder.shape(x)[1].saturating_mul(sizes.kernel * sizes.kernel);
        let draw = net.scheme.weight(fan_in).scaled(factor);
        net.conv_drawn(name, x, sizes, draw)
    }

    /// A convolution with what normalises it; `factor` scales it down where nothing measures it.
    fn conv_norm(&self, net: &mut Assembly, name: &str, x: ValueId, sizes: Sizes, factor: f64) -> Result<ValueId> {
        match self.normalisation {
            Normalisation::None => self.conv(net, name, x, sizes, factor),
            Normalisation::Affine => {
                let y = self.conv(net, name, x, sizes, 1.0)?;
                affine(net, name, y, factor)
            }
            Normalisation::Batch => {
                let y = self.conv(net, name, x, sizes, 1.0)?;
                net.batch_norm(&format!("{name}.norm"), y)
            }
        }
    }
}

/// A scale and a shift per channel.
fn affine(net: &mut Assembly, name: &str, x: ValueId, factor: f64) -> Result<ValueId> {
    let channels = net.builder.shape(x)[1];
    let scale = net.parameter(&format!("{name}.scale"), &[channels, 1, 1], Draw::Constant(factor))?;
    let shift = net.parameter(&format!("{name}.shift"), &[channels, 1, 1], Draw::Constant(0.0))?;
    let y = net.builder.node(&format!("{name}/scale"), Binary(Combine::Mul), &[x, scale])?;
    net.builder.node(&format!("{name}/shift"), Binary(Combine::Add), &[y, shift])
}

/// Every second pixel, and zeros for the new channels.
fn padded(net: &mut Assembly, name: &str, x: ValueId, channels: usize, stride: usize) -> Result<ValueId> {
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
