//! Weights and optimiser state as tensors of a file: the part that all saved states have in common.
//!
//! They are called `weights/NAME`, `optimiser/first` and `optimiser/second`. Running statistics count as weights.

use super::OptimiserState;
use crate::element::Element;
use crate::error::Result;
use crate::export::{TensorFile, Tensors};
use crate::graph::Graph;
use crate::run::Weights;

const FIRST: &str = "optimiser/first";
const SECOND: &str = "optimiser/second";

/// Adds the weights and the optimiser state.
pub fn push_state<T: Element>(
    tensors: &mut Tensors,
    graph: &Graph,
    weights: &Weights<T>,
    optimiser: &OptimiserState<T>,
) {
    push_weights(tensors, "weights/", graph, weights);
    tensors.push(FIRST, &[optimiser.first.len()], &optimiser.first);
    tensors.push(SECOND, &[optimiser.second.len()], &optimiser.second);
}

/// The parameters, and an optimiser state of the same form as `own`, after this many steps.
///
/// # Errors
/// [`NetError::Tensor`](crate::NetError::Tensor) for a tensor that is missing or has another shape or precision, and
/// for impossible numbers.
pub fn read_state<T: Element>(
    file: &TensorFile,
    graph: &Graph,
    own: &OptimiserState<T>,
    steps: u64,
) -> Result<(Vec<Vec<T>>, OptimiserState<T>)> {
    let mut parameters = Vec::with_capacity(graph.parameters().len());
    for &id in graph.parameters() {
        let value = graph.value(id);
        parameters.push(file.exact(&format!("weights/{}", value.name), &value.meta.shape)?);
    }
    let (first, second) = (file.exact(FIRST, &[own.first.len()])?, file.exact(SECOND, &[own.second.len()])?);
    // Means or sums of squares must not be negative, because their roots are taken.
    match second.iter().position(|&x: &T| x < T::zero()) {
        Some(at) => Err(file.error(SECOND, format!("is negative at element {at}"))),
        None => Ok((parameters, OptimiserState { steps, first, second })),
    }
}

/// The running statistics of a network.
pub(super) fn read_statistics<T: Element>(file: &TensorFile, graph: &Graph) -> Result<Vec<Vec<T>>> {
    let statistic = |&id| {
        let value = graph.value(id);
        file.exact(&format!("weights/{}", value.name), &value.meta.shape)
    };
    graph.statistics().iter().map(statistic).collect()
}

pub(super) fn push_weights<T: Element>(tensors: &mut Tensors, prefix: &str, graph: &Graph, weights: &Weights<T>) {
    let parameters = graph.parameters().iter().zip(weights.parameters.iter().map(Vec::as_slice));
    for (&id, values) in parameters.chain(graph.statistics().iter().zip(weights.statistics(graph))) {
        let value = graph.value(id);
        tensors.push(format!("{prefix}{}", value.name), &value.meta.shape, values);
    }
}
