//! One walk over the nodes of a graph.

use super::layout::Layout;
use super::{Features, Lowered, Rule};
use crate::error::Result;
use crate::infinite::activation::Activation;
use crate::infinite::expression::Expression;
use crate::infinite::net::{Input, LimitNet, NodeId, Scales};
use crate::infinite::patch::Patch;
use crate::infinite::refuse;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::op::{
    Binary, Concat, Conv, Function, Margin, MatMul, Normalise, Pad, Pool, Pooling, Reduce, Reduction, Reshape, Slice,
    Transpose, Unary, Where, Window,
};
use std::collections::HashMap;
use std::sync::Arc;

/// What a value of the graph is in the limit.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// The same numbers for all samples.
    Constant(Arc<Vec<f64>>),
    /// A parameter times a factor, under any shape.
    Parameter { id: ValueId, factor: f64 },
    /// What parameters were made into; nothing is known of it.
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
    pub(super) function: Arc<Expression>,
    pub(super) layout: Layout,
    /// The node that made the function.
    pub(super) name: Option<Arc<str>>,
    /// Padding that the next convolution will see.
    pub(super) margin: Option<Pad>,
    /// Whether nothing else reads the values from the layer to this one.
    pub(super) sole: bool,
}

impl Random {
    pub(super) fn of(node: NodeId, layout: Layout) -> Self {
        Self { node, function: Arc::new(Expression::Unit), layout, name: None, margin: None, sole: true }
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
    activations: Vec<(NodeId, Arc<Expression>, NodeId)>,
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

    /// What is known of an operand; a random one also knows whether it is read here only.
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
            return self.elementwise(&label, &x, Expression::Unary(function, Arc::clone(&x.function)));
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
            // Some of the units are as good as all of them.
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
            return Ok(Random::of(normed, x.layout));
        }
        refuse(&label, &format!("{} has none", node.op.name()))
    }

    /// Another function of the same units.
    pub(super) fn elementwise(&self, label: &str, x: &Random, function: Expression) -> Result<Random> {
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
        if *x.function == Expression::Unit {
            return Ok(x.node);
        }
        let same =
            |(node, function, _): &&(NodeId, Arc<Expression>, NodeId)| *node == x.node && *function == x.function;
        if let Some(&(_, _, made)) = self.activations.iter().find(same) {
            return Ok(made);
        }
        let label = x.name.as_deref().unwrap_or(label);
        let made = match x.function.affine() {
            Some((0.0, _)) => return refuse(label, "it does not depend on its input"),
            Some((factor, 0.0)) => self.scaled(label, x, Scales::factor(factor))?,
            _ => self.net.activation(label, x.node, Activation::recognise(&x.function))?,
        };
        if made != x.node {
            self.activations.push((x.node, Arc::clone(&x.function), made));
        }
        Ok(made)
    }

    /// A scale or a shift behind a layer: part of the layer, if nothing else reads it.
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

    /// The value whose memory a fixed value is.
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
        let input = Input { array, channels: shape[layout.channel], strides: [stride(layout.channel), row, column] };
        let space = layout.sizes(shape);
        if input.channels * space[0] * space[1] != rest {
            return refuse(label, &format!("its input of shape {shape:?} has more axes than units, rows and columns"));
        }
        let existing = self
            .net
            .nodes()
            .iter()
            .position(|node| node.layer == crate::infinite::Layer::Input(input.clone()) && node.space == space);
        Ok(existing.unwrap_or_else(|| self.net.input_of(space, input)))
    }

    fn dense(&mut self, node: &Node, product: &MatMul, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let [x, Known::Parameter { id, factor }] = operands else {
            return refuse(&label, "it multiplies values that depend on the data, or weights from the left");
        };
        let (shape, weight) = (self.shape(node.inputs[0]), self.shape(node.inputs[1]));
        if weight.iter().rev().skip(2).any(|&size| size != 1) {
            return refuse(&label, "it multiplies by a stack of weights");
        }
        let fan_in = weight[weight.len() - if product.transposed { 1 } else { 2 }];
        let last = shape.len() - 1;
        let (input, space) = match x {
            Known::Fixed => {
                let Some(layout) = Layout::with_channel(shape, last) else {
                    return refuse(
                        &label,
                        &format!("its input of shape {shape:?} has more than two axes of positions"),
                    );
                };
                (self.fixed(&label, node.inputs[0], &layout)?, layout.space)
            }
            Known::Random(x) => {
                if x.layout.channel != last && shape[last] > 1 {
                    return refuse(&label, "it sums over positions instead of units");
                }
                let input = self.materialise(&label, x)?;
                let input = if x.layout.flat { self.net.flatten(&label, input) } else { input };
                (input, x.layout.space.clone())
            }
            _ => return refuse(&label, "it does not depend on the data"),
        };
        self.take(&label, *id)?;
        let scales = self.rule.weight(fan_in).then(Scales::factor(*factor));
        let made = self.net.dense(&label, input, scales)?;
        self.fan_in.insert(made, fan_in);
        Ok(Random::of(made, Layout { channel: last, space, flat: false }))
    }

    fn conv(&mut self, node: &Node, conv: &Conv, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let [x, Known::Parameter { id, factor }, bias @ ..] = operands else {
            return refuse(&label, "its weight is not a parameter");
        };
        if conv.groups != 1 {
            return refuse(&label, "its units do not see all others (groups)");
        }
        let (shape, weight) = (self.shape(node.inputs[0]), self.shape(node.inputs[1]));
        let Some(layout) = Layout::image(shape) else {
            return refuse(&label, "convolutions are known over one or two axes of space");
        };
        let mut patch = patch_of(&weight[2..], &conv.window);
        let input = match x {
            Known::Fixed => self.fixed(&label, node.inputs[0], &layout)?,
            Known::Random(x) => {
                if !x.layout.is_image(shape) {
                    return refuse(&label, "it slides over units");
                }
                if let Some(pad) = &x.margin {
                    let wraps = pad.mode == Margin::Wrap;
                    if wraps && (patch.before, patch.after) != ([0; 2], [0; 2]) {
                        return refuse(&label, "it pads with zeros what was padded with the other end");
                    }
                    patch.circular = wraps;
                    for axis in 2..shape.len() {
                        let to = axis + 2 - shape.len();
                        patch.before[to] += pad.before[axis];
                        patch.after[to] += pad.after[axis];
                    }
                }
                self.materialise(&label, &Random { margin: None, ..x.clone() })?
            }
            _ => return refuse(&label, "it does not depend on the data"),
        };
        self.take(&label, *id)?;
        let fan_in: usize = weight[1..].iter().product();
        let mut scales = self.rule.weight(fan_in).then(Scales::factor(*factor));
        match bias {
            [] => {}
            [Known::Parameter { id, factor }] => {
                self.take(&label, *id)?;
                scales = scales.then(self.rule.bias(fan_in, *factor));
            }
            [Known::Constant(data)] if data.iter().all(|&x| x == 0.0) => {}
            _ => return refuse(&label, "its bias is not a parameter"),
        }
        let made = self.net.conv(&label, input, scales, patch)?;
        self.fan_in.insert(made, fan_in);
        Ok(Random::of(made, layout))
    }

    fn pad(&self, label: &str, x: Random, shape: &[usize], pad: &Pad) -> Result<Random> {
        let known = matches!(pad.mode, Margin::Wrap | Margin::Constant(0.0));
        let inside = x.layout.is_image(shape) && pad.before[..2] == [0; 2] && pad.after[..2] == [0; 2];
        if !known || !inside {
            return refuse(label, "it pads other axes than those of images, or with other numbers than zeros");
        }
        Ok(Random { margin: Some(pad.clone()), ..x })
    }

    fn pool(&mut self, label: &str, x: &Random, shape: &[usize], pool: &Pool) -> Result<Random> {
        let Pooling::Average { count_padding } = pool.kind else {
            return refuse(label, "the largest of correlated numbers has no closed form (max-pool)");
        };
        if pool.round_up || !x.layout.is_image(shape) || shape.len() > 4 {
            return refuse(label, "pools are known over one or two axes of space, without windows that hang over");
        }
        let input = self.materialise(label, x)?;
        let pooled = self.net.average_pool(label, input, patch_of(&pool.kernel, &pool.window), count_padding)?;
        Ok(Random::of(pooled, x.layout.clone()))
    }

    fn reduce(&mut self, label: &str, x: &Random, shape: &[usize], reduce: &Reduce) -> Result<Random> {
        let wide: Vec<usize> = reduce.axes.iter().copied().filter(|&axis| shape[axis] > 1).collect();
        let over_space = !x.layout.flat && wide.iter().all(|axis| x.layout.space.contains(axis));
        if !matches!(reduce.kind, Reduction::Mean | Reduction::Sum) || !over_space {
            return refuse(label, "it reduces over units, or to something other than a mean or a sum");
        }
        let layout = x.layout.reduced(&reduce.axes, reduce.keep);
        let space = x.layout.sizes(shape);
        let mut size = [1, 1];
        for (at, axis) in x.layout.space.iter().rev().enumerate() {
            if reduce.axes.contains(axis) {
                size[1 - at] = shape[*axis];
            }
        }
        if size == [1, 1] {
            return Ok(Random { layout, ..x.clone() });
        }
        let input = self.materialise(label, x)?;
        let pooled = if size == space {
            self.net.global_average_pool(label, input)
        } else {
            self.net.average_pool(label, input, Patch::valid(size).stride(size), true)?
        };
        let mean = Random::of(pooled, layout);
        if reduce.kind == Reduction::Mean {
            return Ok(mean);
        }
        let scale = (size[0] * size[1]) as f64;
        self.elementwise(
            label,
            &mean,
            Expression::Unary(Function::Affine { scale, shift: 0.0 }, Arc::new(Expression::Unit)),
        )
    }

    fn concat(&mut self, node: &Node, concat: &Concat, operands: &[Known]) -> Result<Random> {
        let label = node.label();
        let (mut parts, mut layout): (Vec<NodeId>, Option<Layout>) = (Vec::new(), None);
        for operand in operands {
            let Known::Random(x) = operand else {
                return refuse(&label, "it joins values of which some do not depend on the layers before");
            };
            if x.layout.flat || x.layout.channel != concat.axis || layout.as_ref().is_some_and(|l| *l != x.layout) {
                return refuse(&label, "it joins other axes than units");
            }
            layout = Some(x.layout.clone());
            parts.push(self.materialise(&label, x)?);
        }
        let Some(layout) = layout else { return refuse(&label, "it joins nothing") };
        let units: Vec<f64> = node.inputs.iter().map(|&id| self.shape(id)[concat.axis] as f64).collect();
        let all: f64 = units.iter().sum();
        let joined = self.net.concat(&label, &parts, units.iter().map(|units| units / all).collect())?;
        Ok(Random::of(joined, layout))
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
        Ok(Lowered { net: self.net, features: Features::new(self.graph, &self.arrays)? })
    }
}

/// What remains of a parameter behind primitives.
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
            use mercer_net::op::Combine;
            match (op.downcast_ref::<Binary>(), uniform(data)) {
                (Some(Binary(Combine::Mul)), Some(scale)) => Known::Parameter { id: *id, factor: factor * scale },
                _ => Known::Shared,
            }
        }
        _ => Known::Shared,
    }
}

/// The number that a constant consists of.
pub(super) fn uniform(data: &[f64]) -> Option<f64> {
    let &first = data.first()?;
    data.iter().all(|&x| x == first).then_some(first)
}

fn patch_of(kernel: &[usize], window: &Window) -> Patch {
    let two = |sizes: &[usize], fill: usize| match *sizes {
        [row, column] => [row, column],
        [column] => [fill, column],
        _ => [fill; 2],
    };
    Patch {
        size: two(kernel, 1),
        stride: two(&window.strides, 1),
        dilation: two(&window.dilations, 1),
        before: two(&window.before, 0),
        after: two(&window.after, 0),
        circular: false,
    }
}
