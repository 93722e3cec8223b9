//! The outputs of random networks: features whose kernel estimates the NNGP.

use super::Ensemble;
use crate::error::{KernelError, Result};
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use crate::products::all_finite;
use crate::shards::Shards;
use mercer_net::graph::ValueId;
use mercer_net::network::default_logits;
use mercer_net::run::{Keep, Workspace};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The maximum total number of weights in memory at once, unless a single network has more.
const GROUP_ELEMENTS: usize = 1 << 22;

/// More networks at once have no benefit.
const LARGEST_GROUP: usize = 16;

/// The outputs of `S` random networks, `φ(x) = g(x, θ_s)/√(S C)` for all `s` and all `C` outputs.
///
/// Outputs of one network are draws from the same process, independent given its hidden layers, so all are used.
#[derive(Debug)]
pub struct RandomNetworks<T> {
    ensemble: Arc<Ensemble>,
    networks: Range<usize>,
    output: ValueId,
    n_outputs: usize,
    shards: Shards<Workspace<T>>,
}

impl<T: Real> RandomNetworks<T> {
    /// The first networks of an ensemble.
    pub fn new(ensemble: Arc<Ensemble>, n_networks: usize) -> Result<Self> {
        if n_networks == 0 {
            return Err(KernelError::Setting("a mean over no networks".to_owned()));
        }
        let graph = ensemble.graph();
        let Some((output, _)) = default_logits(graph) else {
            return Err(KernelError::Setting("the network has no output".to_owned()));
        };
        let meta = &graph.value(output).meta;
        if !meta.is_batched() || meta.numel() == 0 {
            let name = &graph.value(output).name;
            return Err(KernelError::Setting(format!("{name:?} is empty or does not depend on the input")));
        }
        let (n_outputs, shards) = (meta.numel(), Shards::new(graph));
        Ok(Self { ensemble, networks: 0..n_networks, output, n_outputs, shards })
    }

    /// The same number of networks, starting from this one.
    pub fn starting_at(self, first: usize) -> Self {
        Self { networks: first..first.saturating_add(self.networks.len()), ..self }
    }

    /// The ensemble.
    pub fn ensemble(&self) -> &Arc<Ensemble> {
        &self.ensemble
    }

    /// The range of networks.
    pub fn networks(&self) -> Range<usize> {
        self.networks.clone()
    }

    /// Outputs of each network.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The number of networks to draw at once.
    pub(super) fn group(&self) -> usize {
        (GROUP_ELEMENTS / self.ensemble.n_params().max(1)).clamp(1, LARGEST_GROUP)
    }

    /// The outputs of one network, `[samples, outputs]`.
    pub(super) fn outputs(&self, network: usize, inputs: &[&[T]], samples: usize) -> Result<Vec<T>> {
        let (graph, width) = (self.ensemble.graph(), self.n_outputs);
        let weights = self.ensemble.weights::<T>(network);
        let mut outputs = vec![T::zero(); samples * width];
        self.shards.sweep(
            (graph, inputs, samples),
            outputs.chunks_mut(self.shards.grain() * width),
            || self.workspace(),
            |workspace, inputs, samples, out: &mut [T]| {
                workspace.forward(&weights, inputs, samples)?;
                out.copy_from_slice(workspace.get(&weights, self.output));
                if !all_finite(out) {
                    let at = out.iter().position(|x| !x.is_finite()).unwrap_or(0);
                    let place = format!("the output of random network {network}");
                    return Err(KernelError::NotFinite { place, sample: at / width });
                }
                Ok(())
            },
        )?;
        Ok(outputs)
    }

    fn workspace(&self) -> Workspace<T> {
        Workspace::new(Arc::clone(self.ensemble.graph()), &Keep::Only(vec![self.output]))
    }

    /// Bytes that every thread needs to run networks.
    pub(super) fn bytes(&self) -> usize {
        self.workspace().bytes(self.shards.grain())
    }

    /// Bytes of the weights of a group.
    pub(super) fn weights_bytes(&self) -> usize {
        self.group() * self.ensemble.n_params() * size_of::<T>()
    }

    /// Operations to run and draw one network, per sample.
    pub(super) fn flops(&self) -> f64 {
        self.ensemble.graph().flops() as f64
    }

    pub(super) fn identity(&self) -> serde_json::Value {
        let (first, count) = (self.networks.start, self.networks.len());
        serde_json::json!({ "ensemble": self.ensemble.identity::<T>(), "first": first, "networks": count })
    }
}

impl<T: Real> FeatureMap<T> for RandomNetworks<T> {
    fn n_features(&self) -> usize {
        self.networks.len() * self.n_outputs
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let (width, per_network) = (self.n_features(), self.n_outputs);
        let scale = T::narrow(1.0 / (width as f64).sqrt());
        for start in self.networks.clone().step_by(self.group()) {
            let group = start..(start + self.group()).min(self.networks.end);
            let outputs: Vec<Result<Vec<T>>> =
                group.into_par_iter().map(|network| self.outputs(network, inputs, samples)).collect();
            for (at, outputs) in outputs.into_iter().enumerate() {
                let first = (start - self.networks.start + at) * per_network;
                for (row, outputs) in out.chunks_exact_mut(width).zip(outputs?.chunks_exact(per_network)) {
                    row[first..first + per_network].iter_mut().zip(outputs).for_each(|(to, &x)| *to = scale * x);
                }
            }
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        Effort {
            bytes: self.bytes(),
            shared_bytes: self.weights_bytes(),
            // The outputs of a group, before they are copied into the features.
            shared_sample_bytes: self.group().min(self.networks.len()) * self.n_outputs * size_of::<T>(),
            flops: self.flops() * self.networks.len() as f64,
        }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": "random networks", "of": self.identity() })
    }
}
