//! Which values of a graph a reverse pass needs.

use super::Target;
use crate::graph::{Graph, Origin, ValueId};

/// The values whose cotangent a pass needs: they depend on a requested parameter or input, and the output depends on
/// them. These shared values count as requested.
pub(super) fn active_values(graph: &Graph, target: &Target, shared: &[ValueId]) -> Vec<bool> {
    let mut depends = vec![false; graph.values.len()];
    shared.iter().for_each(|id| depends[id.0] = true);
    for (&id, &wanted) in graph.parameters.iter().zip(&target.parameters) {
        depends[id.0] = wanted;
    }
    if target.inputs {
        graph.inputs.iter().for_each(|id| depends[id.0] = true);
    }
    for node in &graph.nodes {
        let moves = node.inputs.iter().enumerate().any(|(which, id)| depends[id.0] && node.op.differentiable(which));
        depends[node.output.0] = moves;
    }
    let mut reaches = vec![false; graph.values.len()];
    reaches[target.output.0] = true;
    for node in graph.nodes.iter().rev().filter(|node| depends[node.output.0]) {
        if reaches[node.output.0] {
            for (which, id) in node.inputs.iter().enumerate() {
                reaches[id.0] |= node.op.differentiable(which);
            }
        }
    }
    depends.iter().zip(&reaches).map(|(&a, &b)| a && b).collect()
}

/// The uses of each parameter by nodes that are active: node and operand.
pub(super) fn parameter_uses(graph: &Graph, active: &[bool]) -> Vec<Vec<(usize, usize)>> {
    let mut uses = vec![Vec::new(); graph.parameters.len()];
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| active[node.output.0]) {
        for (which, id) in node.inputs.iter().enumerate() {
            if let Origin::Parameter(parameter) = graph.value(*id).origin {
                uses[parameter].push((index, which));
            }
        }
    }
    uses
}

/// For every value, the value whose cotangent memory it uses. A view that is the only use of its operand shares the
/// operand's memory.
pub(super) fn cotangent_roots(graph: &Graph, active: &[bool]) -> Vec<usize> {
    let mut uses = vec![0usize; graph.values.len()];
    for node in graph.nodes.iter().filter(|node| active[node.output.0]) {
        node.inputs.iter().for_each(|id| uses[id.0] += 1);
    }
    let mut root: Vec<usize> = (0..graph.values.len()).collect();
    for node in graph.nodes.iter().filter(|node| active[node.output.0] && node.op.is_view()) {
        let source = node.inputs[0];
        if active[source.0] && uses[source.0] == 1 && graph.value(source).meta.is_batched() {
            root[node.output.0] = root[source.0];
        }
    }
    root
}
