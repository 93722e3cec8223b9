//! What the nodes of a file say about its end and its parameters, for training it again.

use super::file::File;
use super::{Network, Source};
use crate::onnx::{Model, NodeDef};

/// The most constant operands between a parameter and its product.
const DEPTH: usize = 16;

impl Network {
    /// The value in front of the last dense layer of a file, by name; the first output if the file does not end in a
    /// dense layer, as networks that embed samples do not. `None` for networks that are not from a file.
    pub fn last_hidden(&self) -> Option<String> {
        match &self.source {
            Source::File(file) => hidden(file),
            Source::Built(_) => None,
        }
    }

    /// Whether a parameter multiplies what it is applied to: the scale of a normalisation.
    pub fn is_scale(&self, parameter: &str) -> bool {
        let Source::File(file) = &self.source else { return false };
        file.model.graph.nodes.iter().any(|node| match node.op.as_str() {
            "Mul" => node.inputs.iter().any(|name| name == parameter),
            op if op.ends_with("Normalization") => node.inputs.get(1).is_some_and(|name| name == parameter),
            _ => false,
        })
    }
}

fn hidden(file: &File) -> Option<String> {
    let model = &file.model;
    let output = model.graph.outputs.first()?.name.clone();
    let mut name = output.clone();
    for _ in 0..DEPTH {
        let Some(node) = producer(model, &name) else { break };
        let constant: Vec<bool> = node.inputs.iter().map(|input| is_constant(file, input, DEPTH)).collect();
        name = match (node.op.as_str(), &node.inputs[..], &constant[..]) {
            ("Gemm" | "MatMul", [x, _, ..], [false, true, ..]) | ("MatMul", [_, x], [true, false]) => {
                return Some(x.clone());
            }
            ("Add" | "Mul", [x, _], [false, true]) | ("Add" | "Mul", [_, x], [true, false]) => x.clone(),
            ("Identity" | "Softmax" | "LogSoftmax" | "Sigmoid" | "Cast" | "Dropout", [x, ..], _) => x.clone(),
            _ => break,
        };
    }
    Some(output)
}

fn producer<'a>(model: &'a Model, name: &str) -> Option<&'a NodeDef> {
    model.graph.nodes.iter().find(|node| node.outputs.iter().any(|output| output == name))
}

/// Whether a value is a tensor of the file, or made from tensors of the file alone.
fn is_constant(file: &File, name: &str, depth: usize) -> bool {
    let is_tensor = |name: &str| file.detection.tensors.iter().any(|detected| detected.tensor.name == name);
    if is_tensor(name) || file.model.graph.initializers.iter().any(|tensor| tensor.name == name) {
        return true;
    }
    depth > 0
        && producer(&file.model, name)
            .is_some_and(|node| node.inputs.iter().all(|input| is_constant(file, input, depth - 1)))
}
