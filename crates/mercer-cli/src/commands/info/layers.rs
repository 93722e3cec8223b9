//! The layers of a network: its primitives in order.

use mercer::net::graph::{Graph, Origin};
use serde::Serialize;

/// A primitive.
#[derive(Debug, Serialize)]
pub(super) struct Layer {
    /// The node of the file that it comes from.
    pub(super) name: String,
    /// The name of its result, for `predict --at`.
    pub(super) output: String,
    pub(super) primitive: &'static str,
    /// For one sample.
    pub(super) shape: Vec<usize>,
    pub(super) flops: u64,
    /// The parameters it uses directly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parameters: Vec<String>,
}

pub(super) fn layers(graph: &Graph) -> Vec<Layer> {
    let layer = |node: &mercer::net::graph::Node| {
        let output = graph.value(node.output);
        let inputs: Vec<_> = node.inputs.iter().map(|&id| graph.value(id)).collect();
        let metas: Vec<_> = inputs.iter().map(|value| &value.meta).collect();
        let parameters = inputs.iter().filter(|value| matches!(value.origin, Origin::Parameter(_)));
        Layer {
            name: node.name.clone(),
            output: output.name.clone(),
            primitive: node.op.name(),
            shape: output.meta.shape.clone(),
            flops: node.op.flops(&metas, &output.meta),
            parameters: parameters.map(|value| value.name.clone()).collect(),
        }
    };
    graph.nodes().iter().map(layer).collect()
}
