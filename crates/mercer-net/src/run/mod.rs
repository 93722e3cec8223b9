//! Running a graph: forward, reverse and forward-mode passes over reused memory.
//!
//! A pass is sequential and allocates nothing once it has seen its largest batch. Parallelism lives above, across
//! shards of samples, so that results do not depend on the number of threads.
//!
//! ```
//! use mercer_net::arch::Mlp;
//! use mercer_net::run::{Keep, Reverse, Target, Workspace};
//!
//! let network = Mlp::new(2, &[4], 1).build(0)?;
//! let graph = network.declared_graph()?;
//! let weights = network.weights::<f64>(&graph);
//! let mut forward = Workspace::new(graph.clone(), &Keep::All);
//! forward.forward(&weights, &[&[0.5, -1.0, 1.0, 2.0]], 2)?;
//! assert_eq!(forward.get(&weights, graph.outputs()[0].1).len(), 2);
//! // The gradient of the sum of both outputs.
//! let mut reverse = Reverse::new(graph.clone(), Target::all(&graph));
//! reverse.summed(&forward, &weights, &[1.0, 1.0]);
//! assert_eq!(reverse.gradient(0).len(), 8);
//! # Ok::<(), mercer_net::NetError>(())
//! ```

mod dependence;
mod factor;
mod fingerprint;
mod forward;
mod reverse;
mod slots;
mod tangent;

pub use factor::{Factor, Factors};
pub use forward::{Keep, Workspace};
pub(crate) use forward::{check_memory, out_of_memory, too_large};
pub use reverse::{Reverse, Target};
pub use tangent::Tangent;

use crate::element::Element;
use crate::graph::{Graph, Node, Origin, ValueId};
use crate::op::{Arg, Operands};

/// The numbers of a network in one scalar: parameters in the order of the graph, and its constants.
#[derive(Clone, Debug)]
pub struct Weights<T> {
    /// The parameters' elements, row-major.
    pub parameters: Vec<Vec<T>>,
    constants: Vec<Vec<T>>,
}

impl<T: Element> Weights<T> {
    /// Pairs parameters with the constants of a graph.
    ///
    /// # Panics
    /// If the sizes are not the graph's.
    pub fn new(graph: &Graph, parameters: Vec<Vec<T>>) -> Self {
        assert_eq!(parameters.len(), graph.parameters.len(), "one array per parameter");
        for (array, &id) in parameters.iter().zip(&graph.parameters) {
            assert_eq!(array.len(), graph.value(id).meta.numel(), "size of {}", graph.value(id).name);
        }
        let constants = graph.constants.iter().map(|data| data.iter().map(|&x| T::narrow(x)).collect()).collect();
        Self { parameters, constants }
    }

    /// The running statistics, in the order of [`Graph::statistics`].
    pub fn statistics<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a [T]> {
        graph.statistics.iter().map(|&id| self.leaf(graph.value(id).origin).unwrap_or_default())
    }

    /// Replaces a running statistic.
    ///
    /// # Panics
    /// If the value is not a constant of this size.
    pub(crate) fn set_statistic(&mut self, graph: &Graph, id: ValueId, numbers: &[T]) {
        let Origin::Constant(index) = graph.value(id).origin else { panic!("statistics are constants") };
        self.constants[index].copy_from_slice(numbers);
    }

    pub(crate) fn leaf(&self, origin: Origin) -> Option<&[T]> {
        match origin {
            Origin::Parameter(index) => Some(&self.parameters[index]),
            Origin::Constant(index) => Some(&self.constants[index]),
            Origin::Input(_) | Origin::Node(_) => None,
        }
    }
}

/// The operands of a node, from the weights and the workspace.
struct NodeOperands<'a, T> {
    graph: &'a Graph,
    node: &'a Node,
    weights: &'a Weights<T>,
    workspace: &'a Workspace<T>,
    /// Whether the result's data are available.
    with_result: bool,
}

impl<T: Element> NodeOperands<'_, T> {
    fn lookup(&self, id: ValueId) -> Arg<'_, T> {
        let value = self.graph.value(id);
        let data = self.workspace.get(self.weights, id);
        Arg { data, shape: &value.meta.shape, batched: value.meta.is_batched() }
    }
}

impl<T: Element> Operands<T> for NodeOperands<'_, T> {
    fn operand(&self, index: usize) -> Arg<'_, T> {
        self.lookup(self.node.inputs[index])
    }

    fn count(&self) -> usize {
        self.node.inputs.len()
    }

    fn result(&self) -> Arg<'_, T> {
        if self.with_result {
            return self.lookup(self.node.output);
        }
        let meta = &self.graph.value(self.node.output).meta;
        Arg { data: &[], shape: &meta.shape, batched: meta.is_batched() }
    }
}
