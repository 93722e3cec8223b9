//! The layers of a network: its primitives in order.

use crate::text::shape;
use mercer_net::graph::{Batch, Graph, Meta, Node, Origin};
use serde::Serialize;

/// A primitive.
#[derive(Clone, Debug, Serialize)]
pub struct LayerInfo {
    /// The node of the file that it comes from.
    pub name: String,
    /// The operator of that node.
    pub operator: String,
    /// The name of the result, for `predict --node`, if the file has one.
    pub output: String,
    /// What it computes.
    pub primitive: &'static str,
    /// Of the result for one sample.
    pub shape: Vec<usize>,
    /// The same, with the batch where the file has it.
    #[serde(skip)]
    pub shape_text: String,
    /// Floating-point operations for one sample.
    pub flops: u64,
    /// The parameters it uses directly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
}

/// A name, cut if it is unreasonably long, because it is printed once per use.
fn name(text: &str) -> String {
    const LONGEST: usize = 1000;
    text.chars().take(LONGEST).collect()
}

/// The primitives of a graph.
pub(super) fn layers(graph: &Graph) -> Vec<LayerInfo> {
    let layer = |node: &Node| {
        let output = graph.value(node.output);
        let inputs: Vec<_> = node.inputs.iter().map(|&id| graph.value(id)).collect();
        let metas: Vec<_> = inputs.iter().map(|value| &value.meta).collect();
        let parameters = inputs.iter().filter(|value| matches!(value.origin, Origin::Parameter(_)));
        LayerInfo {
            name: name(&node.name),
            operator: name(&node.operator),
            output: name(&output.name),
            primitive: node.op.name(),
            shape: output.meta.shape.clone(),
            shape_text: batched_shape(&output.meta),
            flops: node.op.flops(&metas, &output.meta),
            parameters: parameters.map(|value| name(&value.name)).collect(),
        }
    };
    graph.nodes().iter().map(layer).collect()
}

/// The shape with `batch` where the file has its batch axis: `[batch, 10]`, or `[batch·12, 32]` where heads are folded in.
pub(super) fn batched_shape(meta: &Meta) -> String {
    let axis = match &meta.batch {
        None => return shape(&meta.shape),
        Some(Batch::Untracked) => (meta.shape.first() == Some(&1)).then_some(0),
        Some(Batch::At(places)) => places.iter().map(|place| place.axis).min(),
    };
    let size = |(index, size): (usize, &usize)| match size {
        1 if axis == Some(index) => "batch".to_owned(),
        size if axis == Some(index) => format!("batch·{size}"),
        size => size.to_string(),
    };
    format!("[{}]", meta.shape.iter().enumerate().map(size).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_is_shown_where_it_is() {
        assert_eq!(batched_shape(&Meta::shared([2, 3])), "[2, 3]");
        assert_eq!(batched_shape(&Meta::batched([1, 3], Batch::axis(0))), "[batch, 3]");
        assert_eq!(batched_shape(&Meta::batched([5, 1, 3], Batch::axis(1))), "[5, batch, 3]");
        assert_eq!(batched_shape(&Meta::batched([12, 7], Batch::axis(0))), "[batch·12, 7]");
        assert_eq!(batched_shape(&Meta::batched([4], Batch::Untracked)), "[4]");
    }
}
