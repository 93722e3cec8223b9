//! Work on many samples, in parallel over shards of a fixed size.

use crate::error::Result;
use crate::kernel::Real;
use mercer_net::graph::Graph;
use mercer_net::network::check_inputs;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// The shards of a graph's samples, and the memory of idle passes.
#[derive(Debug)]
pub(crate) struct Shards<P> {
    grain: usize,
    idle: Mutex<Vec<P>>,
}

impl<P: Send> Shards<P> {
    /// Shards of the size that suits a graph. The size depends only on the graph.
    pub(crate) fn new(graph: &Graph) -> Self {
        Self { grain: mercer_net::network::Shards::for_graph(graph).grain, idle: Mutex::default() }
    }

    /// Samples per shard.
    pub(crate) fn grain(&self) -> usize {
        self.grain
    }

    /// Calls `work(passes, inputs, samples, place)` for every shard, with its own entry of `places`; `fresh` allocates
    /// memory for passes if none is idle. Results are in order, and errors name the first offending sample, for any
    /// number of threads.
    pub(crate) fn sweep<T: Real, Q: Send, R: Send>(
        &self,
        (graph, inputs, samples): (&Graph, &[&[T]], usize),
        places: impl IntoIterator<Item = Q>,
        fresh: impl Fn() -> P + Sync,
        work: impl Fn(&mut P, &[&[T]], usize, Q) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        check_inputs(graph, inputs, samples)?;
        let sizes: Vec<usize> = graph.inputs().iter().map(|&id| graph.value(id).meta.numel()).collect();
        let starts: Vec<(usize, Q)> = (0..samples).step_by(self.grain).zip(places).collect();
        let results: Vec<Result<R>> = starts
            .into_par_iter()
            .map(|(start, place)| {
                let count = self.grain.min(samples - start);
                let own: Vec<&[T]> =
                    inputs.iter().zip(&sizes).map(|(data, size)| &data[start * size..(start + count) * size]).collect();
                let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut passes = idle.unwrap_or_else(&fresh);
                let result = work(&mut passes, &own, count, place);
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(passes);
                result.map_err(|error| error.shifted(start))
            })
            .collect();
        results.into_iter().collect()
    }
}
