//! Where the gradients of a posterior come from: reverse passes over the chosen parameters.

use super::pace::{Pace, rows};
use crate::error::Result;
use mercer_kernel::empirical::Gradients;
use mercer_kernel::{KernelError, Real};
use mercer_net::op::OuterShape;
use mercer_net::run::Factors;
use mercer_run::Context;

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
pub(super) struct Source<T>(pub(super) Gradients<T>);

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
        self.0.n_seeds()
    }

    /// The parameters, in the order of the factors.
    pub(super) fn parameters(&self) -> Vec<Chosen> {
        let gradients = &self.0;
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
        self.0.grain()
    }

    /// As [`Gradients::sweep`], piece by piece.
    pub(super) fn sweep<P: Send>(
        &self,
        batch: &Batch<'_, T>,
        outer: &[bool],
        places: Vec<P>,
        each: impl Fn(P, &Factors<T>) -> Result<(), KernelError> + Sync,
    ) -> Result<()> {
        let gradients = &self.0;
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
}
