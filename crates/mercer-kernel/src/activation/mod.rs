//! Kernels of intermediate values of a network: embedding and conjugate kernels.
//!
//! ```
//! use mercer_kernel::{Conjugate, FeatureMap};
//! use mercer_net::arch::Mlp;
//!
//! let network = Mlp::new(2, &[8], 3).build(0)?;
//! let conjugate = Conjugate::<f64>::new(&network, &[vec![2]], None)?;
//! // The eight hidden units, and one for the bias.
//! assert_eq!(conjugate.n_features(), 9);
//! let mut features = vec![0.0; 9];
//! conjugate.features(&[&[1.0, 0.5]], 1, &mut features)?;
//! assert_eq!(features[8], 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conjugate;
mod last;
mod tail;

pub use conjugate::Conjugate;
pub use last::{Bias, LastLayer, Positions};

use crate::error::{KernelError, Result};
use crate::feature::{Effort, FeatureMap};
use crate::kernel::{Real, with_precision};
use crate::products::all_finite;
use crate::shards::Shards;
use mercer_net::graph::{Graph, Origin, ValueId};
use mercer_net::network::find;
use mercer_net::run::{Keep, Weights, Workspace};
use mercer_net::{NetError, Network};
use std::sync::Arc;

/// The values at some nodes of a network, flattened and concatenated.
///
/// Their kernel is the sum of the Gram matrices of these layers: the embedding kernel of Engel et al. 2023 (arXiv
/// 2305.14585, section 1; Akyürek et al. 2023), without centring.
#[derive(Debug)]
pub struct Activations<T> {
    graph: Arc<Graph>,
    weights: Weights<T>,
    values: Vec<ValueId>,
    /// The fingerprint of the network's original numbers, if they are rounded here.
    fingerprint: Option<String>,
    shards: Shards<Workspace<T>>,
}

impl<T: Real> Activations<T> {
    /// The values of these names (of nodes, values, outputs or inputs), for samples of these shapes (one per input).
    pub fn new(network: &Network, samples: &[Vec<usize>], nodes: &[&str]) -> Result<Self> {
        let graph = network.graph(samples)?;
        let values: Result<Vec<ValueId>, NetError> = nodes.iter().map(|name| find(&graph, name)).collect();
        Self::of_values(network, graph, values?)
    }

    /// These values of one of the network's graphs.
    pub fn of_values(network: &Network, graph: Arc<Graph>, values: Vec<ValueId>) -> Result<Self> {
        if values.is_empty() {
            return Err(KernelError::Setting("no node is chosen whose values are the features".to_owned()));
        }
        if let Some(&id) = values.iter().find(|&&id| !graph.value(id).meta.is_batched()) {
            let name = &graph.value(id).name;
            return Err(KernelError::Setting(format!("{name:?} does not depend on the input: it has no kernel")));
        }
        let weights = network.weights(&graph);
        let (shards, fingerprint) = (Shards::new(&graph), network.wide_fingerprint::<T>(&graph));
        Ok(Self { graph, weights, values, fingerprint, shards })
    }

    fn width(&self) -> usize {
        self.values.iter().map(|&id| self.graph.value(id).meta.numel()).sum()
    }

    fn workspace(&self) -> Workspace<T> {
        Workspace::new(Arc::clone(&self.graph), &Keep::Only(self.values.clone()))
    }

    /// Passes the values of every sample and its row of `out`, of length `stride`, to `put`, with the offset of each
    /// value in the concatenation.
    fn write(
        &self,
        inputs: &[&[T]],
        samples: usize,
        stride: usize,
        out: &mut [T],
        put: impl Fn(&[T], usize, &mut [T]) + Sync,
    ) -> Result<()> {
        let places = out.chunks_mut((self.shards.grain() * stride).max(1));
        let sweep = (&*self.graph, inputs, samples);
        self.shards.sweep(
            sweep,
            places,
            || self.workspace(),
            |workspace, inputs, samples, out| {
                workspace.forward(&self.weights, inputs, samples)?;
                let mut offset = 0;
                for &id in &self.values {
                    let (value, size) = (workspace.get(&self.weights, id), self.graph.value(id).meta.numel());
                    if !all_finite(value) {
                        return Err(self.not_finite(id, value, size));
                    }
                    for (row, value) in out.chunks_exact_mut(stride.max(1)).zip(value.chunks_exact(size.max(1))) {
                        put(value, offset, row);
                    }
                    offset += size;
                }
                Ok(())
            },
        )?;
        Ok(())
    }

    fn not_finite(&self, id: ValueId, value: &[T], size: usize) -> KernelError {
        let place = match self.graph.value(id).origin {
            Origin::Node(at) => format!("the result of node {}", self.graph.nodes()[at].label()),
            _ => format!("value {:?}", self.graph.value(id).name),
        };
        let sample = value.iter().position(|x| !x.is_finite()).unwrap_or(0) / size.max(1);
        NetError::NotFinite { place, sample }.into()
    }
}

impl<T: Real> FeatureMap<T> for Activations<T> {
    fn n_features(&self) -> usize {
        self.width()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let copy = |value: &[T], offset: usize, row: &mut [T]| row[offset..offset + value.len()].copy_from_slice(value);
        self.write(inputs, samples, self.width(), out, copy)
    }

    fn effort(&self) -> Effort {
        let bytes = self.workspace().bytes(self.shards.grain());
        Effort { bytes, flops: self.graph.flops() as f64, ..Effort::default() }
    }

    fn identity(&self) -> serde_json::Value {
        let indices: Vec<usize> = self.values.iter().map(|id| id.index()).collect();
        let names: Vec<&str> = self.values.iter().map(|&id| self.graph.value(id).name.as_str()).collect();
        let network = self.fingerprint.clone().unwrap_or_else(|| self.weights.fingerprint(&self.graph));
        let identity =
            serde_json::json!({"kernel": "embedding", "network": network, "values": indices, "nodes": names});
        with_precision::<T>(identity)
    }
}
