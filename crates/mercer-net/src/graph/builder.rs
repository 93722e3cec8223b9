//! Building a graph node by node. Shapes are inferred and checked as nodes are added.

use super::limits::{MAX_TOTAL, infer};
use super::{Batch, Graph, Meta, Node, Origin, Value, ValueId, label};
use crate::budget::Budget;
use crate::error::{NetError, Result};
use crate::op::{InferError, Op};
use crate::shape::numel;
use std::sync::Arc;

/// Bytes of a node and its result: the primitive, the entries in name tables, and the bookkeeping of the passes.
const NODE_BYTES: usize = 512;

/// Builds a [`Graph`]. Every node's shape is inferred when it is added, so every existing graph is consistent.
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    /// Elements of all results so far.
    total: usize,
    budget: Budget,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty graph for an untrusted network.
    pub(crate) fn within(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn push(&mut self, name: String, meta: Meta, origin: Origin) -> ValueId {
        self.graph.values.push(Value { name, meta, origin });
        ValueId(self.graph.values.len() - 1)
    }

    /// An input whose samples have this shape.
    pub fn input(&mut self, name: impl Into<String>, shape: impl Into<Vec<usize>>, batch: Batch) -> ValueId {
        let origin = Origin::Input(self.graph.inputs.len());
        let id = self.push(name.into(), Meta::batched(shape, batch), origin);
        self.graph.inputs.push(id);
        id
    }

    /// A parameter of this shape. Its values are passed to every run.
    pub fn parameter(&mut self, name: impl Into<String>, shape: impl Into<Vec<usize>>) -> ValueId {
        let origin = Origin::Parameter(self.graph.parameters.len());
        let id = self.push(name.into(), Meta::shared(shape), origin);
        self.graph.parameters.push(id);
        id
    }

    /// A constant.
    pub fn constant(&mut self, name: impl Into<String>, shape: impl Into<Vec<usize>>, data: Vec<f64>) -> ValueId {
        self.shared_constant(name, shape, Arc::new(data))
    }

    /// A constant that shares its numbers with another owner.
    pub(crate) fn shared_constant(
        &mut self,
        name: impl Into<String>,
        shape: impl Into<Vec<usize>>,
        data: Arc<Vec<f64>>,
    ) -> ValueId {
        let shape = shape.into();
        assert_eq!(numel(&shape), data.len(), "a constant has as many elements as its shape says");
        let origin = Origin::Constant(self.graph.constants.len());
        self.graph.constants.push(data);
        self.push(name.into(), Meta::shared(shape), origin)
    }

    /// A constant that training measures, with its initial numbers.
    pub fn statistic(&mut self, name: impl Into<String>, shape: impl Into<Vec<usize>>, data: Vec<f64>) -> ValueId {
        let id = self.constant(name, shape, data);
        self.graph.statistics.push(id);
        id
    }

    /// A scalar constant.
    pub fn scalar(&mut self, value: f64) -> ValueId {
        self.constant("", [], vec![value])
    }

    /// Applies a primitive; `name` names the node and its result.
    pub fn node(&mut self, name: &str, op: impl Op + 'static, inputs: &[ValueId]) -> Result<ValueId> {
        let operator = op.name();
        self.push_node(name, operator, Arc::new(op), inputs)
    }

    /// Applies a primitive that implements part of a file's operator.
    pub fn push_node(&mut self, name: &str, operator: &str, op: Arc<dyn Op>, inputs: &[ValueId]) -> Result<ValueId> {
        let node = || label(name, operator);
        let metas: Vec<&Meta> = inputs.iter().map(|&id| &self.graph.value(id).meta).collect();
        let meta = infer(op.as_ref(), &metas).map_err(|error| match error {
            InferError::Mixes => NetError::MixesSamples { node: node() },
            InferError::Shape(reason) => {
                let shapes: Vec<_> = metas.iter().map(|meta| format!("{:?}", meta.shape)).collect();
                NetError::Shape { node: node(), reason: format!("{reason} (operands {})", shapes.join(", ")) }
            }
        })?;
        self.total = self.total.saturating_add(meta.numel());
        if self.total > MAX_TOTAL {
            let reason = format!("a result of shape {:?} for one sample is too large", meta.shape);
            return Err(NetError::Shape { node: node(), reason });
        }
        // Values shared by all samples live as long as the network.
        let shared = if meta.is_batched() { 0 } else { meta.numel().saturating_mul(size_of::<f64>()) };
        let words = 2 * name.len() + operator.len() + (inputs.len() + 2 * meta.rank()) * size_of::<usize>();
        self.budget.spend(|| format!("node {}", node()), shared.saturating_add(NODE_BYTES + words))?;
        let origin = Origin::Node(self.graph.nodes.len());
        let output = self.push(name.to_owned(), meta, origin);
        self.graph.nodes.push(Node {
            op,
            inputs: inputs.to_vec(),
            output,
            name: name.to_owned(),
            operator: operator.to_owned(),
        });
        Ok(output)
    }

    /// The shape of a value for one sample.
    pub fn shape(&self, id: ValueId) -> &[usize] {
        &self.graph.value(id).meta.shape
    }

    /// Shape and batch of a value.
    pub fn meta(&self, id: ValueId) -> &Meta {
        &self.graph.value(id).meta
    }

    /// Replaces what is known about the batch axis of a value, where the file says more than the primitive.
    pub fn set_batch(&mut self, id: ValueId, batch: Batch) {
        let meta = &mut self.graph.values[id.0].meta;
        if meta.batch.is_some() {
            meta.batch = Some(batch);
        }
    }

    /// Renames a value.
    pub fn rename(&mut self, id: ValueId, name: impl Into<String>) {
        self.graph.values[id.0].name = name.into();
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Declares an output.
    pub fn output(&mut self, name: impl Into<String>, id: ValueId) {
        self.graph.outputs.push((name.into(), id));
    }

    /// The finished graph, without the nodes that no output needs. Parameters stay, used or not.
    pub fn finish(mut self) -> Graph {
        self.graph.retain_needed();
        self.graph
    }
}
