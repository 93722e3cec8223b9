//! The conjugate kernel: the tangent kernel of one output with respect to the last layer only.
//!
//! `CK(x, x') = 1 + z·z'` with the features `z` of the last hidden layer, the one being the bias (Qadeer et al. 2023, arXiv
//! 2310.18612, equations 28 and 29). It is the same for every output, so the last layer's share of the trace kernel of C
//! outputs is `C·CK`. Constants between the product and the output belong to `z`, as the `1/√h` of the NTK parametrisation
//! (Wang et al. 2022, arXiv 2211.06506, equation 76, which has no bias).

use super::Activations;
use crate::empirical::Selection;
use crate::error::Result;
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use mercer_linalg::simd::dispatch;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::op::{Binary, Combine, Conv, Function, MatMul, Softmax, Transpose, Unary};
use mercer_net::{NetError, Network};

/// The features of the last hidden layer, and a one for the bias.
#[derive(Debug)]
pub struct Conjugate<T> {
    activations: Activations<T>,
    scale: T,
    bias: bool,
}

impl<T: Real> Conjugate<T> {
    /// The features that enter the last product with a parameter on the way to an output (or any other value; the first
    /// output if it is not named), for samples of these shapes (one per input).
    ///
    /// Biases, constant factors, softmax and functions of single numbers may follow the product. An error names the node
    /// where the last layer is not a product of one feature vector per sample; [`Activations`] of chosen nodes always exist.
    pub fn new(network: &Network, samples: &[Vec<usize>], output: Option<&str>) -> Result<Self> {
        let graph = network.graph(samples)?;
        let selection = Selection { output: output.map(str::to_owned), ..Selection::default() };
        let last = last_product(&graph, selection.value(&graph)?)?;
        let activations = Activations::of(network, graph, vec![last.features])?;
        let workspace = activations.workspace();
        let constant = |id: ValueId| workspace.get(&activations.weights, id)[0];
        let mut scale = T::of(last.scale);
        for (id, divide) in last.constants {
            scale = if divide { scale / constant(id) } else { scale * constant(id) };
        }
        Ok(Self { activations, scale, bias: true })
    }

    /// `z·z'` alone, for networks whose last layer has no bias.
    pub fn without_bias(self) -> Self {
        Self { bias: false, ..self }
    }

    /// The name of the value that the features are.
    pub fn layer(&self) -> &str {
        &self.activations.graph.value(self.activations.values[0]).name
    }
}

impl<T: Real> FeatureMap<T> for Conjugate<T> {
    fn n_features(&self) -> usize {
        self.activations.width() + usize::from(self.bias)
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let stride = self.n_features();
        self.activations.write(inputs, samples, stride, out)?;
        if self.scale != T::one() {
            dispatch(
                #[inline(always)]
                || out.iter_mut().for_each(|x| *x *= self.scale),
            );
        }
        if self.bias {
            out.iter_mut().skip(stride - 1).step_by(stride).for_each(|x| *x = T::one());
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        self.activations.effort()
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({
            "kernel": "conjugate", "bias": self.bias, "scale": self.scale.wide(), "of": self.activations.identity(),
        })
    }
}

/// What enters the last product, and what its result is multiplied with: a number, and constants (or divided by them).
struct LastProduct {
    features: ValueId,
    scale: f64,
    constants: Vec<(ValueId, bool)>,
}

/// Walks back from an output to the last product with a parameter.
fn last_product(graph: &Graph, output: ValueId) -> Result<LastProduct, NetError> {
    let parametrised = parametrised(graph);
    let (mut at, mut scale, mut constants) = (output, 1.0, Vec::new());
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
            return if !other.is_some_and(|id| parametrised[id.index()]) {
                Err(refused(node, "is a product without a parameter"))
            } else if graph.value(x).meta.numel() != inner {
                Err(refused(node, "multiplies several positions of a sample"))
            } else {
                Ok(LastProduct { features: x, scale, constants })
            };
        }
        if any.is::<Conv>() {
            return Err(refused(node, "is a convolution"));
        }
        if let Some(Unary(Function::Affine { scale: factor, .. })) = any.downcast_ref() {
            scale *= factor;
        }
        match (any.downcast_ref::<Binary>().map(|binary| binary.0), other) {
            (Some(Combine::Add | Combine::Sub), _) => {}
            (Some(operation @ (Combine::Mul | Combine::Div)), Some(id))
                if is_number(graph, id) && (operation == Combine::Mul || node.inputs[0] == x) =>
            {
                constants.push((id, operation == Combine::Div));
            }
            _ if any.is::<Softmax>() || any.is::<Unary>() || any.is::<Transpose>() || node.op.is_view() => {}
            _ => {
                return Err(refused(
                    node,
                    "is no product, bias, constant factor, softmax or function of single numbers",
                ));
            }
        }
        at = x;
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

/// Whether a value is a single constant.
fn is_number(graph: &Graph, id: ValueId) -> bool {
    matches!(graph.value(id).origin, Origin::Constant(_)) && graph.value(id).meta.numel() == 1
}

fn refused(node: &Node, what: &str) -> NetError {
    let reason = format!(
        "{what}, so the network has no last hidden layer with one feature vector per sample; \
         name the nodes whose values are the features instead (the embedding kernel)"
    );
    NetError::Unsupported { node: node.label(), reason }
}
