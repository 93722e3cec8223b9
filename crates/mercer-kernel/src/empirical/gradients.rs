//! Per-sample gradients of a network, shard by shard: the first step of all tangent kernels and their sketches.

use super::selection::{NtkKind, Selection};
use crate::error::{KernelError, Result};
use crate::kernel::{Real, with_precision};
use crate::products::all_finite;
use mercer_net::graph::{Graph, Origin, ValueId};
use mercer_net::network::{Shards, check_inputs};
use mercer_net::op::OuterShape;
use mercer_net::run::{Factors, Keep, Reverse, Target, Weights, Workspace};
use mercer_net::{NetError, Network};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A network, one of its outputs with seeds, and the selected parameters.
#[derive(Debug)]
pub struct Gradients<T> {
    graph: Arc<Graph>,
    weights: Weights<T>,
    output: ValueId,
    /// `[seeds, size of the output]`.
    seeds: Vec<T>,
    n_seeds: usize,
    chosen: Vec<bool>,
    selection: Selection,
    grain: usize,
    /// The fingerprint of the network's original numbers, if they are rounded here.
    fingerprint: Option<String>,
    /// The memory of idle passes.
    idle: Arc<Mutex<Vec<Passes<T>>>>,
    /// The outer form of every parameter's gradient, whether or not it is selected.
    every_shape: OnceLock<Vec<Option<OuterShape>>>,
}

/// The memory of one thread's passes.
#[derive(Debug)]
struct Passes<T> {
    workspace: Workspace<T>,
    reverse: Reverse<T>,
    cotangent: Vec<T>,
    factors: Factors<T>,
}

impl<T: Real> Gradients<T> {
    /// The gradients for a kernel of this kind, for samples of these shapes (one per input).
    pub fn new(network: &Network, samples: &[Vec<usize>], kind: NtkKind, selection: &Selection) -> Result<Self> {
        let graph = network.graph(samples)?;
        let (weights, fingerprint) = (network.weights(&graph), network.wide_fingerprint::<T>(&graph));
        Ok(Self { fingerprint, ..Self::at(graph, weights, kind, selection)? })
    }

    /// The same for a graph with its own weights.
    pub fn at(graph: Arc<Graph>, weights: Weights<T>, kind: NtkKind, selection: &Selection) -> Result<Self> {
        let output = selection.value(&graph)?;
        let size = graph.value(output).meta.numel();
        let seeds = selection.seeds(kind, size)?;
        let n_seeds = seeds.len() / size.max(1);
        let chosen = selection.parameters(&graph)?;
        // Seeds multiply the rows of every product, so a shard needs fewer samples.
        let grain = (Shards::for_graph(&graph).grain / n_seeds.max(1)).max(2).next_power_of_two();
        let selection = selection.clone();
        let (fingerprint, idle, every_shape) = (None, Arc::default(), OnceLock::new());
        Ok(Self { graph, weights, output, seeds, n_seeds, chosen, selection, grain, fingerprint, idle, every_shape })
    }

    /// Computes the gradients of only these parameters.
    pub(crate) fn choose(&mut self, chosen: &[bool]) {
        self.chosen = chosen.to_vec();
        self.idle = Arc::default();
    }

    /// Shares the memory of its passes with another one, which has the same graph and other weights.
    pub(crate) fn share(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.graph, &other.graph) && self.output == other.output && self.chosen == other.chosen {
            self.idle = Arc::clone(&other.idle);
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The network's numbers.
    pub fn weights(&self) -> &Weights<T> {
        &self.weights
    }

    /// The same, for other uses.
    pub(crate) fn into_weights(self) -> Weights<T> {
        self.weights
    }

    /// The value that is differentiated.
    pub fn output(&self) -> ValueId {
        self.output
    }

    /// Gradients per sample.
    pub fn n_seeds(&self) -> usize {
        self.n_seeds
    }

    /// The seeds: `[n_seeds, size of the output]`.
    pub fn seeds(&self) -> &[T] {
        &self.seeds
    }

    /// For each parameter of the graph, whether it is selected.
    pub fn chosen(&self) -> &[bool] {
        &self.chosen
    }

    /// Samples per shard.
    pub fn grain(&self) -> usize {
        self.grain
    }

    /// The number of elements of a parameter.
    pub fn numel(&self, parameter: usize) -> usize {
        self.graph.value(self.graph.parameters()[parameter]).meta.numel()
    }

    /// The outer form of a parameter's gradient, if it has one, whether or not it is selected.
    pub(crate) fn outer_shape_of(&self, parameter: usize) -> Option<OuterShape> {
        let shapes = self.every_shape.get_or_init(|| {
            let all = vec![true; self.chosen.len()];
            let target = Target { output: self.output, parameters: all, inputs: false };
            let reverse = Reverse::<T>::new(Arc::clone(&self.graph), target);
            (0..self.chosen.len()).map(|at| reverse.outer_shape(at)).collect()
        });
        shapes[parameter]
    }

    /// The outer form of each parameter's gradient, if it is selected and has one.
    pub fn outer_shapes(&self) -> Vec<Option<OuterShape>> {
        let reverse = self.reverse();
        (0..self.chosen.len()).map(|at| if self.chosen[at] { reverse.outer_shape(at) } else { None }).collect()
    }

    /// Bytes per thread for the passes that compute gradients of the given forms.
    pub fn bytes(&self, outer: &[bool]) -> usize {
        let (workspace, reverse) = (self.workspace(), self.reverse());
        let cotangent = self.grain * self.seeds.len() * size_of::<T>();
        let passes = workspace.bytes(self.grain) + reverse.bytes(self.grain, self.n_seeds);
        passes + cotangent + reverse.factors_bytes(self.grain, self.n_seeds, outer)
    }

    /// Operations for one sample: a forward pass, and for every seed the cotangents of intermediate values and of the
    /// parameters whose gradients are formed.
    pub fn flops(&self, outer: &[bool]) -> f64 {
        let graph = &self.graph;
        let whole = graph.flops() as f64;
        let is_input = |id: &ValueId| matches!(graph.value(*id).origin, Origin::Input(_));
        let first = graph.nodes().iter().filter(|node| node.inputs.iter().any(is_input));
        let first: u64 = first.map(|node| graph.node_flops(node)).sum();
        let formed: f64 = (self.outer_shapes().iter().enumerate())
            .filter(|&(at, _)| !outer[at])
            .filter_map(|(_, shape)| shape.as_ref())
            .map(|shape| 2.0 * (shape.positions * shape.left) as f64 * shape.right as f64)
            .sum();
        whole + self.n_seeds as f64 * (whole - first as f64 + formed)
    }

    /// The differentiated value, for manifests.
    pub fn identity(&self) -> serde_json::Value {
        let names = self.graph.parameters().iter().map(|&id| self.graph.value(id).name.as_str());
        let chosen: Vec<&str> = names.zip(&self.chosen).filter(|(_, chosen)| **chosen).map(|(name, _)| name).collect();
        let all = self.selection.parameters.is_empty();
        with_precision::<T>(serde_json::json!({
            "network": self.fingerprint.clone().unwrap_or_else(|| self.weights.fingerprint(&self.graph)),
            "output": self.graph.value(self.output).name,
            "components": self.selection.components,
            "combine": self.selection.combine,
            "parameters": if all { serde_json::json!("all") } else { serde_json::json!(chosen) },
        }))
    }

    fn reverse(&self) -> Reverse<T> {
        let target = Target { output: self.output, parameters: self.chosen.clone(), inputs: false };
        Reverse::new(Arc::clone(&self.graph), target)
    }

    fn workspace(&self) -> Workspace<T> {
        Workspace::new(Arc::clone(&self.graph), &Keep::All)
    }

    /// The shards of a block of samples.
    pub fn shards(&self, samples: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let grain = self.grain;
        (0..samples).step_by(grain).map(move |start| start..(start + grain).min(samples))
    }

    /// Runs the network forward and backward over all shards, in parallel, and hands the factors of each to `each` together
    /// with its own entry of `places`, which has one per [shard](Self::shards).
    ///
    /// Errors name the first offending sample, for any number of threads.
    pub fn sweep<P: Send>(
        &self,
        inputs: &[&[T]],
        samples: usize,
        outer: &[bool],
        places: Vec<P>,
        each: impl Fn(P, &Factors<T>) -> Result<()> + Sync,
    ) -> Result<()> {
        check_inputs(&self.graph, inputs, samples)?;
        let sizes: Vec<usize> = self.graph.inputs().iter().map(|&id| self.graph.value(id).meta.numel()).collect();
        let shards: Vec<Range<usize>> = self.shards(samples).collect();
        assert_eq!(shards.len(), places.len(), "one place per shard");
        let results: Vec<Result<()>> = shards
            .into_par_iter()
            .zip(places)
            .map(|(rows, place)| {
                let own: Vec<&[T]> =
                    inputs.iter().zip(&sizes).map(|(data, size)| &data[rows.start * size..rows.end * size]).collect();
                let mut passes = self.take();
                let run = self.shard(&mut passes, &own, rows.len(), outer);
                let result = run.and_then(|()| each(place, &passes.factors));
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(passes);
                result.map_err(|error| error.shifted(rows.start))
            })
            .collect();
        results.into_iter().collect()
    }

    fn take(&self) -> Passes<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| {
            let (workspace, reverse) = (self.workspace(), self.reverse());
            let factors = Factors { samples: 0, seeds: 0, parameters: Vec::new() };
            Passes { workspace, reverse, cotangent: Vec::new(), factors }
        })
    }

    fn shard(&self, passes: &mut Passes<T>, inputs: &[&[T]], samples: usize, outer: &[bool]) -> Result<()> {
        let Passes { workspace, reverse, cotangent, factors } = passes;
        workspace.forward(&self.weights, inputs, samples)?;
        self.check(workspace)?;
        cotangent.clear();
        (0..samples).for_each(|_| cotangent.extend_from_slice(&self.seeds));
        reverse.fit_factors(factors, samples, self.n_seeds, outer);
        reverse.factors_into(workspace, &self.weights, cotangent, factors, 0);
        Ok(())
    }

    /// Checks that the output is finite; otherwise names the first value that is not.
    pub(crate) fn check(&self, workspace: &Workspace<T>) -> Result<()> {
        if workspace.check_finite(&self.weights, self.output).is_ok() {
            return Ok(());
        }
        let nodes = self.graph.nodes().iter().filter(|node| self.graph.value(node.output).meta.is_batched());
        for node in nodes {
            if let Err(NetError::NotFinite { sample, .. }) = workspace.check_finite(&self.weights, node.output) {
                return Err(
                    NetError::NotFinite { place: format!("the result of node {}", node.label()), sample }.into()
                );
            }
        }
        Ok(workspace.check_finite(&self.weights, self.output)?)
    }

    /// An error if a gradient is not finite; it names the parameter and the sample.
    pub(crate) fn check_gradient(&self, parameter: usize, data: &[T], samples: usize) -> Result<()> {
        if all_finite(data) {
            return Ok(());
        }
        let at = data.iter().position(|x| !x.is_finite()).unwrap_or(0);
        let sample = at / (data.len() / samples.max(1)).max(1);
        let name = &self.graph.value(self.graph.parameters()[parameter]).name;
        Err(KernelError::NotFinite { place: format!("the gradient of {name}"), sample })
    }
}
