//! Forward mode: the directional derivative of every value along a direction in parameter or input space.

use super::{NodeOperands, Weights, Workspace};
use crate::element::Element;
use crate::graph::{Graph, Node, ValueId};
use crate::op::{Call, Directions, Scratch, Tangents};
use std::sync::Arc;

/// The memory of forward-mode passes over one graph.
#[derive(Debug)]
pub struct Tangent<T> {
    graph: Arc<Graph>,
    values: Vec<Vec<T>>,
    moves: Vec<bool>,
    scratch: Scratch<T>,
}

impl<T: Element> Tangent<T> {
    /// Memory for one graph.
    pub fn new(graph: Arc<Graph>) -> Self {
        let count = graph.values.len();
        Self { graph, values: vec![Vec::new(); count], moves: vec![false; count], scratch: Scratch::default() }
    }

    /// Propagates a direction through the last forward pass of `workspace`, which must keep all values.
    ///
    /// `parameters` has one direction per parameter and `inputs` one per input (`[samples, …]`); an empty slice means
    /// that it is held fixed.
    pub fn run(&mut self, workspace: &Workspace<T>, weights: &Weights<T>, parameters: &[&[T]], inputs: &[&[T]]) {
        let graph = Arc::clone(&self.graph);
        self.moves.fill(false);
        let leaves = graph.parameters.iter().zip(parameters).chain(graph.inputs.iter().zip(inputs));
        for (id, direction) in leaves.filter(|(_, direction)| !direction.is_empty()) {
            let count = if graph.value(*id).meta.is_batched() { workspace.samples } else { 1 };
            assert_eq!(direction.len(), count * graph.value(*id).meta.numel(), "size of a direction");
            self.values[id.0].clear();
            self.values[id.0].extend_from_slice(direction);
            self.moves[id.0] = true;
        }
        for node in &graph.nodes {
            if (0..node.inputs.len()).all(|which| self.along(node, which).is_none()) {
                continue;
            }
            let meta = &graph.value(node.output).meta;
            let results = if meta.is_batched() { workspace.samples } else { 1 };
            let mut dy = std::mem::take(&mut self.values[node.output.0]);
            dy.resize(results * meta.numel(), T::zero());
            let mut scratch = std::mem::take(&mut self.scratch);
            let operands = NodeOperands { graph: &graph, node, weights, workspace, with_result: true };
            let directions = NodeDirections { tangent: self, node };
            let call = Call::new(&operands, results);
            T::kernel(node.op.as_ref()).jvp(&call, &Tangents::new(&directions), &mut dy, &mut scratch);
            self.scratch = scratch;
            self.values[node.output.0] = dy;
            self.moves[node.output.0] = true;
        }
    }

    /// The tangent of a node's operand, if the node passes it on.
    fn along(&self, node: &Node, which: usize) -> Option<&[T]> {
        let id = node.inputs[which];
        (self.moves[id.0] && node.op.differentiable(which)).then(|| self.values[id.0].as_slice())
    }

    /// The tangent of a value: `[samples, …]`, once if it is shared, empty if it is held fixed.
    pub fn get(&self, id: ValueId) -> &[T] {
        if self.moves[id.0] { &self.values[id.0] } else { &[] }
    }
}

struct NodeDirections<'a, T> {
    tangent: &'a Tangent<T>,
    node: &'a Node,
}

impl<T: Element> Directions<T> for NodeDirections<'_, T> {
    fn direction(&self, index: usize) -> Option<&[T]> {
        self.tangent.along(self.node, index)
    }
}
