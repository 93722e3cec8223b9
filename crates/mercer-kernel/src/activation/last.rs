//! The last layer of a network: the last product with a parameter on the way to an output, and what follows it.

use mercer_net::NetError;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::op::{Binary, Combine, Conv, Function, MatMul, Softmax, Transpose, Unary};

/// The last product with a parameter: `f = scale · W z + Σ_b scale_b · b`, if nothing but biases and constant factors
/// follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LastLayer {
    /// The features `z` that enter the product, one vector per sample.
    pub features: ValueId,
    /// The parameter that is the product's weight; `None` if it is computed from parameters.
    pub weight: Option<usize>,
    /// What the product is multiplied with on the way to the output.
    pub scale: f64,
    /// The parameters that are added to the product, and what each is multiplied with.
    pub biases: Vec<(usize, f64)>,
    /// The first node after the product that is not linear, or adds something that is neither a parameter nor a constant.
    pub obstacle: Option<String>,
}

impl LastLayer {
    /// Walks back from an output (or any other value) to the last product with a parameter.
    ///
    /// Biases, constant factors, softmax and functions of single numbers may follow the product. An error names the node
    /// where the last layer is not a product of one feature vector per sample.
    pub fn of(graph: &Graph, output: ValueId) -> Result<Self, NetError> {
        let parametrised = parametrised(graph);
        let (mut at, mut scale, mut biases, mut obstacle) = (output, 1.0, Vec::new(), None);
        loop {
            let Origin::Node(index) = graph.value(at).origin else {
                let name = &graph.value(at).name;
                return Err(NetError::Setting(format!(
                    "no product with a parameter leads from {name:?} to the output: there is no last hidden layer"
                )));
            };
            let node = &graph.nodes()[index];
            let batched = |id: &&ValueId| graph.value(**id).meta.is_batched();
            let mut own = node.inputs.iter().filter(batched);
            let (Some(&x), None) = (own.next(), own.next()) else {
                return Err(refused(node, "joins several values"));
            };
            let other = node.inputs.iter().copied().find(|&id| id != x);
            let any = node.op.as_any();
            if any.is::<MatMul>() {
                let inner = graph.value(node.inputs[0]).meta.shape.last().copied().unwrap_or(1);
                return match other.filter(|id| parametrised[id.index()]) {
                    None => Err(refused(node, "is a product without a parameter")),
                    Some(_) if graph.value(x).meta.numel() != inner => {
                        Err(refused(node, "multiplies several positions of a sample"))
                    }
                    Some(weight) => Ok(Self { features: x, weight: parameter(graph, weight), scale, biases, obstacle }),
                };
            }
            if any.is::<Conv>() {
                return Err(refused(node, "is a convolution"));
            }
            let mut linear = node.op.is_view() || any.is::<Transpose>();
            if let Some(Unary(Function::Affine { scale: factor, .. })) = any.downcast_ref() {
                scale *= factor;
                linear = true;
            }
            match (any.downcast_ref::<Binary>().map(|binary| binary.0), other) {
                (Some(Combine::Add | Combine::Sub), Some(id)) => {
                    let bias = parameter(graph, id);
                    biases.extend(bias.map(|bias| (bias, scale)));
                    linear = bias.is_some() || !parametrised[id.index()];
                }
                (Some(operation @ (Combine::Mul | Combine::Div)), Some(id))
                    if number(graph, id).is_some() && (operation == Combine::Mul || node.inputs[0] == x) =>
                {
                    let factor = number(graph, id).unwrap_or(1.0);
                    scale = if operation == Combine::Div { scale / factor } else { scale * factor };
                    linear = true;
                }
                _ if any.is::<Softmax>() || any.is::<Unary>() || linear => {}
                _ => {
                    return Err(refused(
                        node,
                        "is no product, bias, constant factor, softmax or function of single numbers",
                    ));
                }
            }
            if !linear && obstacle.is_none() {
                obstacle = Some(node.label());
            }
            at = x;
        }
    }
}

/// The parameter that a value is, or is under another shape.
fn parameter(graph: &Graph, mut id: ValueId) -> Option<usize> {
    loop {
        match graph.value(id).origin {
            Origin::Parameter(index) => return Some(index),
            Origin::Node(index) => {
                let node = &graph.nodes()[index];
                if !node.op.is_view() && !node.op.as_any().is::<Transpose>() {
                    return None;
                }
                id = node.inputs[0];
            }
            _ => return None,
        }
    }
}

/// For each value whether a parameter enters it.
fn parametrised(graph: &Graph) -> Vec<bool> {
    let mut found = vec![false; graph.values().len()];
    graph.parameters().iter().for_each(|id| found[id.index()] = true);
    for node in graph.nodes() {
        found[node.output.index()] = node.inputs.iter().any(|id| found[id.index()]);
    }
    found
}

/// The number that a value is, if it is a single constant.
fn number(graph: &Graph, id: ValueId) -> Option<f64> {
    graph.constant(id).filter(|numbers| numbers.len() == 1).map(|numbers| numbers[0])
}

fn refused(node: &Node, what: &str) -> NetError {
    let reason = format!(
        "{what}, so the network has no last hidden layer with one feature vector per sample; \
         name the nodes whose values are the features instead (the embedding kernel)"
    );
    NetError::Unsupported { node: node.label(), reason }
}
