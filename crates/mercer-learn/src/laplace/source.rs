//! Where the gradients of a posterior come from: all chosen parameters through reverse passes, or the last layer's from
//! a forward pass alone.

use super::pace::{Pace, rows};
use crate::error::Result;
use mercer_kernel::activation::{Activations, LastLayer};
use mercer_kernel::empirical::Gradients;
use mercer_kernel::{KernelError, Real};
use mercer_linalg::memory;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::op::OuterShape;
use mercer_net::run::{Factor, Factors};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use rayon::prelude::*;
use std::sync::Arc;

/// Some samples, and the results of a forward pass.
#[derive(Debug)]
pub(super) struct Batch<'a, T> {
    /// Each input, `[samples, …]`.
    pub(super) inputs: &'a [&'a [T]],
    pub(super) samples: usize,
    /// The input of the last layer, for last-layer posteriors.
    pub(super) features: Vec<T>,
    /// For cancellation.
    pub(super) context: &'a Context,
}

/// A source of per-sample gradients, in factors.
#[derive(Debug)]
pub(super) enum Source<T> {
    /// Parameters anywhere.
    All(Gradients<T>),
    /// The last layer.
    Last(Head<T>),
}

/// A parameter of the posterior.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Its index among the factors.
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) numel: usize,
    /// The outer form of its gradient, if it has one with vectors on both sides.
    pub(super) shape: Option<OuterShape>,
}

impl<T: Real> Source<T> {
    /// The number of outputs.
    pub(super) fn n_outputs(&self) -> usize {
        match self {
            Self::All(gradients) => gradients.n_seeds(),
            Self::Last(head) => head.n_outputs,
        }
    }

    /// The parameters, in the order of the factors.
    pub(super) fn parameters(&self) -> Vec<Chosen> {
        match self {
            Self::All(gradients) => {
                let graph = gradients.graph();
                let shapes = gradients.outer_shapes();
                let all = (0..shapes.len()).filter(|&at| gradients.chosen()[at]).map(|at| Chosen {
                    at,
                    name: graph.value(graph.parameters()[at]).name.clone(),
                    numel: gradients.numel(at),
                    shape: shapes[at].filter(|shape| !shape.one_hot),
                });
                all.collect()
            }
            Self::Last(head) => head.parameters(),
        }
    }

    /// The size of a sample's factors of these forms, in numbers.
    pub(super) fn sample_numbers(&self, outer: &[bool]) -> usize {
        let seeds = self.n_outputs();
        let numbers = |own: &Chosen| match own.shape.filter(|_| outer[own.at]) {
            Some(shape) => shape.positions * (shape.left + seeds * shape.right),
            None => seeds * own.numel,
        };
        self.parameters().iter().map(numbers).sum()
    }

    /// Samples that are processed at once.
    pub(super) fn grain(&self) -> usize {
        match self {
            Self::All(gradients) => gradients.grain(),
            Self::Last(_) => LAST_GRAIN,
        }
    }

    /// As [`Gradients::sweep`], piece by piece.
    pub(super) fn sweep<P: Send>(
        &self,
        batch: &Batch<'_, T>,
        outer: &[bool],
        places: Vec<P>,
        each: impl Fn(P, &Factors<T>) -> Result<(), KernelError> + Sync,
    ) -> Result<()> {
        match self {
            Self::All(gradients) => {
                let pace = Pace::of_shards(gradients.grain(), gradients.flops(outer));
                let mut places = places.into_iter();
                for piece in pace.pieces(batch.samples) {
                    batch.context.check()?;
                    let own = rows(batch.inputs, batch.samples, &piece);
                    let places = places.by_ref().take(piece.len().div_ceil(gradients.grain())).collect();
                    let swept = gradients.sweep(&own, piece.len(), outer, places, &each);
                    swept.map_err(|error| error.shifted(piece.start))?;
                }
                Ok(())
            }
            Self::Last(head) => {
                batch.context.check()?;
                let shards = batch.features.par_chunks((LAST_GRAIN * head.width).max(1)).zip(places);
                Ok(shards.try_for_each(|(shard, place)| each(place, &head.factors(shard)))?)
            }
        }
    }
}

const LAST_GRAIN: usize = 128;

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

    fn shape(&self) -> OuterShape {
        OuterShape { positions: 1, left: self.width, right: self.n_outputs, right_major: true, one_hot: false }
    }

    fn parameters(&self) -> Vec<Chosen> {
        let weight =
            Chosen { at: 0, name: self.weight.clone(), numel: self.width * self.n_outputs, shape: Some(self.shape()) };
        let bias = |(at, name): (usize, &String)| Chosen { at, name: name.clone(), numel: self.n_outputs, shape: None };
        std::iter::once(weight).chain((1..).zip(&self.biases).map(bias)).collect()
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

    /// The same as reverse passes would give.
    fn factors(&self, features: &[T]) -> Factors<T> {
        let samples = features.len() / self.width.max(1);
        let weight = Factor::Outer {
            shape: self.shape(),
            left: features.to_vec(),
            right: self.units(samples, self.layer.scale),
        };
        let biases = self.layer.biases.iter().map(|&(_, scale)| Some(Factor::Explicit(self.units(samples, scale))));
        Factors { samples, seeds: self.n_outputs, parameters: std::iter::once(Some(weight)).chain(biases).collect() }
    }

    /// A multiple of the unit matrix for every sample.
    fn units(&self, samples: usize, scale: f64) -> Vec<T> {
        let square = self.n_outputs * self.n_outputs;
        let mut units = vec![T::zero(); samples * square];
        for unit in units.chunks_exact_mut(square.max(1)) {
            unit.iter_mut().step_by(self.n_outputs + 1).for_each(|x| *x = T::narrow(scale));
        }
        units
    }
}
