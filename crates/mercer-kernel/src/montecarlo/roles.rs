//! The role of each parameter of a graph, as far as its distribution depends on it.
//!
//! This follows the lowering to infinite width ([`crate::infinite::lower`]) but rejects nothing. Products and
//! convolutions multiply by a weight, which includes all scales directly after it that nothing else reads. Biases are
//! added to the result. Scales and shifts per unit anywhere else belong to normalisations.

use crate::infinite::uniform;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::numel;
use mercer_net::op::{Binary, Combine, Conv, Function, Gather, MatMul, Reshape, Transpose, Unary};

/// The role of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// A weight: units of a layer are `factor · Σ W x` over `fan_in` terms.
    Weight { fan_in: usize, factor: f64 },
    /// A bias: `factor · b` is added to a layer whose weight has this fan-in.
    Bias { fan_in: usize, factor: f64 },
    /// A scale per unit, initially one.
    Scale,
    /// A shift per unit, initially zero.
    Shift,
    /// A table of embeddings.
    Table,
    /// Another parameter, which keeps its values.
    Other,
}

/// A parameter with the factor that it was multiplied by, and a layer that a value belongs to.
#[derive(Clone, Copy, Debug)]
enum Known {
    Parameter {
        at: usize,
        factor: f64,
    },
    /// And whether nothing else reads it between the product and here.
    Layer {
        layer: usize,
        sole: bool,
    },
}

/// A weight and its biases.
struct Layer {
    fan_in: usize,
    members: Vec<usize>,
}

struct Walk<'a> {
    graph: &'a Graph,
    uses: Vec<usize>,
    known: Vec<Option<Known>>,
    layers: Vec<Layer>,
    roles: Vec<Option<Role>>,
}

/// The role of every parameter, by its first use.
pub(super) fn roles(graph: &Graph) -> Vec<Role> {
    let mut uses = vec![0; graph.values().len()];
    let outputs = graph.outputs().iter().map(|&(_, id)| id);
    graph
        .nodes()
        .iter()
        .flat_map(|node| node.inputs.iter().copied())
        .chain(outputs)
        .for_each(|id| uses[id.index()] += 1);
    let known = graph.values().iter().map(|value| match value.origin {
        Origin::Parameter(at) => Some(Known::Parameter { at, factor: 1.0 }),
        _ => None,
    });
    let known = known.collect();
    let mut walk = Walk { graph, uses, known, layers: Vec::new(), roles: vec![None; graph.parameters().len()] };
    for node in graph.nodes() {
        walk.known[node.output.index()] =
            if graph.value(node.output).meta.is_batched() { walk.batched(node) } else { walk.shared(node) };
    }
    walk.roles.into_iter().map(|role| role.unwrap_or(Role::Other)).collect()
}

impl Walk<'_> {
    fn known(&self, id: ValueId) -> Option<Known> {
        self.known[id.index()]
    }

    fn shape(&self, id: ValueId) -> &[usize] {
        &self.graph.value(id).meta.shape
    }

    fn give(&mut self, parameter: usize, role: Role) {
        self.roles[parameter].get_or_insert(role);
    }

    /// The number that a node multiplies one of its operands by, and that operand.
    fn scale(&self, node: &Node) -> Option<(f64, ValueId)> {
        let any = node.op.as_any();
        match (any.downcast_ref::<Unary>(), any.downcast_ref::<Binary>(), &node.inputs[..]) {
            (Some(Unary(Function::Affine { scale, shift: 0.0 })), _, &[x]) => Some((*scale, x)),
            (Some(Unary(Function::Neg)), _, &[x]) => Some((-1.0, x)),
            (_, Some(Binary(Combine::Mul)), &[x, y]) => {
                let number = |id| self.graph.constant(id).and_then(uniform);
                number(y).map(|scale| (scale, x)).or_else(|| number(x).map(|scale| (scale, y)))
            }
            (_, Some(Binary(Combine::Div)), &[x, y]) => {
                self.graph.constant(y).and_then(uniform).filter(|&by| by != 0.0).map(|by| (by.recip(), x))
            }
            _ if any.is::<Reshape>() || any.is::<Transpose>() => node.inputs.first().map(|&x| (1.0, x)),
            _ => None,
        }
    }

    fn shared(&self, node: &Node) -> Option<Known> {
        let (scale, x) = self.scale(node)?;
        match self.known(x)? {
            Known::Parameter { at, factor } => Some(Known::Parameter { at, factor: factor * scale }),
            Known::Layer { .. } => None,
        }
    }

    fn batched(&mut self, node: &Node) -> Option<Known> {
        let any = node.op.as_any();
        if let Some(product) = any.downcast_ref::<MatMul>() {
            let (which, (at, factor)) = self.parameter_of(node)?;
            let shape = self.shape(node.inputs[which]);
            let along = if which == 0 || product.transposed { 1 } else { 2 };
            let fan_in = *shape.get(shape.len().checked_sub(along)?)?;
            return Some(self.layer(at, fan_in, factor));
        }
        if any.is::<Conv>() {
            let Some(Known::Parameter { at, factor }) = self.known(*node.inputs.get(1)?) else { return None };
            let fan_in = numel(&self.shape(node.inputs[1])[1..]);
            let layer = self.layer(at, fan_in, factor);
            if let (Known::Layer { layer, .. }, Some(&bias)) = (layer, node.inputs.get(2))
                && let Some(Known::Parameter { at, factor }) = self.known(bias)
            {
                self.give(at, Role::Bias { fan_in, factor });
                self.layers[layer].members.push(at);
            }
            return Some(layer);
        }
        if any.is::<Gather>() {
            if let Some(Known::Parameter { at, .. }) = self.known(node.inputs[0]) {
                self.give(at, Role::Table);
            }
            return None;
        }
        if let Some((scale, x)) = self.scale(node) {
            return self.continued(x, scale);
        }
        match any.downcast_ref::<Binary>()?.0 {
            Combine::Add | Combine::Sub => self.added(node),
            Combine::Mul => {
                let (which, (at, _)) = self.parameter_of(node)?;
                let role = if self.per_unit(node, which) { Role::Scale } else { Role::Other };
                self.give(at, role);
                None
            }
            _ => None,
        }
    }

    /// The operand of a node of two that is a parameter.
    fn parameter_of(&self, node: &Node) -> Option<(usize, (usize, f64))> {
        (0..node.inputs.len()).find_map(|which| match self.known(node.inputs[which])? {
            Known::Parameter { at, factor } => Some((which, (at, factor))),
            Known::Layer { .. } => None,
        })
    }

    fn layer(&mut self, weight: usize, fan_in: usize, factor: f64) -> Known {
        self.give(weight, Role::Weight { fan_in, factor });
        self.layers.push(Layer { fan_in, members: vec![weight] });
        Known::Layer { layer: self.layers.len() - 1, sole: true }
    }

    /// A scale belongs to its layer if nothing else reads it.
    fn continued(&mut self, x: ValueId, scale: f64) -> Option<Known> {
        let Known::Layer { layer, sole } = self.known(x)? else { return None };
        if !sole || self.uses[x.index()] > 1 {
            return (scale == 1.0).then_some(Known::Layer { layer, sole: false });
        }
        for &member in &self.layers[layer].members {
            if let Some(Role::Weight { factor, .. } | Role::Bias { factor, .. }) = &mut self.roles[member] {
                *factor *= scale;
            }
        }
        Some(Known::Layer { layer, sole: true })
    }

    /// A bias of a layer, or a shift.
    fn added(&mut self, node: &Node) -> Option<Known> {
        let (which, (at, factor)) = self.parameter_of(node)?;
        let x = *node.inputs.get(1 - which)?;
        let Some(Known::Layer { layer, sole }) = self.known(x) else {
            let role = if self.per_unit(node, which) { Role::Shift } else { Role::Other };
            self.give(at, role);
            return None;
        };
        self.give(at, Role::Bias { fan_in: self.layers[layer].fan_in, factor });
        let sole = sole && self.uses[x.index()] == 1;
        if sole {
            self.layers[layer].members.push(at);
        }
        Some(Known::Layer { layer, sole })
    }

    /// Whether a parameter is repeated along all axes of a value but one.
    fn per_unit(&self, node: &Node, which: usize) -> bool {
        let wide = |id: ValueId| self.shape(id).iter().filter(|&&size| size > 1).count();
        wide(node.inputs[which]) <= 1
    }
}
