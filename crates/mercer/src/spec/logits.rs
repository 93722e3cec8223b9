//! The logits of a network on data, block by block.

use super::blocks;
use crate::Error;
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::Real;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::network::{Ending, find};
use mercer_net::run::{Keep, Reverse, Target, Workspace};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use ndarray::Array2;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Samples that are perturbed together by one thread.
const MOVED_TOGETHER: usize = 16;

/// The scores of a network's classes: a node, one of its outputs, or the logits before its softmax or sigmoid.
#[derive(Clone, Debug)]
pub(crate) struct NetworkLogits {
    graph: Arc<Graph>,
    node: String,
    value: ValueId,
    n_outputs: usize,
    path: std::path::PathBuf,
}

impl NetworkLogits {
    /// Finds the logits, which may be a node that the user names. Notes that they are not the output itself.
    ///
    /// # Errors
    /// If the network does not take samples of these shapes, and if its output has no logits.
    pub(crate) fn find(
        network: &Network,
        shapes: &[Vec<usize>],
        node: Option<&str>,
        path: &Path,
        context: &Context,
    ) -> Result<Self, Error> {
        let of_network = |error| Error::of_network(path, error);
        let graph = network.graph(shapes).map_err(of_network)?;
        let output = match node {
            Some(name) => find(&graph, name).map_err(of_network)?,
            None => {
                graph.outputs().first().map(|&(_, id)| id).ok_or_else(|| Error::new("the network has no output"))?
            }
        };
        let value = match Ending::find(&graph, output) {
            Ending::Open => output,
            Ending::Probabilities(logits) => {
                context.note(&logits.note("the network's score", None));
                logits.value
            }
            Ending::Mixed { node, reason } => {
                let text = format!("{}: node {node} {reason}", path.display());
                return Err(Error::new(text).hint("‹node› NAME chooses the logits"));
            }
        };
        let own = graph.outputs().iter().find(|(_, id)| *id == value).map(|(name, _)| name.clone());
        let node = own.unwrap_or_else(|| graph.value(value).name.clone());
        let n_outputs = graph.value(value).meta.numel();
        Ok(Self { graph, node, value, n_outputs, path: path.to_owned() })
    }

    /// The node.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// The number of outputs.
    pub(crate) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The value of the graph.
    pub(crate) fn value(&self) -> ValueId {
        self.value
    }

    /// The number of classes. A single output is the logit of the second of two classes.
    pub(crate) fn n_classes(&self) -> usize {
        self.n_outputs.max(2)
    }

    /// The scores of all samples, a column per class. A single output `f` becomes the two scores `0` and `f`.
    ///
    /// # Errors
    /// If data cannot be read, numbers are not finite, or the run is cancelled.
    pub(crate) fn scores<T: Real>(
        &self,
        network: &Network,
        inputs: &[Dataset],
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let n_samples = inputs.first().map_or(0, Dataset::n_samples);
        let mut scores = Array2::zeros((n_samples, self.n_classes()));
        let sample = blocks::sample_bytes(&self.graph, Some(&self.node), size_of::<T>());
        let first = self.n_classes() - self.n_outputs;
        for rows in blocks::split(&self.graph, n_samples, None, (sample, usize::MAX)) {
            context.check()?;
            let block = RowBlock::<T>::read(inputs, rows.clone())?;
            let shapes = inputs.iter().map(Dataset::sample_shape);
            let slices: Vec<(&[T], &[usize])> = block.slices().into_iter().zip(shapes).collect();
            let found = network.predict(&slices, rows.len(), Some(&self.node), None);
            let found = found.map_err(|error| match error {
                // The library counts samples within a block; the user counts those of the file.
                NetError::NotFinite { place, sample } => {
                    Error::of_network(&self.path, NetError::NotFinite { place, sample: rows.start + sample })
                }
                other => Error::of_network(&self.path, other),
            })?;
            for (at, values) in rows.clone().zip(found.values.chunks_exact(self.n_outputs.max(1))) {
                for (column, value) in values.iter().enumerate() {
                    scores[(at, first + column)] = value.wide();
                }
            }
            context.report(rows.end, n_samples, "samples");
        }
        Ok(scores)
    }

    /// Samples moved by `−ε` times the sign of `Σ_c slope_c · ∂s_c/∂x`, with a slope for every sample and class.
    ///
    /// # Errors
    /// If the network has several inputs or takes integers, and if data cannot be read.
    pub(crate) fn perturbed<T: Real>(
        &self,
        network: &Network,
        inputs: &[Dataset],
        slopes: &Array2<f64>,
        epsilon: f64,
    ) -> Result<Vec<Dataset>, Error> {
        let ([input], [own]) = (inputs, network.inputs()) else {
            return Err(Error::new("‹fgsm›: only networks with one input can be perturbed"));
        };
        if own.is_integer() {
            return Err(Error::new(format!("‹fgsm›: input {} takes integers, which have no gradient", own.name)));
        }
        let weights = network.weights::<T>(&self.graph);
        let n_samples = input.n_samples();
        let first = self.n_classes() - self.n_outputs;
        let moved = |start: usize| -> Result<Vec<T>, Error> {
            let rows = start..(start + MOVED_TOGETHER).min(n_samples);
            let block = RowBlock::<T>::read(inputs, rows.clone())?;
            let mut workspace = Workspace::new(Arc::clone(&self.graph), &Keep::All);
            let parameters = vec![false; self.graph.parameters().len()];
            let target = Target { output: self.value, parameters, inputs: true };
            let mut reverse = Reverse::new(Arc::clone(&self.graph), target);
            let ran = workspace.forward(&weights, &block.slices(), rows.len());
            ran.map_err(|error| Error::of_network(&self.path, error))?;
            let slopes = slopes.slice(ndarray::s![rows.clone(), first..]);
            let cotangent: Vec<T> = slopes.iter().map(|&slope| T::narrow(slope)).collect();
            reverse.per_sample(&workspace, &weights, &cotangent, 1);
            let mut values = block.slices()[0].to_vec();
            for (value, &slope) in values.iter_mut().zip(reverse.input(0)) {
                let sign = if slope == T::zero() { 0.0 } else { slope.wide().signum() };
                *value = T::narrow(value.wide() - epsilon * sign);
            }
            Ok(values)
        };
        let starts: Vec<usize> = (0..n_samples).step_by(MOVED_TOGETHER).collect();
        let values = starts.into_par_iter().map(moved).collect::<Result<Vec<_>, Error>>()?.concat();
        let shape: Vec<usize> = std::iter::once(n_samples).chain(input.sample_shape().iter().copied()).collect();
        let array = ndarray::ArrayD::from_shape_vec(shape, values);
        let array = array.map_err(|error| Error::new(format!("the perturbed samples: {error}")))?;
        Ok(vec![Dataset::from_array("perturbed samples", array.view())?])
    }
}
