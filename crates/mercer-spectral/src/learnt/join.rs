//! Several networks side by side as one network, with all of their outputs.
//!
//! `k` networks of one output become one graph with `k` branches from the same input, so that training, evaluation and
//! export handle a single network, whether or not its outputs share weights.
//!
//! Layers with `sin` on one half and `cos` on the other are rewritten with `sin` alone, with `π/2` added to the bias of
//! the second half: `cos(z + b) = sin(z + (b + π/2))`. Functions and gradients are unchanged. This saves copying the
//! halves, a sixth of the time of a step with the paper's networks.

use crate::error::{Result, SpectralError};
use mercer_net::Network;
use mercer_net::graph::{Graph, GraphBuilder, Node, Origin, ValueId};
use mercer_net::network::Values;
use mercer_net::op::{Binary, Combine, Concat, Function, MatMul, Reshape, Slice, Transpose, Unary};
use std::f64::consts::FRAC_PI_2;

/// The name of the only output of the joined networks.
const OUTPUT: &str = "functions";

/// The networks side by side: output `j · outputs + c` is output `c` of network `j`. Parameters are called
/// `function1.NAME`, `function2.NAME`, …
///
/// # Errors
/// [`SpectralError::Setting`] if there are no networks, or their inputs or outputs differ.
pub fn side_by_side(networks: &[Network]) -> Result<Network> {
    let mut joined = Joined::default();
    let mut outputs = Vec::new();
    for (index, network) in networks.iter().enumerate() {
        outputs.push(joined.append(network, &format!("function{}.", index + 1))?);
    }
    let Some(&first) = outputs.first() else {
        return Err(SpectralError::Setting("there are no networks to train".to_owned()));
    };
    let sizes: Vec<usize> = outputs.iter().map(|&id| joined.builder.shape(id)[1]).collect();
    if sizes.iter().any(|&size| size != sizes[0]) {
        return Err(SpectralError::Setting(format!("the networks have different numbers of outputs: {sizes:?}")));
    }
    let output = if outputs.len() == 1 { first } else { joined.builder.node(OUTPUT, Concat { axis: 1 }, &outputs)? };
    joined.finish(output)
}

/// A network that computes `ψ(x) = b(x)·W` for a network `b` with `functions · per_sample` outputs: `[components]` per
/// sample, or `[per_sample, components]`.
pub(crate) fn combined(network: &Network, per_sample: usize, weights: ndarray::ArrayView2<'_, f64>) -> Result<Network> {
    let mut joined = Joined::default();
    let mut output = joined.append(network, "")?;
    let (functions, components) = weights.dim();
    if per_sample > 1 {
        let reshape = Reshape { shape: vec![1, functions, per_sample] };
        output = joined.builder.node("by-function", reshape, &[output])?;
        output = joined.builder.node("by-output", Transpose { perm: vec![0, 2, 1] }, &[output])?;
    }
    let numbers = weights.iter().copied().collect();
    let weights = joined.builder.constant("combination", [functions, components], numbers);
    let output = joined.builder.node("psi", MatMul { transposed: false }, &[output, weights])?;
    joined.finish(output)
}

/// A graph into which other graphs are copied.
#[derive(Default)]
struct Joined {
    builder: GraphBuilder,
    inputs: Vec<ValueId>,
    values: Vec<Values>,
}

impl Joined {
    /// Copies a network, connected to the existing inputs, with a prefix for its names; returns its output as
    /// `[1, outputs]`.
    fn append(&mut self, network: &Network, prefix: &str) -> Result<ValueId> {
        let graph = network.declared_graph()?;
        self.match_inputs(&graph)?;
        let mut copies: Vec<Option<ValueId>> = vec![None; graph.values().len()];
        let leaves = graph.nodes().iter().flat_map(|node| &node.inputs).chain(graph.outputs().iter().map(|(_, id)| id));
        let (first_value, mut order) = (self.values.len(), Vec::new());
        for &id in leaves {
            if copies[id.index()].is_none() {
                copies[id.index()] = self.leaf(network, &graph, id, prefix);
                if matches!(graph.value(id).origin, Origin::Parameter(_)) {
                    order.push(id);
                }
            }
        }
        for node in graph.nodes() {
            if let Some(halves) = Halves::find(&graph, node) {
                let sum = copies[halves.sum.index()].expect("operands come before results");
                copies[node.output.index()] =
                    Some(self.builder.node(&format!("{prefix}{}", node.name), Unary(Function::Sin), &[sum])?);
                let at = first_value + order.iter().position(|&id| id == halves.bias).expect("a leaf of the graph");
                halves.shift(&mut self.values[at]);
                continue;
            }
            let inputs: Vec<ValueId> = node.inputs.iter().filter_map(|id| copies[id.index()]).collect();
            let copy =
                self.builder.push_node(&format!("{prefix}{}", node.name), &node.operator, node.op.clone(), &inputs)?;
            if let Some(batch) = &graph.value(node.output).meta.batch {
                self.builder.set_batch(copy, batch.clone());
            }
            copies[node.output.index()] = Some(copy);
        }
        let Some((name, output)) = graph.outputs().first() else {
            return Err(SpectralError::Setting("a network without outputs cannot be an eigenfunction".to_owned()));
        };
        let value = graph.value(*output);
        if !value.meta.is_batched() {
            return Err(SpectralError::Setting(format!("output {name:?} of a network does not depend on its input")));
        }
        let (copy, size) = (copies[output.index()].expect("operands come before results"), value.meta.numel());
        if value.meta.shape == [1, size] {
            return Ok(copy);
        }
        Ok(self.builder.node(&format!("{prefix}flat"), Reshape { shape: vec![1, size] }, &[copy])?)
    }

    /// The copy of an input, a parameter or a constant; results of nodes come later.
    fn leaf(&mut self, network: &Network, graph: &Graph, id: ValueId, prefix: &str) -> Option<ValueId> {
        let value = graph.value(id);
        let (name, shape) = (format!("{prefix}{}", value.name), value.meta.shape.clone());
        match value.origin {
            Origin::Input(index) => Some(self.inputs[index]),
            Origin::Parameter(index) => {
                self.values.push(network.parameters()[index].values().clone());
                Some(self.builder.parameter(name, shape))
            }
            Origin::Constant(_) => {
                // Running statistics are constants here, with the numbers that the network has.
                let measured = graph.statistics().iter().position(|&own| own == id);
                let measured = measured.map(|at| network.statistics()[at].values().to_vec::<f64>());
                let numbers = measured.map_or_else(|| graph.constant(id).map(<[f64]>::to_vec), Some)?;
                Some(self.builder.constant(name, shape, numbers))
            }
            Origin::Node(_) => None,
        }
    }

    /// Creates the inputs of the first network, and checks that the others have the same.
    fn match_inputs(&mut self, graph: &Graph) -> Result<()> {
        let is_first = self.inputs.is_empty();
        for (index, &id) in graph.inputs().iter().enumerate() {
            let value = graph.value(id);
            if is_first {
                let batch = value.meta.batch.clone().unwrap_or_else(|| mercer_net::graph::Batch::axis(0));
                self.inputs.push(self.builder.input(value.name.clone(), value.meta.shape.clone(), batch));
            } else if self.inputs.get(index).map(|&own| self.builder.shape(own)) != Some(&value.meta.shape[..]) {
                let shape = &value.meta.shape;
                let text = format!("the networks take different inputs: one of them has {:?} of {shape:?}", value.name);
                return Err(SpectralError::Setting(text));
            }
        }
        Ok(())
    }

    fn finish(mut self, output: ValueId) -> Result<Network> {
        self.builder.output(OUTPUT, output);
        Ok(Network::from_graph(self.builder.finish(), self.values)?)
    }
}

/// A layer with bias, with `sin` of its first units and `cos` of the others.
struct Halves {
    /// The layer with its bias.
    sum: ValueId,
    bias: ValueId,
    /// The first unit of the second half.
    middle: usize,
}

impl Halves {
    /// The halves that a node joins, if it has this form and nothing else uses the layer or its bias.
    fn find(graph: &Graph, node: &Node) -> Option<Self> {
        let made_by = |id: ValueId| match graph.value(id).origin {
            Origin::Node(index) => Some(&graph.nodes()[index]),
            _ => None,
        };
        let uses = |id: ValueId| graph.nodes().iter().flat_map(|node| &node.inputs).filter(|&&own| own == id).count();
        let (concat, [sin, cos]) = (node.op.as_any().downcast_ref::<Concat>()?, node.inputs[..].try_into().ok()?);
        let half = |id: ValueId, function: Function| {
            let unary = made_by(id)?;
            let slice = made_by(unary.inputs[0])?;
            let part = slice.op.as_any().downcast_ref::<Slice>()?;
            (unary.op.as_any().downcast_ref::<Unary>()?.0 == function).then_some((slice.inputs[0], part))
        };
        let ((sum, first), (other, second)) = (half(sin, Function::Sin)?, half(cos, Function::Cos)?);
        let layer = made_by(sum)?;
        let bias = *layer.inputs.get(1)?;
        let units = graph.value(sum).meta.shape.clone();
        let middle = *first.sizes.get(1)?;
        let whole = concat.axis == 1
            && units.len() == 2
            && sum == other
            && *first == Slice::along(&units, 1, 0, middle)
            && *second == Slice::along(&units, 1, middle, units[1] - middle);
        let is_bias = layer.op.as_any().downcast_ref::<Binary>() == Some(&Binary(Combine::Add))
            && matches!(graph.value(bias).origin, Origin::Parameter(_))
            && graph.value(bias).meta.shape == [units[1]];
        (whole && is_bias && uses(sum) == 2 && uses(bias) == 1).then_some(Self { sum, bias, middle })
    }

    fn shift(&self, bias: &mut Values) {
        let mut numbers = bias.to_vec::<f64>();
        numbers[self.middle..].iter_mut().for_each(|x| *x += FRAC_PI_2);
        *bias = match bias {
            Values::F32(_) => Values::from_slice(&numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
            Values::F64(_) => Values::from_slice(&numbers),
        };
    }
}
