//! One node being lowered: its attributes, its operands, and the primitives it becomes.

use super::constant::{Host, NumberKind, evaluate};
use super::{Lowering, activation, arithmetic, attention, gather, linear, normalise, plumbing, pool, reduce, reshape};
use crate::error::{NetError, Result};
use crate::graph::{Batch, Meta, ValueId, count, infer};
use crate::onnx::model::{Attribute, NodeDef};
use crate::op::{InferError, Op};
use crate::shape::numel;
use std::sync::Arc;

/// An operand of a node: a constant of the lowering, or a value of the graph.
#[derive(Clone, Debug)]
pub(in crate::onnx) enum Operand {
    Constant(Host),
    Value(ValueId),
}

/// The results of a node, each with its kind.
pub(super) type Results = Vec<(Operand, NumberKind)>;

/// A node being lowered.
pub(in crate::onnx) struct Scope<'a, 'b> {
    pub(super) lowering: &'a mut Lowering<'b>,
    pub(super) node: &'a NodeDef,
    inputs: Vec<Option<Operand>>,
    /// Constants are those for two samples.
    for_two: bool,
}

impl<'a, 'b> Scope<'a, 'b> {
    pub(super) fn new(lowering: &'a mut Lowering<'b>, node: &'a NodeDef, for_two: bool) -> Result<Self> {
        let inputs = node
            .inputs
            .iter()
            .map(|name| {
                if name.is_empty() {
                    return Ok(None);
                }
                let known = lowering.names.get(name).ok_or_else(|| NetError::Malformed {
                    reason: format!("node {} needs {name:?}, which nothing computes", node.label()),
                })?;
                Ok(Some(match (&known.two, for_two) {
                    (Some(two), true) => Operand::Constant(two.clone()),
                    _ => known.one.clone(),
                }))
            })
            .collect::<Result<_>>()?;
        Ok(Self { lowering, node, inputs, for_two })
    }

    /// Lowers the node.
    pub(super) fn lower(&mut self) -> Result<Results> {
        let domain = self.node.domain.as_str();
        if !matches!(domain, "" | "ai.onnx" | "com.microsoft") {
            return Err(self.unsupported(format!("operators of domain {domain:?} are not supported")));
        }
        let families =
            [activation::lower, arithmetic::lower, linear::lower, normalise::lower, pool::lower, reduce::lower];
        let families = families.into_iter().chain([gather::lower, reshape::lower, plumbing::lower, attention::lower]);
        for family in families {
            if let Some(results) = family(self)? {
                return Ok(results);
            }
        }
        Err(self.unsupported("this operator is not supported"))
    }

    pub(super) fn op(&self) -> &'a str {
        &self.node.op
    }

    pub(super) fn opset(&self) -> i64 {
        self.lowering.opset
    }

    pub(super) fn unsupported(&self, reason: impl Into<String>) -> NetError {
        NetError::Unsupported { node: self.node.label(), reason: reason.into() }
    }

    pub(super) fn misshapen(&self, reason: impl Into<String>) -> NetError {
        NetError::Shape { node: self.node.label(), reason: reason.into() }
    }

    // Attributes.

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        match self.node.attribute(name) {
            Some(Attribute::Int(value)) => *value,
            _ => default,
        }
    }

    pub(super) fn float(&self, name: &str, default: f64) -> f64 {
        match self.node.attribute(name) {
            Some(Attribute::Float(value)) => shortest(*value),
            _ => default,
        }
    }

    pub(super) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.node.attribute(name) {
            Some(Attribute::Ints(values)) => Some(values.clone()),
            Some(Attribute::Int(value)) => Some(vec![*value]),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        match self.node.attribute(name) {
            Some(Attribute::Text(value)) => Some(value),
            _ => None,
        }
    }

    // Operands.

    pub(super) fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    pub(super) fn optional(&self, index: usize) -> Option<Operand> {
        self.inputs.get(index).cloned().flatten()
    }

    pub(super) fn input(&self, index: usize) -> Result<Operand> {
        self.optional(index).ok_or_else(|| self.misshapen(format!("operand {index} is missing")))
    }

    pub(super) fn kind(&self, operand: &Operand) -> NumberKind {
        match operand {
            Operand::Constant(host) => host.kind,
            Operand::Value(id) => self.lowering.kinds.get(id).copied().unwrap_or(NumberKind::Float),
        }
    }

    pub(super) fn shape(&self, operand: &Operand) -> Vec<usize> {
        match operand {
            Operand::Constant(host) => host.shape.clone(),
            Operand::Value(id) => self.lowering.builder.shape(*id).to_vec(),
        }
    }

    pub(super) fn batch(&self, operand: &Operand) -> Option<Batch> {
        match operand {
            Operand::Constant(_) => None,
            Operand::Value(id) => self.lowering.builder.meta(*id).batch.clone(),
        }
    }

    /// An operand that must be constant.
    pub(super) fn constant(&self, index: usize) -> Result<Option<Host>> {
        match self.optional(index) {
            None => Ok(None),
            Some(Operand::Constant(host)) => Ok(Some(host)),
            Some(Operand::Value(_)) => {
                Err(self.unsupported(format!("operand {index} depends on the data; it must be constant")))
            }
        }
    }

    /// A constant operand as integers.
    pub(super) fn integers(&self, index: usize) -> Result<Option<Vec<i64>>> {
        Ok(self.constant(index)?.map(|host| host.to_integers()))
    }

    /// Integers from an operand, or from the attribute that had them in earlier opsets.
    pub(super) fn integers_or(&self, index: usize, attribute: &str) -> Result<Option<Vec<i64>>> {
        Ok(match self.integers(index)? {
            Some(values) => Some(values),
            None => self.ints(attribute),
        })
    }

    /// An axis counted from either end.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let resolved = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(resolved) {
            Ok(axis) if axis < rank => Ok(axis),
            _ => Err(self.misshapen(format!("axis {axis} of a value with {rank} axes"))),
        }
    }

    pub(super) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>> {
        axes.iter().map(|&axis| self.axis(axis, rank)).collect()
    }

    // Primitives.

    /// Applies a primitive; the result is of the first operand's kind.
    pub(super) fn emit(&mut self, op: impl Op + 'static, operands: &[&Operand]) -> Result<Operand> {
        let kind = operands.first().map_or(NumberKind::Float, |operand| self.kind(operand));
        self.emit_as(kind, op, operands)
    }

    /// Applies a primitive whose result is of this kind: at once if all operands are constants.
    pub(super) fn emit_as(
        &mut self,
        kind: NumberKind,
        op: impl Op + 'static,
        operands: &[&Operand],
    ) -> Result<Operand> {
        let hosts: Option<Vec<&Host>> =
            operands.iter().map(|o| if let Operand::Constant(host) = o { Some(host) } else { None }).collect();
        if let Some(hosts) = hosts {
            let metas: Vec<Meta> = hosts.iter().map(|host| Meta::shared(host.shape.clone())).collect();
            let metas: Vec<&Meta> = metas.iter().collect();
            let meta = infer(&op, &metas).map_err(|error| match error {
                InferError::Mixes => self.mixes(),
                InferError::Shape(reason) => self.misshapen(reason),
            })?;
            self.spend_constant(&meta.shape)?;
            let node = self.node;
            self.lowering.builder.budget().work(|| node.label(), op.flops(&metas, &meta))?;
            return Ok(Operand::Constant(evaluate(&op, &hosts, meta.shape, kind)));
        }
        if self.for_two {
            return Err(self.unsupported("not constant"));
        }
        let ids: Vec<ValueId> = operands.iter().map(|operand| self.value(operand)).collect::<Result<_>>()?;
        let id = self.lowering.builder.push_node(self.node.title(), &self.node.op, Arc::new(op), &ids)?;
        self.lowering.kinds.insert(id, kind);
        Ok(Operand::Value(id))
    }

    /// Checks that a shape is within the limits, before anything is allocated.
    pub(super) fn check_result(&self, shape: &[usize]) -> Result<()> {
        match count(shape) {
            Some(_) => Ok(()),
            None => Err(self.unsupported(format!("a result of shape {shape:?} is too large"))),
        }
    }

    /// Charges a constant of this shape to the budget, before anything is allocated.
    pub(super) fn spend_constant(&mut self, shape: &[usize]) -> Result<()> {
        self.check_result(shape)?;
        let node = self.node;
        let place = || format!("node {}, a constant of shape {shape:?}", node.label());
        self.lowering.builder.budget().spend_numbers(place, numel(shape))
    }

    /// An operand as a value of the graph.
    pub(super) fn value(&mut self, operand: &Operand) -> Result<ValueId> {
        match operand {
            Operand::Value(id) => Ok(*id),
            Operand::Constant(host) => {
                // Passes store another copy in their own scalar.
                let node = self.node;
                let place = || format!("node {}, a constant of shape {:?}", node.label(), host.shape);
                self.lowering.builder.budget().spend_numbers(place, host.data.len())?;
                let id = self.lowering.builder.shared_constant("", host.shape.clone(), Arc::clone(&host.data));
                self.lowering.kinds.insert(id, host.kind);
                Ok(id)
            }
        }
    }

    pub(super) fn scalar(value: f64) -> Operand {
        Operand::Constant(Host::new(vec![], vec![value], NumberKind::Float))
    }

    pub(super) fn set_batch(&mut self, operand: &Operand, batch: Option<Batch>) {
        if let (Operand::Value(id), Some(batch)) = (operand, batch) {
            self.lowering.builder.set_batch(*id, batch);
        }
    }

    /// A single result.
    pub(super) fn result(&self, operand: Operand) -> Result<Option<Results>> {
        let kind = self.kind(&operand);
        Ok(Some(vec![(operand, kind)]))
    }

    /// The batch size of the file, if it is fixed in its constants.
    pub(super) fn baked(&self) -> Option<usize> {
        self.lowering.baked
    }

    /// The constant operand for two samples, where it differs.
    pub(super) fn second(&self, index: usize) -> Option<Host> {
        self.node.inputs.get(index).and_then(|name| self.lowering.names.get(name)).and_then(|known| known.two.clone())
    }
}

/// The shortest decimal that parses to this `f32`: 1e-5 in a file is meant as 1e-5.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}
