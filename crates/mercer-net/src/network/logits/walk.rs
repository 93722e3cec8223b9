//! Walking back from an output, and recognising the forms in which files write a softmax or a sigmoid.

use super::Squash;
use crate::graph::{Graph, Node, Origin, ValueId};
use crate::network::find;
use crate::op::{
    Binary, Combine, Concat, Expand, Function, Gather, Op, Reduce, Reduction, Slice, Softmax, Transpose, Unary,
};

/// The most nodes that may follow a softmax.
pub(super) const LONGEST: usize = 32;

/// The largest number that may be added to a probability before its logarithm.
const SMALL: f64 = 1e-3;

/// What a node between probabilities and the output does.
pub(super) enum Step {
    /// It keeps them probabilities: a reshape, a clip.
    Same,
    Log,
    Exp,
    /// It slices them, or concatenates several.
    Part,
    /// It is a softmax along one of several axes.
    Positions,
    /// It makes probabilities from numbers that are not exponentials.
    Normalised,
    /// Something else.
    End,
}

/// A graph, walked backwards.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a Graph,
}

impl<'a> Walk<'a> {
    pub(super) fn node(&self, id: ValueId) -> Option<&'a Node> {
        match self.graph.value(id).origin {
            Origin::Node(index) => self.graph.nodes().get(index),
            _ => None,
        }
    }

    /// The one operand that depends on the sample, or the first of several.
    pub(super) fn operand(&self, node: &Node) -> Option<ValueId> {
        node.inputs.iter().copied().find(|&id| self.graph.value(id).meta.is_batched())
    }

    fn unary(&self, id: ValueId) -> Option<(Function, ValueId)> {
        let node = self.node(id)?;
        Some((op::<Unary>(node)?.0, node.inputs[0]))
    }

    fn binary(&self, id: ValueId) -> Option<(Combine, ValueId, ValueId)> {
        let node = self.node(id)?;
        Some((op::<Binary>(node)?.0, node.inputs[0], node.inputs[1]))
    }

    /// The number, if the value is constant.
    fn number(&self, id: ValueId) -> Option<f64> {
        let numbers = self.graph.constant(id)?;
        let first = *numbers.first()?;
        numbers.iter().all(|x| *x == first).then_some(first)
    }

    /// `id = scale · x + shift`, followed back through products and sums with constants.
    fn affine(&self, id: ValueId) -> (ValueId, f64, f64) {
        let (mut at, mut scale, mut shift) = (id, 1.0, 0.0);
        for _ in 0..LONGEST {
            let (next, factor, summand) = match (self.unary(at), self.binary(at)) {
                (Some((Function::Affine { scale, shift }, x)), _) => (x, scale, shift),
                (Some((Function::Neg, x)), _) => (x, -1.0, 0.0),
                (_, Some((combine, a, b))) => match (combine, self.number(a), self.number(b)) {
                    (Combine::Add, None, Some(c)) => (a, 1.0, c),
                    (Combine::Add, Some(c), None) => (b, 1.0, c),
                    (Combine::Sub, None, Some(c)) => (a, 1.0, -c),
                    (Combine::Sub, Some(c), None) => (b, -1.0, c),
                    (Combine::Mul, None, Some(c)) => (a, c, 0.0),
                    (Combine::Mul, Some(c), None) => (b, c, 0.0),
                    (Combine::Div, None, Some(c)) => (a, 1.0 / c, 0.0),
                    _ => break,
                },
                _ => break,
            };
            shift += scale * summand;
            scale *= factor;
            at = next;
        }
        (at, scale, shift)
    }

    /// What a node after the probabilities does to them.
    pub(super) fn step(&self, node: &Node, after: &[fn(Squash) -> Squash]) -> Step {
        let any = node.op.as_any();
        if node.op.is_view() || any.is::<Transpose>() {
            return Step::Same;
        }
        if any.is::<Softmax>() {
            return Step::Positions;
        }
        if any.is::<Slice>() || any.is::<Gather>() || any.is::<Concat>() {
            return Step::Part;
        }
        if let Some(Unary(function)) = op::<Unary>(node) {
            return match function {
                Function::Clip { .. } => Step::Same,
                Function::Log => Step::Log,
                Function::Exp => Step::Exp,
                Function::Affine { scale: 1.0, shift: 0.0 } => Step::Same,
                Function::Affine { scale: 1.0, shift } if shift.abs() <= SMALL && !after.is_empty() => Step::Same,
                Function::Affine { .. } | Function::Neg => Step::Part,
                _ => Step::End,
            };
        }
        let Some(Binary(combine)) = op::<Binary>(node) else { return Step::End };
        let number = node.inputs.iter().find_map(|&id| self.number(id));
        match (combine, number) {
            (Combine::Max | Combine::Min, Some(_)) => Step::Same,
            (Combine::Add, Some(small)) if small.abs() <= SMALL && (small == 0.0 || !after.is_empty()) => Step::Same,
            (Combine::Add | Combine::Sub | Combine::Mul, Some(_)) => Step::Part,
            (Combine::Div, None) if self.total_of(node.inputs[1], node.inputs[0], Reduction::Sum) => Step::Normalised,
            _ => Step::End,
        }
    }

    /// The operand and the kind of a softmax or a sigmoid, in one node or written out.
    pub(super) fn squash(&self, id: ValueId) -> Option<(ValueId, Squash)> {
        let node = self.node(id)?;
        if let Some(Softmax { axis, log }) = op::<Softmax>(node) {
            let meta = &self.graph.value(id).meta;
            let whole = meta.shape[*axis] == meta.numel();
            return whole.then_some((node.inputs[0], if *log { Squash::LogSoftmax } else { Squash::Softmax }));
        }
        if let Some((Function::Sigmoid, x)) = self.unary(id) {
            return Some((x, Squash::Sigmoid));
        }
        let softmax = || self.written_softmax(id).map(|x| (x, Squash::Softmax));
        let log_softmax = || self.written_log_softmax(id).map(|x| (x, Squash::LogSoftmax));
        softmax().or_else(log_softmax).or_else(|| self.written_sigmoid(id))
    }

    /// `e / Σe` with `e = exp(x − m)`.
    fn written_softmax(&self, id: ValueId) -> Option<ValueId> {
        let (e, total) = match self.binary(id)? {
            (Combine::Div, e, total) => (e, total),
            (Combine::Mul, a, b) => match (self.unary(self.bare(a)), self.unary(self.bare(b))) {
                (_, Some((Function::Reciprocal, total))) => (a, total),
                (Some((Function::Reciprocal, total)), _) => (b, total),
                _ => return None,
            },
            _ => return None,
        };
        let (Function::Exp, below) = self.unary(e)? else { return None };
        self.total_of(total, e, Reduction::Sum).then(|| self.unshifted(below))
    }

    /// `x − ln Σ exp x`, where the sum may be shifted by the maximum.
    fn written_log_softmax(&self, id: ValueId) -> Option<ValueId> {
        let (Combine::Sub, x, shift) = self.binary(id)? else { return None };
        let shift = self.bare(shift);
        let (log, largest) = match self.binary(shift) {
            Some((Combine::Add, a, b)) if self.total_of(b, x, Reduction::Max) => (self.bare(a), true),
            Some((Combine::Add, a, b)) if self.total_of(a, x, Reduction::Max) => (self.bare(b), true),
            _ => (shift, false),
        };
        let (Function::Log, sum) = self.unary(log)? else { return None };
        let e = self.bare(*self.node(self.bare(sum))?.inputs.first()?);
        let (Function::Exp, below) = self.unary(e)? else { return None };
        let own = if largest { self.unshifted(below) } else { below };
        (self.total_of(sum, e, Reduction::Sum) && self.same(own, x, DEPTH)).then(|| self.unshifted(x))
    }

    fn written_sigmoid(&self, id: ValueId) -> Option<(ValueId, Squash)> {
        let negated = |id: ValueId| match self.affine(id) {
            (x, -1.0, 0.0) => Some(x),
            _ => None,
        };
        let (inner, scale, shift) = self.affine(id);
        if let (Some((Function::Tanh, half)), 0.5, 0.5) = (self.unary(inner), scale, shift) {
            let (x, 0.5, 0.0) = self.affine(half) else { return None };
            return Some((x, Squash::Sigmoid));
        }
        if let (Some((Function::Softplus, x)), -1.0, 0.0) = (self.unary(inner), scale, shift) {
            return Some((negated(x)?, Squash::LogSigmoid));
        }
        let below = match (self.unary(id), self.binary(id)) {
            (Some((Function::Reciprocal | Function::Power(-1.0), below)), _) => below,
            (_, Some((Combine::Div, one, below))) if self.number(one) == Some(1.0) => below,
            _ => return None,
        };
        let (e, 1.0, 1.0) = self.affine(below) else { return None };
        let (Function::Exp, x) = self.unary(e)? else { return None };
        Some((negated(x)?, Squash::Sigmoid))
    }

    /// `x` of `x − max x`, or the value itself.
    fn unshifted(&self, id: ValueId) -> ValueId {
        match self.binary(id) {
            Some((Combine::Sub, x, largest)) if self.total_of(largest, x, Reduction::Max) => x,
            _ => id,
        }
    }

    /// Whether `total` is this reduction of all numbers of `x`.
    fn total_of(&self, total: ValueId, x: ValueId, kind: Reduction) -> bool {
        let Some(node) = self.node(self.bare(total)) else { return false };
        let Some(reduce) = op::<Reduce>(node) else { return false };
        let meta = &self.graph.value(node.inputs[0]).meta;
        let members: usize = reduce.axes.iter().map(|&axis| meta.shape[axis]).product();
        reduce.kind == kind && members == meta.numel() && self.same(node.inputs[0], x, DEPTH)
    }

    /// Skips reshapes, broadcasts, and reductions of a single number.
    fn bare(&self, mut id: ValueId) -> ValueId {
        while let Some(node) = self.node(id) {
            let Some(&inner) = node.inputs.first() else { break };
            let operand = &self.graph.value(inner).meta;
            let any = node.op.as_any();
            let is_bare = node.op.is_view() || any.is::<Expand>() || (any.is::<Reduce>() && operand.numel() == 1);
            if !is_bare || !operand.is_batched() {
                break;
            }
            id = inner;
        }
        id
    }

    /// Whether two values are the same: exporters write a common part once or twice.
    fn same(&self, a: ValueId, b: ValueId, depth: usize) -> bool {
        let (a, b) = (self.bare(a), self.bare(b));
        if a == b {
            return true;
        }
        let (Some(left), Some(right)) = (self.node(a), self.node(b)) else {
            return self.graph.constant(a).is_some() && self.graph.constant(a) == self.graph.constant(b);
        };
        // At most two operands, so that no file makes this slow.
        depth > 0
            && left.inputs.len() <= 2
            && left.inputs.len() == right.inputs.len()
            && format!("{:?}", left.op) == format!("{:?}", right.op)
            && left.inputs.iter().zip(&right.inputs).all(|(&a, &b)| self.same(a, b, depth - 1))
    }

    /// The value, or a reshaped one, with a name by which it can be found.
    pub(super) fn named(&self, mut id: ValueId) -> Option<(ValueId, String)> {
        loop {
            let name = &self.graph.value(id).name;
            if !name.is_empty() && find(self.graph, name).is_ok_and(|found| found == id) {
                return Some((id, name.clone()));
            }
            let node = self.node(id).filter(|node| node.op.is_view())?;
            id = node.inputs[0];
        }
    }
}

/// How deep two expressions are compared.
const DEPTH: usize = 4;

/// The primitive of a node, if it is of this type.
fn op<O: Op + 'static>(node: &Node) -> Option<&O> {
    node.op.as_any().downcast_ref()
}
