//! The graph: primitives in execution order, and the values between them.
//!
//! A graph is a function of **one sample**. Values are either *shared* (parameters, constants, and values computed from
//! them alone) or *batched* (everything that depends on an input). At run time, batched values have shape
//! `[samples, …shape]`.
//!
//! ```
//! use mercer_net::graph::{Batch, GraphBuilder};
//! use mercer_net::op::{Function, Unary};
//!
//! let mut builder = GraphBuilder::new();
//! let x = builder.input("x", [1, 2], Batch::axis(0));
//! let y = builder.node("size", Unary(Function::Abs), &[x])?;
//! builder.output("y", y);
//! let graph = builder.finish();
//! assert_eq!((graph.nodes().len(), &graph.outputs()[0].0[..]), (1, "y"));
//! # Ok::<(), mercer_net::NetError>(())
//! ```

mod batch;
mod builder;
mod limits;

pub use batch::{Batch, Mixes, Position, meet_all};
pub use builder::GraphBuilder;
pub(crate) use limits::{count, infer};

use crate::op::Op;
use crate::shape::numel;
use std::sync::{Arc, OnceLock};

/// An index into the values of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) usize);

impl ValueId {
    /// The position among the graph's values.
    pub fn index(self) -> usize {
        self.0
    }
}

/// The shape of a value for one sample, and whether there is one per sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The shape for one sample.
    pub shape: Vec<usize>,
    /// Where the file's batch axis is; `None` for a value shared by all samples.
    pub batch: Option<Batch>,
}

impl Meta {
    /// A value shared by all samples.
    pub fn shared(shape: impl Into<Vec<usize>>) -> Self {
        Self { shape: shape.into(), batch: None }
    }

    /// A value that differs between samples.
    pub fn batched(shape: impl Into<Vec<usize>>, batch: Batch) -> Self {
        Self { shape: shape.into(), batch: Some(batch) }
    }

    /// The number of elements for one sample.
    pub fn numel(&self) -> usize {
        numel(&self.shape)
    }

    /// Whether each sample has its own.
    pub fn is_batched(&self) -> bool {
        self.batch.is_some()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The network's input of this index.
    Input(usize),
    /// The parameter of this index.
    Parameter(usize),
    /// The constant of this index.
    Constant(usize),
    /// The result of the node of this index.
    Node(usize),
}

/// A value of the graph.
#[derive(Clone, Debug)]
pub struct Value {
    /// The name from the file or the builder.
    pub name: String,
    /// Shape and batch.
    pub meta: Meta,
    /// Where it comes from.
    pub origin: Origin,
}

/// A primitive applied to values.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it computes.
    pub op: Arc<dyn Op>,
    /// Its operands.
    pub inputs: Vec<ValueId>,
    /// Its result.
    pub output: ValueId,
    /// The name of the file's node from which it comes.
    pub name: String,
    /// The file's operator from which it comes, or the primitive.
    pub operator: String,
}

impl Node {
    /// The label in errors and reports: `"name" (operator)`.
    pub fn label(&self) -> String {
        label(&self.name, &self.operator)
    }
}

pub(crate) fn label(name: &str, operator: &str) -> String {
    format!("{:?} ({})", shortened(name), shortened(operator))
}

/// A name, shortened for messages: names in files may have any length.
pub(crate) fn shortened(name: &str) -> std::borrow::Cow<'_, str> {
    const LONGEST: usize = 200;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]).into(),
        None => name.into(),
    }
}

/// A network as a function of one sample.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) values: Vec<Value>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<(String, ValueId)>,
    pub(crate) parameters: Vec<ValueId>,
    pub(crate) constants: Vec<Arc<Vec<f64>>>,
    /// The constants that training measures.
    pub(crate) statistics: Vec<ValueId>,
    /// Computed on first use; a builder resets it.
    pub(super) uses: OnceLock<Uses>,
}

/// The nodes that use each value: those of value `v` are `nodes[starts[v]..starts[v + 1]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    starts: Vec<usize>,
    nodes: Vec<usize>,
}

impl Uses {
    fn find(graph: &Graph) -> Self {
        let mut starts = vec![0; graph.values.len() + 1];
        let operands =
            || graph.nodes.iter().enumerate().flat_map(|(at, node)| node.inputs.iter().map(move |id| (at, id)));
        operands().for_each(|(_, id)| starts[id.0 + 1] += 1);
        (1..starts.len()).for_each(|value| starts[value] += starts[value - 1]);
        let mut next = starts.clone();
        let mut nodes = vec![0; starts.last().copied().unwrap_or(0)];
        for (at, id) in operands() {
            nodes[next[id.0]] = at;
            next[id.0] += 1;
        }
        Self { starts, nodes }
    }
}

impl Graph {
    /// All values; a node's operands come before its result.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The primitives, in execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// The outputs with their names, in order.
    pub fn outputs(&self) -> &[(String, ValueId)] {
        &self.outputs
    }

    /// The value of each parameter, in order.
    pub fn parameters(&self) -> &[ValueId] {
        &self.parameters
    }

    /// For each value, whether it depends on a parameter.
    pub fn parametrised(&self) -> Vec<bool> {
        let mut found = vec![false; self.values.len()];
        self.parameters.iter().for_each(|id| found[id.index()] = true);
        for node in &self.nodes {
            found[node.output.index()] = node.inputs.iter().any(|id| found[id.index()]);
        }
        found
    }

    /// The numbers of a constant; `None` for any other value.
    pub fn constant(&self, id: ValueId) -> Option<&[f64]> {
        match self.value(id).origin {
            Origin::Constant(index) => Some(&self.constants[index]),
            _ => None,
        }
    }

    /// The running statistics: constants that training measures, such as means and variances of batches. The graph
    /// holds their initial numbers, and [`Weights`](crate::run::Weights) the present ones.
    pub fn statistics(&self) -> &[ValueId] {
        &self.statistics
    }

    /// The value of this name, or the result of the file's node of this name.
    pub fn find(&self, name: &str) -> Option<ValueId> {
        let by_value = self.values.iter().rposition(|value| value.name == name).map(ValueId);
        by_value.or_else(|| self.nodes.iter().rev().find(|node| node.name == name).map(|node| node.output))
    }

    /// The graph with this value as its only output, without the nodes that it does not need.
    pub fn until(&self, value: ValueId) -> Self {
        let mut graph = self.clone();
        graph.outputs = vec![(self.value(value).name.clone(), value)];
        graph.retain_needed();
        graph
    }

    /// Drops the nodes that no output needs. Parameters stay, used or not.
    fn retain_needed(&mut self) {
        let mut needed = vec![false; self.values.len()];
        self.outputs.iter().for_each(|(_, id)| needed[id.0] = true);
        for node in self.nodes.iter().rev() {
            if needed[node.output.0] {
                node.inputs.iter().for_each(|id| needed[id.0] = true);
            }
        }
        self.nodes.retain(|node| needed[node.output.0]);
        for (index, node) in self.nodes.iter().enumerate() {
            self.values[node.output.0].origin = Origin::Node(index);
        }
        self.uses = std::sync::OnceLock::new();
    }

    /// The nodes that use a value, in order. A node appears once for each use.
    pub fn uses(&self, id: ValueId) -> &[usize] {
        let uses = self.uses.get_or_init(|| Uses::find(self));
        &uses.nodes[uses.starts[id.0]..uses.starts[id.0 + 1]]
    }

    pub(crate) fn metas(&self, node: &Node) -> Vec<&Meta> {
        node.inputs.iter().map(|&id| &self.value(id).meta).collect()
    }

    /// Floating-point operations of a forward pass of one sample (a multiply and an add count as two).
    pub fn flops(&self) -> u64 {
        self.nodes.iter().map(|node| self.node_flops(node)).fold(0, u64::saturating_add)
    }

    /// Floating-point operations of one primitive for one sample.
    pub fn node_flops(&self, node: &Node) -> u64 {
        node.op.flops(&self.metas(node), &self.value(node.output).meta)
    }
}
