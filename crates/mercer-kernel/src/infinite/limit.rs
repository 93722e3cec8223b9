//! The kernel of a network of infinite width.

use super::activation::Dual;
use super::contract::Tiles;
use super::lower::{LimitFeatures, Lowered, Rule, lower};
use super::net::{LimitLayer, LimitNet, NodeId};
use super::prepare::Prepared;
use super::program::Program;
use super::refuse;
use super::run::lanes;
use super::series;
use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use mercer_net::Network;
use std::marker::PhantomData;

/// Selects one of the two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// The covariance of the outputs over random weights.
    Nngp,
    /// The tangent kernel.
    Ntk,
}

/// The NNGP or the NTK of a network of infinite width.
///
/// ```
/// use mercer_kernel::Kernel;
/// use mercer_kernel::infinite::{LimitActivation, Limit, LimitNet, LimitKind, Scales};
///
/// let mut net = LimitNet::new();
/// let mut x = net.input(3);
/// for layer in ["first", "second"] {
///     x = net.dense(layer, x, Scales::ntk(1.5, 0.1))?;
///     x = net.activation(layer, x, LimitActivation::relu())?;
/// }
/// net.dense("output", x, Scales::ntk(1.0, 0.0))?;
/// let kernel = Limit::<f64>::new(net, LimitKind::Ntk)?;
/// let gram = kernel.gram(&[&[1.0, 0.0, 2.0, 0.5, -1.0, 0.0]], 2)?;
/// assert_eq!(gram[1], gram[2]);
/// # Ok::<(), mercer_kernel::KernelError>(())
/// ```
#[derive(Debug)]
pub struct Limit<T> {
    pub(super) net: LimitNet,
    pub(super) features: LimitFeatures,
    pub(super) of: LimitKind,
    /// The program of the output.
    pub(super) program: Program,
    /// The programs of pools whose variances are needed.
    pub(super) pools: Vec<Option<Program>>,
    /// Whether preparing needs the variances of a node, and whether a pair needs them.
    pub(super) needed: Vec<bool>,
    pub(super) kept: Vec<bool>,
    /// The number of concurrent pairs.
    pub(super) lanes: usize,
    scalar: PhantomData<T>,
}

impl<T: Real> Limit<T> {
    /// The kernel of a network built layer by layer.
    pub fn new(net: LimitNet, of: LimitKind) -> Result<Self> {
        Self::with_features(net, LimitFeatures::default(), of)
    }

    /// The kernel of the first output of a network as its width goes to infinity; it depends on the distribution of the
    /// weights, not on their values.
    pub fn of_network(network: &Network, samples: &[Vec<usize>], rule: &Rule, of: LimitKind) -> Result<Self> {
        let graph = network.graph(samples)?;
        Self::from_lowered(lower(&graph, rule)?, of)
    }

    /// The kernel of a lowered graph.
    pub fn from_lowered(lowered: Lowered, of: LimitKind) -> Result<Self> {
        Self::with_features(lowered.net, lowered.features, of)
    }

    fn with_features(net: LimitNet, features: LimitFeatures, of: LimitKind) -> Result<Self> {
        let Some(output) = net.output().filter(|&output| output < net.nodes().len()) else {
            return Err(KernelError::Setting("a network without layers has no kernel".into()));
        };
        let node = &net.nodes()[output];
        if node.space != [1, 1] {
            let reason = format!("it is the output and has {:?} positions; flatten or pool it first", node.space);
            return refuse(&node.name, &reason);
        }
        check_pools(&net)?;
        if of == LimitKind::Ntk {
            check_scales(&net)?;
        }
        let program = Program::new(&net, output);
        let mut needed = vec![false; net.nodes().len()];
        let mark = |list: &mut Vec<bool>, nodes: Vec<NodeId>| nodes.into_iter().for_each(|node| list[node] = true);
        mark(&mut needed, program.reads(&net));
        let kept = needed.clone();
        let mut pools: Vec<Option<Program>> = vec![None; net.nodes().len()];
        for node in (0..net.nodes().len()).rev().filter(|&node| node <= output) {
            if !needed[node] {
                continue;
            }
            match net.nodes()[node].layer {
                LimitLayer::AveragePool { .. } | LimitLayer::GlobalAveragePool => {
                    let program = Program::new(&net, node);
                    mark(&mut needed, program.reads(&net));
                    pools[node] = Some(program);
                }
                _ => mark(&mut needed, net.nodes()[node].inputs.clone()),
            }
        }
        let largest = pools.iter().flatten().chain([&program]).map(|program| program.largest).max().unwrap_or(1);
        let lanes = lanes(largest);
        Ok(Self { net, features, of, program, pools, needed, kept, lanes, scalar: PhantomData })
    }

    /// The network.
    pub fn net(&self) -> &LimitNet {
        &self.net
    }

    /// Both kernels of a pair of blocks at once, each `[samples of a, samples of b]`, for a kernel built for the NTK.
    ///
    /// # Panics
    /// If it was built for the NNGP, a block was prepared by another kind of kernel, or a matrix has the wrong size.
    pub fn both(&self, a: &Block, b: &Block, nngp: &mut [T], ntk: &mut [T]) {
        assert_eq!(self.of, LimitKind::Ntk, "only what is made for the NTK knows both kernels");
        Tiles::new(self, a, b).contract(Some(nngp), Some(ntk));
    }

    /// The Gram matrix of some samples with themselves, in memory, from a single block.
    pub fn gram(&self, inputs: &[&[T]], samples: usize) -> Result<Vec<T>> {
        let block = self.prepare(inputs, samples)?;
        let mut gram = vec![T::zero(); samples * samples];
        self.contract(&block, &block, &mut gram);
        Ok(gram)
    }

    /// The series activation that reads a node: its name, its function, and whether that is odd.
    pub(super) fn series_of(&self, node: NodeId) -> Option<(&str, &super::Elementwise, bool)> {
        self.net.nodes().iter().find_map(|reader| match &reader.layer {
            LimitLayer::Activation(activation) if reader.inputs == [node] => match &activation.dual {
                Dual::Series { expression, odd } => Some((reader.name.as_str(), &**expression, *odd)),
                _ => None,
            },
            _ => None,
        })
    }

    /// The maximum number of values stored per sample.
    fn elements(&self) -> usize {
        let nodes = self.net.nodes().iter().enumerate();
        nodes
            .map(|(id, node)| {
                let positions = node.space[0] * node.space[1];
                let inputs =
                    if let LimitLayer::Input(input) = &node.layer { input.channels * positions + 1 } else { 0 };
                let series = if self.series_of(id).is_some() { series::BESIDE + series::TERMS } else { 0 };
                inputs + if self.kept[id] { positions * (2 + series) } else { 0 }
            })
            .sum()
    }
}

/// The maximum number of positions before a pool, because all their pairs are computed.
const MOST_POSITIONS: usize = 1 << 14;

fn check_pools(net: &LimitNet) -> Result<()> {
    let pools = net
        .nodes()
        .iter()
        .filter(|node| matches!(node.layer, LimitLayer::AveragePool { .. } | LimitLayer::GlobalAveragePool));
    for pool in pools {
        let [rows, columns] = net.nodes()[pool.inputs[0]].space;
        if rows.saturating_mul(columns) > MOST_POSITIONS {
            let text = format!(
                "{}: a pool needs the covariances of all pairs of {rows} × {columns} positions; accepted: up to {MOST_POSITIONS}",
                pool.name
            );
            return Err(KernelError::Setting(text));
        }
    }
    Ok(())
}

/// A learnable scale per unit, `y = γ u`, adds `u u'` of its own unit to the tangent kernel. If an activation follows,
/// this is not independent of its slope: the mean of the product `u u' φ'(u) φ'(u')` is not the product of means.
fn check_scales(net: &LimitNet) -> Result<()> {
    let mut scaled: Vec<Option<NodeId>> = vec![None; net.nodes().len()];
    for (id, node) in net.nodes().iter().enumerate() {
        let before = node.inputs.iter().find_map(|&input| scaled[input]);
        scaled[id] = match &node.layer {
            LimitLayer::Dense(scales) | LimitLayer::Conv(scales, _) if scales.mixes => None,
            LimitLayer::Dense(scales) if scales.weight_rate > 0.0 => Some(id),
            LimitLayer::Activation(_) => match before {
                Some(scale) => {
                    let reason = format!(
                        "its slopes depend on the units that {} scales, so that the tangent kernel of those scales does not \
                         follow from covariances; the NNGP exists",
                        net.nodes()[scale].name
                    );
                    return refuse(&node.name, &reason);
                }
                None => None,
            },
            _ => before,
        };
    }
    Ok(())
}

/// Operations of an activation per pair of positions, tangent included.
const ACTIVATION_FLOPS: f64 = 60.0;

impl<T: Real> Kernel<T> for Limit<T> {
    fn cost(&self) -> Cost {
        let planes: usize = self.program.slots.iter().sum::<usize>() * 2 + self.program.largest;
        let patches: f64 = self.program.steps.iter().map(|step| step.additions() as f64).sum();
        let dense = |node: &super::LimitNode| match &node.layer {
            LimitLayer::Input(input) if node.space == [1, 1] => 2.0 * input.channels as f64,
            _ => 0.0,
        };
        let inputs: f64 = self.net.nodes().iter().map(dense).sum();
        let pair_flops = inputs + 2.0 * patches + ACTIVATION_FLOPS * self.program.activations as f64;
        Cost {
            sample_bytes: self.elements() * size_of::<T>(),
            prepare_bytes: (planes + 4 * self.elements()) * self.lanes * size_of::<T>(),
            contract_bytes: super::contract::STRIP
                * self.net.nodes().iter().filter(|node| dense(node) > 0.0).count()
                * size_of::<T>(),
            // Chunks, before they are joined.
            shared_sample_bytes: self.elements() * size_of::<T>(),
            prepare_flops: pair_flops,
            pair_flops,
            ..Cost::default()
        }
    }

    fn identity(&self) -> serde_json::Value {
        let of = if self.of == LimitKind::Nngp { "nngp" } else { "ntk" };
        let layer = |node: &super::LimitNode| format!("{:?} {:?} {:?}", node.layer, node.inputs, node.space);
        let layers: Vec<String> = self.net.nodes().iter().map(layer).collect();
        serde_json::json!({
            "kernel": "limit", "of": of, "precision": T::NAME, "features": self.features.identity(), "layers": layers, "output": self.net.output(),
        })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        Ok(Block::new(samples, Prepared::new(self, inputs, samples)?))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        let tiles = Tiles::new(self, a, b);
        match self.of {
            LimitKind::Nngp => tiles.contract(Some(tile), None),
            LimitKind::Ntk => tiles.contract(None, Some(tile)),
        }
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        Tiles::new(self, a, a).diagonal(self.of)
    }
}
