//! Forward and reverse passes over a whole batch, for objectives that couple its samples.
//!
//! The batch is split into shards whose size depends only on the network. All shards run forward and keep their values;
//! the objective turns the outputs of the batch into cotangents; then lane `j` of [`LANES`] runs the shards
//! `j, j + LANES, …` backward and adds their gradients, and the lanes are added in order. Threads only determine where
//! a lane runs, so the result is the same to the bit for any number of threads. After the first batch nothing is
//! allocated.

use mercer_linalg::simd::dispatch;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::network::Shards;
use mercer_net::run::{Keep, Reverse, Target, Weights, Workspace};
use mercer_net::train::LANES;
use mercer_net::{Element, NetError};
use rayon::prelude::*;
use std::sync::Arc;

/// The passes of one network.
#[derive(Debug)]
pub(super) struct Passes<T> {
    graph: Arc<Graph>,
    output: ValueId,
    n_outputs: usize,
    grain: usize,
    samples: usize,
    shards: Vec<Workspace<T>>,
    lanes: Vec<Reverse<T>>,
    /// All parameters one after the other.
    gradient: Vec<T>,
}

impl<T: Element> Passes<T> {
    pub(super) fn new(graph: &Arc<Graph>) -> Self {
        let output = graph.outputs()[0].1;
        let n_params = graph.parameters().iter().map(|&id| graph.value(id).meta.numel()).sum();
        Self {
            output,
            n_outputs: graph.value(output).meta.numel(),
            grain: Shards::for_graph(graph).grain.max(1),
            samples: 0,
            shards: Vec::new(),
            lanes: (0..LANES).map(|_| Reverse::new(Arc::clone(graph), Target::all(graph))).collect(),
            gradient: vec![T::zero(); n_params],
            graph: Arc::clone(graph),
        }
    }

    /// Runs the network on a batch; each input is `[samples, …]`, the outputs are `[samples, outputs]`.
    pub(super) fn forward(
        &mut self,
        weights: &Weights<T>,
        inputs: &[Vec<T>],
        samples: usize,
        outputs: &mut [T],
    ) -> Result<(), NetError> {
        self.samples = samples;
        let count = samples.div_ceil(self.grain);
        while self.shards.len() < count {
            self.shards.push(Workspace::new(Arc::clone(&self.graph), &Keep::All));
        }
        let (grain, output, graph) = (self.grain, self.output, &self.graph);
        let run = |(index, (workspace, out)): (usize, (&mut Workspace<T>, &mut [T]))| {
            let (start, count) = (index * grain, grain.min(samples - index * grain));
            let mut slices: [&[T]; MAX_INPUTS] = [&[]; MAX_INPUTS];
            for ((slice, data), &id) in slices.iter_mut().zip(inputs).zip(graph.inputs()) {
                let size = graph.value(id).meta.numel();
                *slice = &data[start * size..(start + count) * size];
            }
            workspace.forward(weights, &slices[..inputs.len().min(MAX_INPUTS)], count)?;
            out.copy_from_slice(workspace.get(weights, output));
            Ok(())
        };
        let shards = &mut self.shards[..count];
        let chunk = grain * self.n_outputs;
        if rayon::current_num_threads() == 1 {
            return shards.iter_mut().zip(outputs.chunks_mut(chunk)).enumerate().try_for_each(run);
        }
        shards.par_iter_mut().zip(outputs.par_chunks_mut(chunk)).enumerate().try_for_each(run)
    }

    /// The gradient, summed over the samples of the last forward pass, from cotangents `[samples, outputs]`.
    pub(super) fn reverse(&mut self, weights: &Weights<T>, cotangents: &[T]) -> &[T] {
        let (grain, samples, size) = (self.grain, self.samples, self.n_outputs);
        let shards = &self.shards[..samples.div_ceil(grain)];
        let lanes = &mut self.lanes[..shards.len().min(LANES)];
        let run = |(index, lane): (usize, &mut Reverse<T>)| {
            for shard in (index..shards.len()).step_by(LANES) {
                let end = ((shard + 1) * grain).min(samples);
                let cotangent = &cotangents[shard * grain * size..end * size];
                if shard == index {
                    lane.summed(&shards[shard], weights, cotangent);
                } else {
                    lane.summed_onto(&shards[shard], weights, cotangent);
                }
            }
        };
        if rayon::current_num_threads() == 1 {
            // The last shard's values are still in the cache.
            lanes.iter_mut().enumerate().rev().for_each(run);
        } else {
            lanes.par_iter_mut().enumerate().for_each(run);
        }
        let mut rest = self.gradient.as_mut_slice();
        for (index, &id) in self.graph.parameters().iter().enumerate() {
            let sum = rest.split_off_mut(..self.graph.value(id).meta.numel()).unwrap_or_default();
            sum.fill(T::zero());
            for part in lanes.iter().map(|lane| lane.gradient(index)) {
                dispatch(
                    #[inline(always)]
                    || sum.iter_mut().zip(part).for_each(|(sum, &x)| *sum += x),
                );
            }
        }
        &self.gradient
    }

    /// The number of parameters.
    pub(super) fn n_params(&self) -> usize {
        self.gradient.len()
    }
}

/// The most inputs a network in training may have: their slices are kept on the stack.
pub(super) const MAX_INPUTS: usize = 8;
