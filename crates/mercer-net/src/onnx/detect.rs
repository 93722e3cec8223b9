//! Which tensors of a file are parameters.
//!
//! A parameter is a floating-point initialiser that acts as a weight, bias, scale or embedding. Statistics of batch
//! normalisation, scalars of formulas, limits and masks are constants. The reason is kept for the user.

use super::model::{Attribute, GraphDef, NodeDef};
use super::tensor::{Data, Tensor};
use std::collections::{HashMap, HashSet};

/// A floating-point tensor of the file and what it was taken for.
#[derive(Clone, Debug)]
pub(crate) struct Detected {
    pub(crate) tensor: Tensor,
    pub(crate) is_parameter: bool,
    pub(crate) reason: String,
    /// The parameter whose numbers these are.
    pub(crate) tied: Option<Tied>,
}

/// A copy of a parameter: exporters write an embedding that is also the output layer twice, the second time transposed.
#[derive(Clone, Debug)]
pub(crate) struct Tied {
    pub(crate) to: String,
    pub(crate) transposed: bool,
}

/// How a use of a tensor speaks for or against its being a parameter.
enum Verdict {
    Parameter(&'static str),
    Constant(&'static str),
}

fn verdict(node: &NodeDef, which: usize, tensor: &Tensor, from_node: bool, after_product: bool) -> Verdict {
    use Verdict::{Constant, Parameter};
    match (node.op.as_str(), which) {
        ("Conv" | "ConvTranspose", 1) | ("Gemm" | "MatMul", 0 | 1) => Parameter("weight"),
        ("Conv" | "ConvTranspose", 2) | ("Gemm", 2) => Parameter("bias"),
        _ if from_node => Constant("value of a Constant node"),
        ("BatchNormalization", 1) => Parameter("scale of normalisation"),
        ("BatchNormalization", 2) => Parameter("shift of normalisation"),
        ("BatchNormalization", _) => Constant("running statistic"),
        (op, 1) if op.ends_with("Normalization") => Parameter("scale of normalisation"),
        (op, 2) if op.ends_with("Normalization") => Parameter("shift of normalisation"),
        ("Gather" | "GatherElements" | "GatherND", 0) => Parameter("embedding"),
        ("PRelu", 1) => Parameter("slope"),
        ("Add" | "Sub" | "Mul" | "Div" | "Sum" | "Pow" | "Min" | "Max" | "Where" | "Equal", _) => {
            if tensor.shape.is_empty() || (tensor.numel() == 1 && !after_product) {
                Constant("scalar of a formula")
            } else if is_mask(tensor) {
                Constant("mask")
            } else if matches!(node.op.as_str(), "Pow" | "Min" | "Max" | "Where" | "Equal") {
                Constant("operand of a comparison or power")
            } else if matches!(node.op.as_str(), "Mul" | "Div") {
                Parameter("scale")
            } else {
                Parameter("bias")
            }
        }
        ("Concat" | "Expand" | "Tile" | "Transpose" | "Reshape" | "Slice" | "Split" | "Squeeze" | "Unsqueeze", 0..)
        | ("Identity" | "Cast" | "Flatten" | "ReduceSum" | "ReduceMean" | "ReduceL2", 0) => {
            if which > 0 && node.op != "Concat" {
                Constant("argument of the operator")
            } else if tensor.numel() <= 1 {
                Constant("scalar of a formula")
            } else {
                Parameter("used through other operators")
            }
        }
        _ => Constant("argument of the operator"),
    }
}

/// Attention masks are made of zeros and very negative numbers.
fn is_mask(tensor: &Tensor) -> bool {
    let masked = |x: f64| x <= -1e4;
    match &tensor.data {
        Data::F32(values) => {
            values.iter().all(|&x| x == 0.0 || masked(x.into())) && values.iter().any(|&x| masked(x.into()))
        }
        Data::F64(values) => values.iter().all(|&x| x == 0.0 || masked(x)) && values.iter().any(|&x| masked(x)),
        _ => false,
    }
}

/// All floating-point tensors of the file that nodes use, in the order of the file.
pub(crate) fn detect(graph: &GraphDef) -> Vec<Detected> {
    let mut found: Vec<Detected> = Vec::new();
    let mut index: HashMap<&str, (usize, bool)> = HashMap::new();
    let mut add = |name: &str, tensor: &Tensor| {
        let tensor = Tensor { name: name.to_owned(), ..tensor.clone() };
        found.push(Detected { tensor, is_parameter: false, reason: "not used".to_owned(), tied: None });
        found.len() - 1
    };
    for tensor in graph.initializers.iter().filter(|tensor| tensor.is_float()) {
        let at = add(&tensor.name, tensor);
        index.insert(&tensor.name, (at, false));
    }
    for node in graph.nodes.iter().filter(|node| node.op == "Constant") {
        if let (Some(Attribute::Tensor(tensor)), Some(name)) = (node.attribute("value"), node.outputs.first())
            && tensor.is_float()
            && tensor.numel() > 1
        {
            let at = add(name, tensor);
            index.insert(name, (at, true));
        }
    }
    let is_product = |node: &&NodeDef| matches!(node.op.as_str(), "MatMul" | "Conv" | "Gemm");
    let products: HashSet<&String> = graph.nodes.iter().filter(is_product).flat_map(|node| &node.outputs).collect();
    for node in &graph.nodes {
        for (which, name) in node.inputs.iter().enumerate() {
            let Some(&(at, from_node)) = index.get(name.as_str()) else { continue };
            let tensor = &found[at].tensor;
            let after_product =
                tensor.numel() == 1 && node.inputs.iter().any(|other| other != name && products.contains(other));
            let (is_parameter, role) = match verdict(node, which, tensor, from_node, after_product) {
                Verdict::Parameter(role) => (true, role),
                Verdict::Constant(role) => (false, role),
            };
            let entry = &mut found[at];
            // One use as a parameter is enough.
            if entry.reason == "not used" || (is_parameter && !entry.is_parameter) {
                entry.is_parameter = is_parameter;
                entry.reason = format!("{role} of {}", node.label());
            }
        }
    }
    tie(&mut found);
    found
}

/// Finds weights that are copies of an embedding: one weight used twice counts once.
fn tie(found: &mut [Detected]) {
    let is = |detected: &Detected, role: &str| {
        detected.is_parameter && detected.tensor.shape.len() == 2 && detected.reason.starts_with(role)
    };
    let tables: Vec<usize> = (0..found.len()).filter(|&at| is(&found[at], "embedding")).collect();
    for at in (0..found.len()).filter(|&at| is(&found[at], "weight")).collect::<Vec<_>>() {
        for &table in &tables {
            let Some(transposed) = copies(&found[table].tensor, &found[at].tensor) else { continue };
            let to = found[table].tensor.name.clone();
            let entry = &mut found[at];
            entry.is_parameter = false;
            entry.reason = format!("a copy of {to}{}", if transposed { ", transposed" } else { "" });
            entry.tied = Some(Tied { to, transposed });
            break;
        }
    }
}

/// Whether a matrix has the numbers of another one, as it is (`false`) or transposed (`true`). Matrices of equal numbers
/// say nothing.
fn copies(a: &Tensor, b: &Tensor) -> Option<bool> {
    let (Data::F32(x), Data::F32(y)) = (&a.data, &b.data) else { return None };
    if x.iter().all(|number| *number == x[0]) {
        return None;
    }
    let [rows, columns] = a.shape[..] else { return None };
    if b.shape == [columns, rows] && (0..x.len()).all(|at| x[at] == y[at % columns * rows + at / columns]) {
        return Some(true);
    }
    (a.shape == b.shape && x == y).then_some(false)
}

/// The number of convolutions into which an exporter folded a batch normalisation. The legacy exporter of PyTorch renames
/// their weights; the new one gives those without a bias one that is named after the weight.
pub(crate) fn folded_normalisations(graph: &GraphDef) -> usize {
    let folded = |node: &&NodeDef| match (node.op.as_str(), &node.inputs[..]) {
        ("Conv", [_, weight, rest @ ..]) => {
            let named = |bias: &String| bias.strip_suffix("_bias") == Some(weight);
            weight.starts_with("onnx::Conv_") || rest.first().is_some_and(named)
        }
        _ => false,
    };
    graph.nodes.iter().filter(folded).count()
}
