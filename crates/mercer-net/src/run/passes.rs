//! Factors of blocks of any size by passes over a few samples, so that what lies between stays in the cache and is
//! allocated once.

use super::{Factors, Keep, Reverse, Target, Weights, Workspace};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::Graph;
use crate::network::Shards;
use std::sync::Arc;

/// The memory of forward and reverse passes from one output, for seeds that are the same for all samples.
#[derive(Debug)]
pub struct Passes<T> {
    graph: Arc<Graph>,
    target: Target,
    workspace: Workspace<T>,
    reverse: Reverse<T>,
    /// The cotangents of the output, once per sample of a pass.
    cotangent: Vec<T>,
    seeds: usize,
    outer: Vec<bool>,
    grain: usize,
}

impl<T: Element> Passes<T> {
    /// Plans passes with these cotangents of the output, `[seeds, …]`, and the parameters in `outer` as outer products
    /// where they have such a form. Allocates little more than the cotangents.
    ///
    /// # Panics
    /// If the cotangents are not a whole number of outputs, or `outer` is not one per parameter.
    pub fn new(graph: Arc<Graph>, target: Target, cotangent: &[T], outer: Vec<bool>) -> Self {
        let outputs = graph.value(target.output).meta.numel().max(1);
        assert!(cotangent.len().is_multiple_of(outputs), "cotangents of whole outputs");
        assert_eq!(outer.len(), graph.parameters.len(), "one form per parameter");
        let seeds = cotangent.len() / outputs;
        // The seeds of a sample are as much work as samples.
        let grain = Shards::of(&graph).grain.div_ceil(seeds.max(1));
        Self {
            workspace: Workspace::new(Arc::clone(&graph), &Keep::All),
            reverse: Reverse::new(Arc::clone(&graph), target.clone()),
            cotangent: cotangent.repeat(grain),
            seeds,
            outer,
            grain,
            graph,
            target,
        }
    }

    /// The reverse pass, for what it says of the parameters.
    pub fn reverse(&self) -> &Reverse<T> {
        &self.reverse
    }

    /// The samples of one pass.
    pub fn grain(&self) -> usize {
        self.grain
    }

    /// Bytes of this memory once it has been used, known before.
    pub fn bytes(&self) -> usize {
        self.workspace.bytes(self.grain)
            + self.reverse.bytes(self.grain, self.seeds)
            + self.cotangent.len() * size_of::<T>()
    }

    /// Bytes of the factors of a block of samples.
    pub fn factors_bytes(&self, samples: usize) -> usize {
        self.reverse.factors_bytes(samples, self.seeds, &self.outer)
    }

    /// Bytes that are allocated.
    pub fn allocated(&self) -> usize {
        self.workspace.allocated() + self.reverse.allocated() + self.cotangent.capacity() * size_of::<T>()
    }

    /// The factors of a block of samples; each input is `[samples, …]`, row-major. An output that is not finite is an error
    /// that names the sample.
    pub fn factors(&mut self, weights: &Weights<T>, inputs: &[&[T]], samples: usize) -> Result<Factors<T>> {
        let mut factors = self.reverse.factors_of(samples, self.seeds, &self.outer);
        self.run(weights, inputs, samples, &mut factors)?;
        Ok(factors)
    }

    /// As [`factors`](Self::factors), into memory that is used again: once it has held as large a block, nothing
    /// is allocated but a list of the inputs.
    pub fn factors_into(
        &mut self,
        weights: &Weights<T>,
        inputs: &[&[T]],
        samples: usize,
        factors: &mut Factors<T>,
    ) -> Result<()> {
        self.reverse.fit_factors(factors, samples, self.seeds, &self.outer);
        self.run(weights, inputs, samples, factors)
    }

    fn run(&mut self, weights: &Weights<T>, inputs: &[&[T]], samples: usize, factors: &mut Factors<T>) -> Result<()> {
        let sizes: Vec<usize> = self.graph.inputs.iter().map(|&id| self.graph.value(id).meta.numel()).collect();
        super::forward::check_inputs(&self.graph, inputs, samples)?;
        let mut part: Vec<&[T]> = Vec::with_capacity(inputs.len());
        for first in (0..samples).step_by(self.grain) {
            let count = self.grain.min(samples - first);
            part.clear();
            part.extend(inputs.iter().zip(&sizes).map(|(data, size)| &data[first * size..(first + count) * size]));
            self.workspace.forward(weights, &part, count)?;
            self.workspace.check_finite(weights, self.target.output).map_err(|error| match error {
                NetError::NotFinite { place, sample } => NetError::NotFinite { place, sample: first + sample },
                other => other,
            })?;
            let cotangent = &self.cotangent[..self.cotangent.len() / self.grain * count];
            self.reverse.factors_into(&self.workspace, weights, cotangent, factors, first);
        }
        Ok(())
    }
}
