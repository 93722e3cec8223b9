//! The layers of an infinitely wide network.
//!
//! A value of a [`LimitNet`] has positions (at most two axes of space; one position in a dense network) and infinitely many
//! units at each. Units are exchangeable, so a value is described by the covariance of one unit between two samples and
//! two positions, `K`, and by the tangent kernel, `Θ`. The nodes define how these follow from those of their inputs.
//!
//! A sum of branches has the sum of their covariances only if the branches are uncorrelated. Every value is therefore a
//! list of [`Term`]s; two of them are uncorrelated if they share no random layer and one has mean zero.

use super::activation::LimitActivation;
use super::patch::{Patch, Space};
use super::refuse;
use crate::error::Result;
use std::collections::BTreeSet;

/// An index into the nodes of a [`LimitNet`].
pub type NodeId = usize;

/// A network of infinite width.
#[derive(Clone, Debug, Default)]
pub struct LimitNet {
    nodes: Vec<LimitNode>,
    output: Option<NodeId>,
}

/// A layer applied to values.
#[derive(Clone, Debug)]
pub struct LimitNode {
    /// Its name in errors.
    pub name: String,
    /// The layer.
    pub layer: LimitLayer,
    /// The nodes it reads.
    pub inputs: Vec<NodeId>,
    /// The positions of its result.
    pub space: Space,
    terms: Vec<Term>,
}

/// A layer of infinite width.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitLayer {
    /// Numbers of the samples: `K = x·x' / channels` at each pair of positions.
    Input(LimitInput),
    /// A random linear map of the units at each position, the same for all: a dense layer.
    Dense(Scales),
    /// A random linear map of the units of a patch of positions.
    Conv(Scales, Patch),
    /// A function of each unit.
    Activation(LimitActivation),
    /// The sum of values, `K = Σ shareᵢ Kᵢ`; if the shares sum to one, the units are those of the values side by side.
    Sum(Vec<f64>),
    /// The mean over a patch of positions; without the positions that are padding, unless `count_padding`.
    AveragePool {
        /// The patch.
        patch: Patch,
        /// Whether padding counts as zeros.
        count_padding: bool,
    },
    /// The mean over all positions.
    GlobalAveragePool,
    /// The units of all positions side by side.
    Flatten,
    /// Normalises the units of each position to mean zero (if it was not) and variance one.
    LayerNorm {
        /// The ε added to the variance.
        epsilon: f64,
    },
}

/// The source of an input layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitInput {
    /// The index among the arrays given per sample.
    pub array: usize,
    /// Numbers per position.
    pub channels: usize,
    /// Strides along channel, row and column.
    pub strides: [usize; 3],
}

/// The distribution of a layer's weights, and their contribution to the tangent kernel.
///
/// `K' = weight · mean(K) + bias` and `Θ' = weight · mean(Θ) + weight_rate · mean(K) + bias_rate`, the mean over the patch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    /// `σ_w²`: the variance of a weight times the number of units it sums.
    pub weight: f64,
    /// `σ_b²`: the variance of a bias.
    pub bias: f64,
    /// The contribution of the weights' gradient to `Θ`, per unit of `K`.
    pub weight_rate: f64,
    /// The contribution of the bias's gradient to `Θ`.
    pub bias_rate: f64,
    /// Whether there is a new random weight that mixes units; otherwise units are only scaled and shifted.
    pub mixes: bool,
}

impl Scales {
    /// The NTK parametrisation, `y = (σ_w/√fan_in) W x + σ_b b` with standard normal `W`, `b` (Jacot et al., arXiv
    /// 1806.07572): `Θ' = K' + σ_w² Θ`.
    pub fn ntk(weight_std: f64, bias_std: f64) -> Self {
        let (weight, bias) = (weight_std * weight_std, bias_std * bias_std);
        Self { weight, bias, weight_rate: weight, bias_rate: bias, mixes: true }
    }

    /// The standard parametrisation, `y = W x + b` with `W ~ N(0, σ_w²/fan_in)` and `b ~ N(0, σ_b²)`, as a layer of `fan_in`
    /// inputs per unit has it (Sohl-Dickstein et al., arXiv 2001.07301): `Θ' = fan_in · K + 1 + σ_w² Θ`, without the 1
    /// if there is no bias.
    pub fn standard(weight_std: f64, bias_std: Option<f64>, fan_in: usize) -> Self {
        let bias = bias_std.unwrap_or(0.0);
        Self {
            weight: weight_std * weight_std,
            bias: bias * bias,
            weight_rate: fan_in as f64,
            bias_rate: f64::from(u8::from(bias_std.is_some())),
            mixes: true,
        }
    }

    /// Every unit times a constant.
    pub fn factor(factor: f64) -> Self {
        Self { weight: factor * factor, bias: 0.0, weight_rate: 0.0, bias_rate: 0.0, mixes: false }
    }

    /// This map, then another one that only scales and shifts.
    pub(super) fn then(self, next: Self) -> Self {
        Self {
            weight: next.weight * self.weight,
            bias: next.weight * self.bias + next.bias,
            weight_rate: next.weight * self.weight_rate + next.weight_rate * self.weight,
            bias_rate: next.weight * self.bias_rate + next.weight_rate * self.bias + next.bias_rate,
            mixes: self.mixes,
        }
    }

    fn check(&self, name: &str) -> Result<()> {
        let fine = |x: f64| x.is_finite() && x >= 0.0;
        let rest = [self.bias, self.weight_rate, self.bias_rate];
        if self.weight.is_finite() && self.weight > 0.0 && rest.into_iter().all(fine) {
            return Ok(());
        }
        Err(crate::KernelError::Setting(format!(
            "{name}: variances {self:?}; accepted: a weight variance above 0, the others at least 0"
        )))
    }
}

/// A summand of a value, described by its dependence once everything before its last random layers is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// The nodes of its last random layers.
    layers: BTreeSet<NodeId>,
    /// Whether its mean is zero.
    centred: bool,
    /// Whether it is Gaussian.
    gaussian: bool,
}

impl Term {
    fn random(layer: NodeId) -> Self {
        Self { layers: BTreeSet::from([layer]), centred: true, gaussian: true }
    }
}

impl LimitNet {
    /// A network without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes; inputs come before the nodes that read them.
    pub fn nodes(&self) -> &[LimitNode] {
        &self.nodes
    }

    /// The output node: the last one added, unless another one was chosen.
    pub fn output(&self) -> Option<NodeId> {
        self.output.or(self.nodes.len().checked_sub(1))
    }

    /// Chooses the output node.
    pub fn set_output(&mut self, node: NodeId) {
        self.output = Some(node);
    }

    /// Vectors of this length as inputs.
    pub fn input(&mut self, channels: usize) -> NodeId {
        self.image([1, 1], channels)
    }

    /// Images as inputs, channels first: `[channels, height, width]`.
    pub fn image(&mut self, space: Space, channels: usize) -> NodeId {
        let input = LimitInput { array: 0, channels, strides: [space[0] * space[1], space[1], 1] };
        self.input_of(space, input)
    }

    /// Images as inputs, channels last: `[height, width, channels]`.
    pub fn image_channels_last(&mut self, space: Space, channels: usize) -> NodeId {
        self.input_of(space, LimitInput { array: 0, channels, strides: [1, space[1] * channels, channels] })
    }

    pub(super) fn input_of(&mut self, space: Space, input: LimitInput) -> NodeId {
        let id = self.nodes.len();
        let term = Term { layers: BTreeSet::from([id]), centred: false, gaussian: false };
        self.push("input", LimitLayer::Input(input), vec![], space, vec![term])
    }

    fn push(&mut self, name: &str, layer: LimitLayer, inputs: Vec<NodeId>, space: Space, terms: Vec<Term>) -> NodeId {
        self.nodes.push(LimitNode { name: name.to_owned(), layer, inputs, space, terms });
        self.nodes.len() - 1
    }

    /// A dense layer, the same at every position, or a map that only scales and shifts, depending on `scales`.
    pub fn dense(&mut self, name: &str, x: NodeId, scales: Scales) -> Result<NodeId> {
        scales.check(name)?;
        let (space, id) = (self.nodes[x].space, self.nodes.len());
        let terms = if scales.mixes {
            vec![Term::random(id)]
        } else {
            // A random shift is one more term; a scale keeps what it scales.
            let shift = (scales.bias > 0.0 || scales.bias_rate > 0.0).then(|| Term::random(id));
            self.nodes[x].terms.iter().cloned().chain(shift).collect()
        };
        Ok(self.push(name, LimitLayer::Dense(scales), vec![x], space, terms))
    }

    /// A convolution.
    pub fn conv(&mut self, name: &str, x: NodeId, scales: Scales, patch: Patch) -> Result<NodeId> {
        scales.check(name)?;
        let space = patch.output(self.nodes[x].space, name)?;
        let term = Term::random(self.nodes.len());
        Ok(self.push(name, LimitLayer::Conv(scales, patch), vec![x], space, vec![term]))
    }

    /// A function of each unit, which must be Gaussian: after a random layer, or a sum of such layers.
    pub fn activation(&mut self, name: &str, x: NodeId, activation: LimitActivation) -> Result<NodeId> {
        let node = &self.nodes[x];
        if !node.terms.iter().all(|term| term.gaussian) {
            return refuse(
                name,
                "its input is not Gaussian: between two activations, or between a shortcut around one and the next, a limit needs \
                 a random layer",
            );
        }
        let layers = node.terms.iter().flat_map(|term| term.layers.iter().copied()).collect();
        let term = Term { layers, centred: activation.is_odd(), gaussian: false };
        let space = node.space;
        Ok(self.push(name, LimitLayer::Activation(activation), vec![x], space, vec![term]))
    }

    /// The sum of branches, which must be uncorrelated.
    pub fn sum(&mut self, name: &str, branches: &[NodeId]) -> Result<NodeId> {
        for (at, &a) in branches.iter().enumerate() {
            for &b in &branches[..at] {
                self.check_uncorrelated(name, a, b)?;
            }
        }
        let terms = branches.iter().flat_map(|&x| self.nodes[x].terms.iter().cloned()).collect();
        self.join(name, branches, vec![1.0; branches.len()], terms)
    }

    /// Units of several values side by side, with the share that each value has of them.
    pub fn concat(&mut self, name: &str, values: &[NodeId], shares: Vec<f64>) -> Result<NodeId> {
        let parts = || values.iter().flat_map(|&x| self.nodes[x].terms.iter());
        let layers = parts().flat_map(|term| term.layers.iter().copied()).collect();
        // Each part may be Gaussian, but with its own variance, so a unit is a mixture.
        let term = Term { layers, centred: parts().all(|term| term.centred), gaussian: false };
        self.join(name, values, shares, vec![term])
    }

    fn join(&mut self, name: &str, values: &[NodeId], shares: Vec<f64>, terms: Vec<Term>) -> Result<NodeId> {
        let Some(&first) = values.first() else { return refuse(name, "it has no inputs") };
        let space = self.nodes[first].space;
        if values.iter().any(|&x| self.nodes[x].space != space) {
            return refuse(name, "its inputs have different positions");
        }
        Ok(self.push(name, LimitLayer::Sum(shares), values.to_vec(), space, terms))
    }

    fn check_uncorrelated(&self, name: &str, a: NodeId, b: NodeId) -> Result<()> {
        for s in &self.nodes[a].terms {
            for t in &self.nodes[b].terms {
                if let Some(&layer) = s.layers.intersection(&t.layers).next() {
                    let shared = &self.nodes[layer].name;
                    let reason =
                        format!("it joins branches that are not independent: both depend on {shared} directly");
                    return refuse(name, &reason);
                }
                if !s.centred && !t.centred {
                    return refuse(name, "it joins branches that are correlated: neither has mean zero");
                }
            }
        }
        Ok(())
    }

    /// The mean over a sliding patch.
    pub fn average_pool(&mut self, name: &str, x: NodeId, patch: Patch, count_padding: bool) -> Result<NodeId> {
        let space = patch.output(self.nodes[x].space, name)?;
        let terms = self.nodes[x].terms.clone();
        Ok(self.push(name, LimitLayer::AveragePool { patch, count_padding }, vec![x], space, terms))
    }

    /// The mean over all positions.
    pub fn global_average_pool(&mut self, name: &str, x: NodeId) -> NodeId {
        let terms = self.nodes[x].terms.clone();
        self.push(name, LimitLayer::GlobalAveragePool, vec![x], [1, 1], terms)
    }

    /// The units of all positions side by side; only a dense layer can follow, because their variances differ.
    pub fn flatten(&mut self, name: &str, x: NodeId) -> NodeId {
        if self.nodes[x].space == [1, 1] {
            return x;
        }
        let gaussian = |term: &Term| Term { gaussian: false, ..term.clone() };
        let terms = self.nodes[x].terms.iter().map(gaussian).collect();
        self.push(name, LimitLayer::Flatten, vec![x], [1, 1], terms)
    }

    /// Normalisation over the units of each position; `centred` subtracts their mean, which must be zero in the limit.
    pub fn layer_norm(&mut self, name: &str, x: NodeId, epsilon: f64, centred: bool) -> Result<NodeId> {
        let node = &self.nodes[x];
        if centred && !node.terms.iter().all(|term| term.centred) {
            return refuse(name, "it normalises units whose mean is not zero: a limit needs a random layer before it");
        }
        let (space, terms) = (node.space, node.terms.clone());
        Ok(self.push(name, LimitLayer::LayerNorm { epsilon }, vec![x], space, terms))
    }

    /// Replaces the scales of a linear layer that nothing reads yet.
    pub(super) fn append_scales(&mut self, node: NodeId, name: &str, next: Scales) -> Result<Option<NodeId>> {
        next.check(name)?;
        if self.nodes.iter().any(|other| other.inputs.contains(&node)) {
            return Ok(None);
        }
        match &mut self.nodes[node].layer {
            LimitLayer::Dense(scales) | LimitLayer::Conv(scales, _) if scales.mixes => {
                *scales = scales.then(next);
                Ok(Some(node))
            }
            _ => Ok(None),
        }
    }

    /// The scales of all linear layers.
    pub(super) fn scales_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Scales)> {
        self.nodes.iter_mut().enumerate().filter_map(|(id, node)| match &mut node.layer {
            LimitLayer::Dense(scales) | LimitLayer::Conv(scales, _) => Some((id, scales)),
            _ => None,
        })
    }
}
