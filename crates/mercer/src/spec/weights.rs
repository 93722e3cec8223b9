//! The weights of a network as matrices.

use crate::Error;
use mercer_net::Network;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::op::{Conv, MatMul, Transpose};
use mercer_run::names::matches;
use ndarray::Array2;

/// A weight as a matrix: a row per output, a column per input.
#[derive(Clone, Debug)]
pub(crate) struct WeightMatrix {
    /// The parameter.
    pub(crate) name: String,
    /// Its shape in the file.
    pub(crate) shape: Vec<usize>,
    /// How it became a matrix.
    pub(crate) layout: &'static str,
    /// Its position among the parameters.
    parameter: usize,
    transposed: bool,
    rows: usize,
    columns: usize,
}

impl WeightMatrix {
    /// Rows and columns.
    pub(crate) fn dim(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// Its values in a network of the same architecture.
    pub(crate) fn values(&self, network: &Network) -> Result<Array2<f64>, Error> {
        let parameter = network.parameters().get(self.parameter).filter(|own| own.name() == self.name);
        let parameter = parameter.ok_or_else(|| Error::new(format!("the network has no parameter {}", self.name)))?;
        let values = parameter.values().to_vec::<f64>();
        let stored = if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        let matrix = Array2::from_shape_vec(stored, values)
            .map_err(|error| Error::new(format!("parameter {}: {error}", self.name)))?;
        Ok(if self.transposed { matrix.reversed_axes().as_standard_layout().into_owned() } else { matrix })
    }
}

/// The parameters of a network that are matrices, some by name. Without a graph nobody knows which axis is the input.
pub(crate) fn weight_matrices(network: &Network, graph: Option<&Graph>, patterns: &[String]) -> Vec<WeightMatrix> {
    let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name));
    let mut found = Vec::new();
    for (parameter, own) in network.parameters().iter().enumerate() {
        let shape = own.shape().to_vec();
        let long = shape.iter().filter(|&&size| size > 1).count();
        if shape.len() < 2 || long == 0 || !wanted(own.name()) {
            continue;
        }
        let used = graph.and_then(|graph| Some(usage(graph, *graph.parameters().get(parameter)?)));
        let usage = used.unwrap_or(Usage::Unknown);
        let last = shape.len() - 1;
        let (rows, columns, transposed) = match usage {
            // The input is the first of the two last axes; leading axes of size one are dropped.
            Usage::InputFirst if numel(&shape[..last - 1]) == 1 => (shape[last], shape[last - 1], true),
            Usage::OutputFirst if numel(&shape[..last - 1]) == 1 => (shape[last - 1], shape[last], false),
            _ => (shape[0], numel(&shape[1..]), false),
        };
        let layout = match usage {
            Usage::Convolution => "output channels × (input channels · positions of the kernel)",
            Usage::InputFirst | Usage::OutputFirst => "outputs × inputs",
            Usage::Unknown => "first axis × all others",
        };
        // A vector in the form of a matrix has no spectrum.
        if rows > 1 || columns > 1 {
            found.push(WeightMatrix {
                name: own.name().to_owned(),
                shape,
                layout,
                parameter,
                transposed,
                rows,
                columns,
            });
        }
    }
    found
}

fn numel(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// How a parameter is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usage {
    Convolution,
    /// `y = x·W`.
    InputFirst,
    /// `y = W·x`, or `x·Wᵀ`.
    OutputFirst,
    Unknown,
}

/// Follows a parameter through transpositions to its product.
fn usage(graph: &Graph, mut id: ValueId) -> Usage {
    let mut turned = false;
    // A graph has no cycles; the limit is for long chains of views.
    for _ in 0..graph.nodes().len() {
        let Some(node) = graph.uses(id).first().map(|&at| &graph.nodes()[at]) else { return Usage::Unknown };
        let any = node.op.as_any();
        if any.is::<Conv>() {
            return Usage::Convolution;
        }
        if let Some(MatMul { transposed }) = any.downcast_ref() {
            let is_second = node.inputs.get(1) == Some(&id);
            let output_first = if is_second { *transposed } else { true };
            return if output_first != turned { Usage::OutputFirst } else { Usage::InputFirst };
        }
        if let Some(Transpose { perm }) = any.downcast_ref() {
            let rank = perm.len();
            if rank < 2 || perm[rank - 1] != rank - 2 || perm[rank - 2] != rank - 1 {
                return Usage::Unknown;
            }
            turned = !turned;
        } else if !node.op.is_view() && node.inputs.iter().any(|other| graph.value(*other).meta.is_batched()) {
            return Usage::Unknown;
        }
        id = node.output;
    }
    Usage::Unknown
}
