//! The surroundings of a node: where its operands come from, what uses its result, and what the exporter recorded.

use super::model::{GraphDef, Model, NodeDef};
use super::record::{Call, Signature};
use std::collections::{HashMap, HashSet};

/// The program that wrote a file, as far as its conventions matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exporter {
    /// PyTorch by tracing (`dynamo=False`).
    TorchTracing,
    /// PyTorch by `torch.export` (`dynamo=True`).
    TorchExport,
    /// Mercer, which never merges.
    Own,
    Other,
}

impl Exporter {
    pub(super) fn detect(model: &Model) -> Self {
        let exported = |node: &NodeDef| node.call.is_some() || node.name.starts_with("node_");
        match model.producer.as_str() {
            "pytorch" if model.graph.nodes.iter().any(exported) => Self::TorchExport,
            "pytorch" => Self::TorchTracing,
            "mercer" => Self::Own,
            _ => Self::Other,
        }
    }

    pub(super) fn is_torch(self) -> bool {
        matches!(self, Self::TorchTracing | Self::TorchExport)
    }
}

/// Whether PyTorch's exporters invented this name. State of the module keeps its own name.
pub(super) fn is_made_up(name: &str) -> bool {
    let numbered = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.strip_prefix("val_").unwrap_or(name);
    name.contains("::") || name.contains('/') || numbered(name)
}

/// How many scales and views are followed.
const STEPS: usize = 8;

/// A graph that can be walked in both directions.
pub(super) struct Around<'a> {
    pub(super) nodes: &'a [NodeDef],
    pub(super) exporter: Exporter,
    pub(super) signature: Signature<'a>,
    makers: HashMap<&'a str, usize>,
    users: HashMap<&'a str, Vec<usize>>,
    /// Values that depend on the inputs.
    moving: HashSet<&'a str>,
}

impl<'a> Around<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let graph: &GraphDef = &model.graph;
        let (mut makers, mut users) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
        let given: HashSet<&str> = graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
        let inputs = graph.inputs.iter().map(|input| input.name.as_str());
        let mut moving: HashSet<&str> = inputs.filter(|name| !given.contains(name)).collect();
        for (index, node) in graph.nodes.iter().enumerate() {
            makers.extend(node.outputs.iter().map(|name| (name.as_str(), index)));
            node.inputs.iter().for_each(|name| users.entry(name).or_default().push(index));
            // Shapes do not depend on the data.
            let is_size = matches!(node.op.as_str(), "Shape" | "Size");
            if !is_size && node.inputs.iter().any(|name| moving.contains(name.as_str())) {
                moving.extend(node.outputs.iter().map(String::as_str));
            }
        }
        let (exporter, signature) = (Exporter::detect(model), Signature::read(graph));
        Self { nodes: &graph.nodes, exporter, signature, makers, users, moving }
    }

    pub(super) fn maker(&self, value: &str) -> Option<&'a NodeDef> {
        self.makers.get(value).map(|&index| &self.nodes[index])
    }

    /// The only node that uses a value.
    fn only_user(&self, value: &str) -> Option<&'a NodeDef> {
        match self.users.get(value).map(Vec::as_slice) {
            Some([index]) => Some(&self.nodes[*index]),
            _ => None,
        }
    }

    /// The operand that depends on the data, if there is exactly one.
    fn moving_operand<'n>(&self, node: &'n NodeDef) -> Option<&'n str> {
        let mut moving = node.inputs.iter().map(String::as_str).filter(|name| self.moving.contains(name));
        moving.next().filter(|_| moving.next().is_none())
    }

    /// Whether a value is a product with weights, possibly scaled or reshaped.
    fn is_product(&self, value: &'a str) -> bool {
        let mut value = value;
        for _ in 0..STEPS {
            let Some(node) = self.maker(value) else { return false };
            let operand = match node.op.as_str() {
                "MatMul" | "Gemm" | "Conv" | "ConvTranspose" => return self.moving_operand(node).is_some(),
                "Mul" | "Div" => self.moving_operand(node),
                op if is_view(op) => node.inputs.first().map(String::as_str),
                _ => None,
            };
            let Some(operand) = operand else { return false };
            value = operand;
        }
        false
    }

    /// Whether an operand of a node, possibly scaled or reshaped, is added to a product.
    pub(super) fn is_added_to_product(&self, node: &'a NodeDef, which: usize) -> bool {
        let (mut node, mut which) = (node, which);
        for _ in 0..STEPS {
            match node.op.as_str() {
                "Add" | "Sub" | "Sum" => return self.moving_operand(node).is_some_and(|other| self.is_product(other)),
                // The scalar is the scale and the other operand the bias, not the other way round.
                "Mul" if self.moving_operand(node).is_none() => {}
                "Div" if which == 0 && self.moving_operand(node).is_none() => {}
                op if which == 0 && (is_view(op) || op == "Neg") => {}
                _ => return false,
            }
            let Some(result) = node.outputs.first() else { return false };
            let Some(user) = self.only_user(result) else { return false };
            which = user.inputs.iter().position(|name| name == result).unwrap_or(0);
            node = user;
        }
        false
    }

    /// Whether a normalisation is the core of a decomposed GroupNorm: between two reshapes, followed by scale and
    /// shift.
    pub(super) fn is_inside_group(&self, node: &'a NodeDef) -> bool {
        let is = |node: &NodeDef, op: &str| node.op == op;
        let before = node.inputs.first().and_then(|input| self.maker(input));
        let after = node.outputs.first().and_then(|output| self.only_user(output));
        let (Some(before), Some(after)) = (before, after) else { return false };
        let affine = after.outputs.first().and_then(|output| self.only_user(output));
        let scales = |user: &NodeDef| matches!(user.op.as_str(), "Mul" | "Add") && self.moving_operand(user).is_some();
        is(before, "Reshape") && is(after, "Reshape") && affine.is_some_and(scales)
    }

    /// Whether the call that a node implements takes a single value. Other numbers then belong to the formula, not to
    /// the module.
    pub(super) fn takes_data_alone(&self, node: &'a NodeDef) -> bool {
        let data = node.inputs.iter().any(|name| self.moving.contains(name.as_str()));
        data && Call::read(node).is_some_and(|call| call.operands().count() == 1)
    }
}

/// Operators that only change the shape or type.
fn is_view(op: &str) -> bool {
    matches!(
        op,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand" | "Transpose" | "Cast" | "CastLike" | "Identity"
    )
}
