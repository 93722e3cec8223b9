//! The logits of a network on data, block by block.

use super::blocks;
use crate::Error;
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::Real;
use mercer_net::graph::Graph;
use mercer_net::network::{Ending, find};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use ndarray::Array2;
use std::path::Path;
use std::sync::Arc;

/// The scores of a network's classes: a node, one of its outputs, or the logits before its softmax or sigmoid.
#[derive(Clone, Debug)]
pub(crate) struct NetworkLogits {
    graph: Arc<Graph>,
    node: String,
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
        Ok(Self { graph, node, n_outputs, path: path.to_owned() })
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
}
