//! The last layer of a network, whose gradients take a forward pass alone.

use super::algebra::wide;
use super::pace::Pace;
use super::source::Batch;
use crate::error::Result;
use mercer_kernel::Real;
use mercer_kernel::activation::{Activations, LastLayer};
use mercer_linalg::memory;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use ndarray::Array2;
use std::sync::Arc;

/// The last layer of a network, linear in its parameters: `f = scale · W z + Σ scale_b · b`.
#[derive(Debug)]
pub(super) struct Head<T> {
    activations: Activations<T>,
    pace: Pace,
    pub(super) layer: Layer,
    weight: String,
    biases: Vec<String>,
    /// The length of `z`.
    pub(super) width: usize,
    pub(super) n_outputs: usize,
}

/// A last layer that is linear in its own parameters.
#[derive(Debug)]
pub(super) struct Layer {
    /// The parameter that is the weight.
    weight: usize,
    /// The factor on the product.
    pub(super) scale: f64,
    /// The parameters that are added, each with its factor.
    pub(super) biases: Vec<(usize, f64)>,
}

impl<T: Real> Head<T> {
    /// The last layer before an output. The error names the node that keeps it from being a linear layer.
    pub(super) fn new(network: &Network, graph: &Arc<Graph>, output: ValueId) -> Result<Self> {
        let layer = LastLayer::new(graph, output)?;
        let refused = |node: String, reason: &str| NetError::Unsupported { node, reason: reason.to_owned() };
        if let Some(node) = &layer.obstacle {
            let reason = "follows the last layer and is not linear; name the value before it as the output";
            return Err(refused(node.clone(), reason).into());
        }
        let name = |parameter: usize| graph.value(graph.parameters()[parameter]).name.clone();
        let numel = |parameter: usize| graph.value(graph.parameters()[parameter]).meta.numel();
        let label = graph.value(output).name.clone();
        let owned: Option<Vec<(usize, f64)>> =
            layer.biases.iter().map(|bias| bias.parameter.map(|at| (at, bias.scale))).collect();
        let (Some(weight), Some(biases)) = (layer.weight, owned) else {
            return Err(refused(label, "comes from a layer whose weight or bias is computed from parameters").into());
        };
        if layer.positions.is_some() {
            return Err(
                refused(label, "is a mean over positions of a layer, which is not a single linear layer").into()
            );
        }
        let (width, n_outputs) = (graph.value(layer.features).meta.numel(), graph.value(output).meta.numel());
        if numel(weight) != width * n_outputs || biases.iter().any(|&(bias, _)| numel(bias) != n_outputs) {
            return Err(refused(
                label,
                "has a different number of elements than the weight and bias of its last layer",
            )
            .into());
        }
        let activations = Activations::of_values(network, Arc::clone(graph), vec![layer.features, output])?;
        let names = biases.iter().map(|&(bias, _)| name(bias)).collect();
        let layer = Layer { weight, scale: layer.scale, biases };
        let pace = Pace::forward(graph);
        Ok(Self { activations, pace, weight: name(weight), biases: names, layer, width, n_outputs })
    }

    /// The parameters of the layer, by their index in the graph.
    pub(super) fn chosen(&self) -> Vec<usize> {
        std::iter::once(self.layer.weight).chain(self.layer.biases.iter().map(|&(bias, _)| bias)).collect()
    }

    /// The names of the parameters: the weight, then the biases.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.weight.as_str()).chain(self.biases.iter().map(String::as_str))
    }

    /// The inputs of the layer in double precision, with its scale: the gradient of output `c` with respect to row `c` of the
    /// weight.
    pub(super) fn inputs(&self, batch: &Batch<'_, T>) -> Array2<f64> {
        let mut inputs = wide(&batch.features, self.width);
        inputs.mapv_inplace(|x| self.layer.scale * x);
        inputs
    }

    /// `z` and the outputs of every sample, from one forward pass.
    pub(super) fn forward(&self, inputs: &[&[T]], samples: usize, context: &Context) -> Result<(Vec<T>, Vec<T>)> {
        let (width, n_outputs) = (self.width, self.n_outputs);
        let mut both = memory::zeros(samples * (width + n_outputs));
        self.pace.features(&self.activations, (inputs, samples), &mut both, context)?;
        let (mut features, mut outputs) = (memory::zeros(samples * width), memory::zeros(samples * n_outputs));
        for (at, row) in both.chunks_exact(width + n_outputs).enumerate() {
            features[at * width..(at + 1) * width].copy_from_slice(&row[..width]);
            outputs[at * n_outputs..(at + 1) * n_outputs].copy_from_slice(&row[width..]);
        }
        Ok((features, outputs))
    }
}
