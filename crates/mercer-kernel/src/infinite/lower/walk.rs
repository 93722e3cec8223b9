//! One walk over the nodes of a graph.

use super::layout::Layout;
use super::{LimitFeatures, Lowered, Rule, Variances};
use crate::error::Result;
use crate::infinite::activation::LimitActivation;
use crate::infinite::expression::Elementwise;
use crate::infinite::net::{LimitInput, LimitNet, NodeId, Scales};
use crate::infinite::refuse;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::op::{
    Binary, Combine, Concat, Conv, Function, MatMul, Normalise, Pad, Pool, Reduce, Reshape, Slice, Transpose, Unary,
    Where,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The meaning of a value of the graph in the limit.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// The same numbers for all samples.
    Constant(Arc<Vec<f64>>),
    /// A parameter times a factor, under any shape.
    Parameter { id: ValueId, factor: f64 },
    /// A value computed from parameters, with unknown distribution.
    Shared,
    /// A function of the inputs alone.
    Fixed,
    /// A function of the units of a layer.
    Random(Random),
}

/// A function of the units of a layer.
#[derive(Clone, Debug)]
pub(super) struct Random {
    pub(super) node: NodeId,
    pub(super) function: Arc<Elementwise>,
    pub(super) layout: Layout,
    /// The node that computed the function.
    pub(super) name: Option<Arc<str>>,
    /// Padding for the next convolution.
    pub(super) margin: Option<Pad>,
    /// Whether nothing else reads the values from the layer to this one.
    pub(super) sole: bool,
}

impl Random {
    pub(super) fn bare(node: NodeId, layout: Layout) -> Self {
        Self { node, function: Arc::new(Elementwise::Unit), layout, name: None, margin: None, sole: true }
    }
}

/// The state of a walk.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a Graph,
    pub(super) rule: &'a Rule,
    pub(super) net: LimitNet,
    values: Vec<Known>,
    uses: Vec<usize>,
    arrays: Vec<ValueId>,
    /// The node that a parameter was used in.
    used: HashMap<ValueId, String>,
    /// The fan-in of each random layer.
    pub(super) fan_in: HashMap<NodeId, usize>,
    /// Activations that exist already.
    activations: Vec<(NodeId, Arc<Elementwise>, NodeId)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(graph: &'a Graph, rule: &'a Rule) -> Result<Self> {
        rule.check()?;
        let values = graph.values().iter().map(|value| match value.origin {
            Origin::Input(_) => Known::Fixed,
            Origin::Parameter(at) => Known::Parameter { id: graph.parameters()[at], factor: 1.0 },
            Origin::Constant(_) | Origin::Node(_) => Known::Shared,
        });
        let mut walk = Self {
            graph,
            rule,
            net: LimitNet::new(),
            values: values.collect(),
            uses: vec![0; graph.values().len()],
            arrays: graph.inputs().to_vec(),
            used: HashMap::new(),
            fan_in: HashMap::new(),
            activations: Vec::new(),
        };
        let outputs = graph.outputs().iter().map(|&(_, id)| id);
        for id in graph.nodes().iter().flat_map(|node| node.inputs.iter().copied()).chain(outputs) {
            walk.uses[id.index()] += 1;
            if let Some(data) = graph.constant(id) {
                walk.values[id.index()] = Known::Constant(Arc::new(data.to_vec()));
            }
        }
        Ok(walk)
    }

    pub(super) fn shape(&self, id: ValueId) -> &'a [usize] {
        &self.graph.value(id).meta.shape
    }

    /// The meaning of an operand; for a random one, also whether it is read only here.
    pub(super) fn known(&self, id: ValueId) -> Known {
        match &self.values[id.index()] {
            Known::Random(random) => {
                let sole = random.sole && self.uses[id.index()] == 1;
                Known::Random(Random { sole, ..random.clone() })
            }
            other => other.clone(),
        }
    }

    /// A node of the graph.
    pub(super) fn node(&mut self, node: &Node) -> Result<()> {
        let operands: Vec<Known> = node.inputs.iter().map(|&id| self.known(id)).collect();
        let is_random = operands.iter().any(|known| matches!(known, Known::Random(_)));
        let is_fixed = operands.iter().all(|known| matches!(known, Known::Fixed | Known::Constant(_)));
        let batched = self.graph.value(node.output).meta.is_batched();
        let result = if is_random || batched && !is_fixed {
            Known::Random(self.layer(node, &operands)?)
        } else if batched {
            Known::Fixed
        } else {
            shared(node, &operands)
        };
        self.values[node.output.index()] = result;
        Ok(())
    }

    fn layer(&mut self, node: &Node, operands: &[Known]) -> Result<Random> {
        let (op, label) = (node.op.as_any(), node.label());
        if let Some(product) = op.downcast_ref::<MatMul>() {
            return self.dense(node, product, operands);
        }
        if let Some(conv) = op.downcast_ref::<Conv>() {
            return self.conv(node, conv, operands);
        }
        if let Some(&Binary(combine)) = op.downcast_ref::<Binary>() {
            return self.binary(node, combine, operands);
        }
        if op.is::<Where>() {
            return self.choice(node, operands);
        }
        if let Some(concat) = op.downcast_ref::<Concat>() {
            return self.concat(node, concat, operands);
        }
        let [Known::Random(x)] = operands else {
            return refuse(
                &label,
                &format!("nothing is known of {} of a parameter or of several values", node.op.name()),
            );
        };
        let (x, shape) = (x.clone(), self.shape(node.inputs[0]));
        if x.margin.is_some() {
            return refuse(&label, "padding is known before a convolution only");
        }
        if let Some(&Unary(function)) = op.downcast_ref::<Unary>() {
            if let Some(layer) =
                self.own_scale(&label, &x, Elementwise::Unary(function, Arc::new(Elementwise::Unit)))?
            {
                return Ok(layer);
            }
            return self.elementwise(&label, &x, Elementwise::Unary(function, Arc::clone(&x.function)));
        }
        let moved = |layout: Option<Layout>| match layout {
            Some(layout) => Ok(Random { layout, ..x.clone() }),
            None => refuse(&label, &format!("it rearranges {shape:?} in a way that mixes units and positions")),
        };
        if let Some(reshape) = op.downcast_ref::<Reshape>() {
            return moved(x.layout.reshaped(shape, &reshape.shape));
        }
        if let Some(transpose) = op.downcast_ref::<Transpose>() {
            return moved(x.layout.transposed(&transpose.perm));
        }
        if let Some(slice) = op.downcast_ref::<Slice>() {
            // A subset of the units has the same distribution as all of them.
            let whole = |axis: usize| slice.sizes[axis] == shape[axis] && (slice.steps[axis] == 1 || shape[axis] == 1);
            let fits = !x.layout.flat && (0..shape.len()).all(|axis| axis == x.layout.channel || whole(axis));
            return moved(fits.then(|| x.layout.clone()));
        }
        if let Some(pad) = op.downcast_ref::<Pad>() {
            return self.pad(&label, x, shape, pad);
        }
        if let Some(pool) = op.downcast_ref::<Pool>() {
            return self.pool(&label, &x, shape, pool);
        }
        if let Some(reduce) = op.downcast_ref::<Reduce>() {
            return self.reduce(&label, &x, shape, reduce);
        }
        if let Some(norm) = op.downcast_ref::<Normalise>() {
            let across = norm.axes.iter().any(|&axis| axis != x.layout.channel && shape[axis] > 1);
            if across || !norm.axes.contains(&x.layout.channel) || x.layout.flat {
                return refuse(&label, "it normalises over other axes than the units of each position");
            }
            let input = self.materialise(&label, &x)?;
            let normed = self.net.layer_norm(&label, input, norm.epsilon, norm.centred)?;
            return Ok(Random::bare(normed, x.layout));
        }
        refuse(&label, &format!("{} has none", node.op.name()))
    }

    /// A scale directly after a layer belongs to the layer if nothing else reads it. This matters if deviations are
    /// given, which hold regardless of the graph's scales.
    pub(super) fn own_scale(&mut self, label: &str, x: &Random, function: Elementwise) -> Result<Option<Random>> {
        let Some((factor, 0.0)) = function.affine() else { return Ok(None) };
        let given = matches!(self.rule.variances, Variances::Deviations { .. });
        let bare = x.sole && x.margin.is_none() && *x.function == Elementwise::Unit;
        if !given || !bare || factor == 0.0 {
            return Ok(None);
        }
        let merged = self.net.append_scales(x.node, label, Scales::factor(factor))?;
        Ok(merged.map(|node| Random::bare(node, x.layout.clone())))
    }

    /// Another function of the same units.
    pub(super) fn elementwise(&self, label: &str, x: &Random, function: Elementwise) -> Result<Random> {
        if x.margin.is_some() {
            return refuse(label, "padding is known before a convolution only");
        }
        if !function.is_small() {
            return refuse(label, "too many elementwise operations in a row");
        }
        Ok(Random { function: Arc::new(function), name: Some(label.into()), ..x.clone() })
    }

    /// The node of the limit that holds a function of units: a layer, scaled or activated.
    pub(super) fn materialise(&mut self, label: &str, x: &Random) -> Result<NodeId> {
        if x.margin.is_some() {
            return refuse(label, "padding is known before a convolution only");
        }
        if *x.function == Elementwise::Unit {
            return Ok(x.node);
        }
        let same =
            |(node, function, _): &&(NodeId, Arc<Elementwise>, NodeId)| *node == x.node && *function == x.function;
        if let Some(&(_, _, made)) = self.activations.iter().find(same) {
            return Ok(made);
        }
        let label = x.name.as_deref().unwrap_or(label);
        let made = match x.function.affine() {
            Some((0.0, _)) => return refuse(label, "it does not depend on its input"),
            Some((factor, 0.0)) => self.scaled(label, x, Scales::factor(factor))?,
            _ => self.net.activation(label, x.node, LimitActivation::recognise(&x.function))?,
        };
        if made != x.node {
            self.activations.push((x.node, Arc::clone(&x.function), made));
        }
        Ok(made)
    }

    /// A scale or a shift after a layer: part of the layer, if nothing else reads it.
    pub(super) fn scaled(&mut self, label: &str, x: &Random, scales: Scales) -> Result<NodeId> {
        if x.sole
            && let Some(merged) = self.net.append_scales(x.node, label, scales)?
        {
            return Ok(merged);
        }
        let made = self.net.dense(label, x.node, scales)?;
        if let Some(&fan_in) = self.fan_in.get(&x.node) {
            self.fan_in.insert(made, fan_in);
        }
        Ok(made)
    }

    /// The first use of a parameter, or an error.
    pub(super) fn take(&mut self, label: &str, id: ValueId) -> Result<()> {
        let name = &self.graph.value(id).name;
        match self.used.insert(id, label.to_owned()) {
            None => Ok(()),
            Some(before) => refuse(label, &format!("it uses the parameter {name:?} again, after {before}")),
        }
    }

    /// The value that a fixed value is a view of.
    fn viewed(&self, id: ValueId) -> ValueId {
        match self.graph.value(id).origin {
            Origin::Node(at) if self.graph.nodes()[at].op.is_view() => self.viewed(self.graph.nodes()[at].inputs[0]),
            _ => id,
        }
    }

    /// The input layer of a fixed value.
    pub(super) fn fixed(&mut self, label: &str, id: ValueId, layout: &Layout) -> Result<NodeId> {
        let shape = self.shape(id);
        let id = self.viewed(id);
        let array = self.arrays.iter().position(|&known| known == id).unwrap_or_else(|| {
            self.arrays.push(id);
            self.arrays.len() - 1
        });
        let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let (row, column) = match layout.space[..] {
            [row, column] => (stride(row), stride(column)),
            [column] => (0, stride(column)),
            _ => (0, 0),
        };
        let rest: usize = shape.iter().product();
        let input =
            LimitInput { array, channels: shape[layout.channel], strides: [stride(layout.channel), row, column] };
        let space = layout.sizes(shape);
        if input.channels * space[0] * space[1] != rest {
            return refuse(label, &format!("its input of shape {shape:?} has more axes than units, rows and columns"));
        }
        let existing =
            self.net.nodes().iter().position(|node| {
                node.layer == crate::infinite::LimitLayer::Input(input.clone()) && node.space == space
            });
        Ok(existing.unwrap_or_else(|| self.net.input_of(space, input)))
    }

    /// The network, with all scales settled.
    pub(super) fn finish(mut self) -> Result<Lowered> {
        let Some((name, id)) = self.graph.outputs().first() else {
            return refuse("(none)", "the network has no output");
        };
        let Known::Random(y) = self.known(*id) else {
            return refuse(name, "it does not depend on any parameter");
        };
        let label = match self.graph.value(*id).origin {
            Origin::Node(at) => self.graph.nodes()[at].label(),
            _ => name.clone(),
        };
        let output = self.materialise(&label, &y)?;
        if y.layout.flat {
            return refuse(&label, "the output holds the units of many positions; a dense layer or a pool must follow");
        }
        self.net.set_output(output);
        let (rule, fan_in) = (self.rule, &self.fan_in);
        for (id, scales) in self.net.scales_mut().filter(|(_, scales)| scales.mixes) {
            rule.settle(scales, fan_in.get(&id).copied().unwrap_or(1));
        }
        Ok(Lowered { net: self.net, features: LimitFeatures::new(self.graph, &self.arrays)? })
    }
}

/// What remains of a parameter after primitives.
fn shared(node: &Node, operands: &[Known]) -> Known {
    let op = node.op.as_any();
    match operands {
        [Known::Parameter { id, factor }] => {
            let scale = match op.downcast_ref::<Unary>() {
                Some(Unary(Function::Affine { scale, shift: 0.0 })) => Some(*scale),
                Some(Unary(Function::Neg)) => Some(-1.0),
                Some(_) => None,
                None if op.is::<Reshape>() || op.is::<Transpose>() => Some(1.0),
                None => None,
            };
            scale.map_or(Known::Shared, |scale| Known::Parameter { id: *id, factor: factor * scale })
        }
        [Known::Parameter { id, factor }, Known::Constant(data)]
        | [Known::Constant(data), Known::Parameter { id, factor }] => {
            match (op.downcast_ref::<Binary>(), uniform(data)) {
                (Some(Binary(Combine::Mul)), Some(scale)) => Known::Parameter { id: *id, factor: factor * scale },
                _ => Known::Shared,
            }
        }
        _ => Known::Shared,
    }
}

/// The single number that fills a constant.
pub(crate) fn uniform(data: &[f64]) -> Option<f64> {
    let &first = data.first()?;
    data.iter().all(|&x| x == first).then_some(first)
}
