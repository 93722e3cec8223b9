//! The last layer of a network: the last product with a parameter before an output, and the operations after it.
//!
//! `f = s · Σ_p W z_p + Σ_b s_b · b`, with one position `p` for a product with a single vector, and all of them if a
//! pool or a mean follows, which commutes with it. Constants between product and output are in `s`, those between a
//! parameter and its use as weight or bias too, so that `s z` and `s_b` are the derivatives with respect to the
//! parameters themselves.

use super::tail::Tail;
use mercer_net::NetError;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::op::{
    Binary, Combine, Conv, Function, MatMul, Pool, Pooling, Reduce, Reduction, Softmax, Transpose, Unary,
};

/// The last product with a parameter, `f = scale · Σ_p W z_p + Σ_b scale_b · b`, if only biases, constant factors and
/// sums over positions follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct LastLayer {
    /// The features `z` that enter the product, one vector per sample and position.
    pub features: ValueId,
    /// The layout of the positions in the features; `None` if there is only one.
    pub positions: Option<Positions>,
    /// The parameter that is the product's weight; `None` if it is computed from parameters.
    pub weight: Option<usize>,
    /// The factor between the product and the output: the root mean square over the outputs, if their factors differ.
    pub scale: f64,
    /// The biases added to the product.
    pub biases: Vec<Bias>,
    /// A node after the product that is not linear, or does not treat all outputs alike. Scales and biases then belong
    /// to the value before the last nonlinear function, such as the logits of a softmax.
    pub obstacle: Option<String>,
}

/// The layout of positions in the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// How many there are.
    pub count: usize,
    /// Whether the positions of a feature are contiguous, as in an image, or the features of a position, as in a
    /// sequence.
    pub innermost: bool,
}

/// A bias of the last layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bias {
    /// The parameter; `None` if it is computed from parameters.
    pub parameter: Option<usize>,
    /// The derivative of an output with respect to its element, averaged over the outputs as in [`LastLayer::scale`].
    pub scale: f64,
}

impl LastLayer {
    /// Walks back from an output (or any other value) to the last product with a parameter.
    ///
    /// Biases, constant factors, sums and means over positions, softmax and functions of single numbers may follow the product.
    /// An error names the node where the last layer is not a product of feature vectors.
    pub fn new(graph: &Graph, output: ValueId) -> Result<Self, NetError> {
        let parametrised = graph.parametrised();
        let (mut at, mut tail) = (output, Tail::default());
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
            if node.op.as_any().is::<MatMul>() || node.op.as_any().is::<Conv>() {
                let Some(weight) = other.filter(|id| parametrised[id.index()]) else {
                    return Err(refused(node, "is a product without a parameter"));
                };
                if let Some(&bias) = node.inputs.get(2).filter(|id| parametrised[id.index()]) {
                    tail.add(linear(graph, bias), 1.0);
                }
                let positions = tail.positions(graph, node, x).map_err(|what| refused(node, what))?;
                let (weight, factor) = linear(graph, weight).map_or((None, 1.0), |(at, factor)| (Some(at), factor));
                let scale = factor * tail.scale();
                return Ok(Self {
                    features: x,
                    positions,
                    weight,
                    scale,
                    biases: tail.biases,
                    obstacle: tail.obstacle,
                });
            }
            step(graph, node, (x, other), &parametrised, &mut tail).map_err(|what| refused(node, what))?;
            at = x;
        }
    }

    /// The length of a position's feature vector.
    pub fn width(&self, graph: &Graph) -> usize {
        graph.value(self.features).meta.numel() / self.positions.map_or(1, |positions| positions.count.max(1))
    }
}

/// Steps back by one node, and applies its effect to everything before it.
fn step(
    graph: &Graph,
    node: &Node,
    (x, other): (ValueId, Option<ValueId>),
    parametrised: &[bool],
    tail: &mut Tail,
) -> Result<(), &'static str> {
    let any = node.op.as_any();
    let (from, to) = (&graph.value(x).meta, &graph.value(node.output).meta);
    if let Some(Transpose { perm }) = any.downcast_ref() {
        return tail.transpose(perm, &from.shape);
    }
    if node.op.is_view() {
        return tail.reshape(&to.shape, &from.shape);
    }
    if let Some(Reduce { kind: kind @ (Reduction::Sum | Reduction::Mean), axes, keep }) = any.downcast_ref() {
        return tail.sum(axes, *keep, *kind == Reduction::Mean, &from.shape);
    }
    if let Some(pool) = any.downcast_ref::<Pool>() {
        let whole = pool.kernel[..] == from.shape[2..] && padding(&pool.window) == 0;
        if whole && matches!(pool.kind, Pooling::Average { .. }) {
            let space: Vec<usize> = (2..from.rank()).collect();
            return tail.sum(&space, true, true, &from.shape);
        }
    }
    if let Some(factor) = any.downcast_ref().and_then(derivative) {
        tail.scaled(factor);
        return Ok(());
    }
    if any.is::<Softmax>() || any.is::<Unary>() {
        return tail.function(node);
    }
    let (Some(&Binary(operation)), Some(other)) = (any.downcast_ref(), other) else {
        return Err("is not a product, bias, constant factor, mean over positions, softmax or elementwise function");
    };
    if from.numel() != to.numel() {
        return Err("repeats its operand");
    }
    let first = node.inputs[0] == x;
    match operation {
        Combine::Add | Combine::Sub => {
            let sign = if operation == Combine::Sub && first { -1.0 } else { 1.0 };
            if parametrised[other.index()] {
                tail.add_along(linear(graph, other), sign, &graph.value(other).meta.shape, from.rank())?;
            }
            if operation == Combine::Sub && !first {
                tail.scaled(-1.0);
            }
            Ok(())
        }
        Combine::Mul | Combine::Div if operation == Combine::Mul || first => {
            let constants = graph.constant(other).ok_or("multiplies by something that is not constant")?;
            let factor = |&constant: &f64| if operation == Combine::Div { 1.0 / constant } else { constant };
            tail.multiplied(node, constants.iter().map(factor).collect(), to.numel())
        }
        _ => Err("is not a product, bias or constant factor"),
    }
}

/// The total padding of a window.
pub(super) fn padding(window: &mercer_net::op::Window) -> usize {
    window.before.iter().chain(&window.after).sum()
}

/// The factor of a linear elementwise function.
fn derivative(unary: &Unary) -> Option<f64> {
    match unary.0 {
        Function::Affine { scale, .. } => Some(scale),
        Function::Neg => Some(-1.0),
        _ => None,
    }
}

/// The parameter and the factor, if a value is a constant multiple of a parameter, possibly reshaped.
fn linear(graph: &Graph, mut id: ValueId) -> Option<(usize, f64)> {
    let mut factor = 1.0;
    loop {
        let index = match graph.value(id).origin {
            Origin::Parameter(parameter) => return Some((parameter, factor)),
            Origin::Node(index) => index,
            _ => return None,
        };
        let node = &graph.nodes()[index];
        let any = node.op.as_any();
        id = node.inputs[0];
        if let Some(own) = any.downcast_ref().and_then(derivative) {
            factor *= own;
        } else if let Some(&Binary(operation @ (Combine::Mul | Combine::Div))) = any.downcast_ref() {
            let number =
                |id: ValueId| graph.constant(id).filter(|numbers| numbers.len() == 1).map(|numbers| numbers[0]);
            match (number(node.inputs[0]), number(node.inputs[1]), operation) {
                (_, Some(own), Combine::Mul) => factor *= own,
                (_, Some(own), _) => factor /= own,
                (Some(own), _, Combine::Mul) => (factor, id) = (factor * own, node.inputs[1]),
                _ => return None,
            }
        } else if !node.op.is_view() && !any.is::<Transpose>() {
            return None;
        }
    }
}

fn refused(node: &Node, what: &str) -> NetError {
    let reason = format!(
        "{what}, so the network has no last hidden layer with one feature vector per sample; \
         name the nodes whose values are the features instead (the embedding kernel)"
    );
    NetError::Unsupported { node: node.label(), reason }
}
