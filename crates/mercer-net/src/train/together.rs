//! A step of a network with batch normalisation: the lanes meet at every normalisation.
//!
//! The statistics of a batch couple its samples. Each lane therefore holds a contiguous share of the batch, with all of
//! its values, and the passes run in parts: forward up to a normalisation, statistics over all lanes, on to the next
//! one; in reverse down to a normalisation, cotangents of its statistics over all lanes, on to the one before. Shares
//! depend only on the network and the batch, and lanes are added in order, so the bits do not depend on the number of
//! threads.
//!
//! We chose this over a batch axis in the graph: the graph stays a function of one sample, whose statistics are shared
//! operands, and every other reading of it sees plain constants.

use super::lane::{Lane, Work};
use super::norm::Norm;
use super::trainer::LANES;
use crate::element::Element;
use crate::graph::Graph;
use crate::run::Weights;
use rayon::prelude::*;
use std::ops::Range;

/// Samples per lane: as many lanes as there are shards, up to [`LANES`].
pub(super) fn share(samples: usize, grain: usize) -> usize {
    samples.div_ceil(samples.div_ceil(grain).clamp(1, LANES))
}

/// Runs a function for all lanes, in parallel if there are threads.
pub(super) fn each_lane<T: Element>(lanes: &mut [Lane<T>], run: impl Fn((usize, &mut Lane<T>)) + Send + Sync) {
    if rayon::current_num_threads() == 1 {
        lanes.iter_mut().enumerate().for_each(run);
    } else {
        lanes.par_iter_mut().enumerate().for_each(run);
    }
}

/// Forward and reverse pass of a batch. Afterwards the weights hold the statistics of the batch. Nothing happens if a
/// lane has not enough memory for its share.
pub(super) fn pass<T: Element>(
    graph: &Graph,
    weights: &mut Weights<T>,
    norms: &mut [Norm<T>],
    lanes: &mut [Lane<T>],
    work: &Work<'_, T>,
) {
    let (all, samples) = (graph.nodes().len(), work.samples);
    each_lane(lanes, |(index, lane)| lane.begin(index, work));
    if lanes.iter().any(|lane| lane.failed.is_some()) {
        return;
    }
    let mut from = 0;
    for norm in norms.iter_mut() {
        let nodes = from..norm.node;
        from = norm.node;
        each_lane(lanes, |(_, lane)| {
            lane.forward(weights, nodes.clone());
            lane.sum_values(weights, norm);
        });
        norm.set_mean(graph, weights, lanes, samples);
        each_lane(lanes, |(_, lane)| lane.sum_squares(weights, norm));
        norm.set_variance(graph, weights, lanes, samples);
    }
    // The last part, the losses, and the way back to the last normalisation.
    each_lane(lanes, |(_, lane)| {
        lane.forward(weights, from..all);
        lane.turn(weights, work);
    });
    let mut until = all;
    for at in (0..norms.len()).rev() {
        let nodes = norms[at].node..until;
        until = norms[at].node;
        let after = norms.get(at + 1);
        each_lane(lanes, |(_, lane)| lane.backward(weights, after, nodes.clone()));
        norms[at].set_through(lanes, samples);
    }
    each_lane(lanes, |(_, lane)| lane.backward(weights, norms.first(), 0..until));
}

impl<T: Element> Lane<T> {
    /// Takes this lane's share of a batch.
    fn begin(&mut self, index: usize, work: &Work<'_, T>) {
        self.clear();
        let start = (index * work.grain).min(work.samples);
        self.share = start..(start + work.grain).min(work.samples);
        if !self.share.is_empty() {
            let (start, count) = (self.share.start, self.share.len());
            self.load(start, count, work, |workspace, inputs| workspace.begin(inputs, count));
        }
    }

    fn forward(&mut self, weights: &Weights<T>, nodes: Range<usize>) {
        if !self.share.is_empty() {
            self.workspace.advance(weights, nodes);
        }
    }

    /// Losses and cotangents at the output.
    fn turn(&mut self, weights: &Weights<T>, work: &Work<'_, T>) {
        if !self.share.is_empty() {
            let length = self.losses(self.share.start, self.share.len(), weights, work);
            self.reverse.begin_summed(&self.workspace, &self.cotangent[..length]);
            self.has_gradient = true;
        }
    }

    /// Some nodes of the reverse pass, from a normalisation on whose cotangents are known over all lanes.
    fn backward(&mut self, weights: &Weights<T>, norm: Option<&Norm<T>>, nodes: Range<usize>) {
        if self.share.is_empty() {
            return;
        }
        if let Some(norm) = norm
            && let Some(dx) = self.reverse.batched_mut(norm.x)
        {
            norm.add_through(self.workspace.get(weights, norm.x), dx);
        }
        self.reverse.advance_summed(&self.workspace, weights, nodes);
    }

    fn sum_values(&mut self, weights: &Weights<T>, norm: &Norm<T>) {
        self.clear_sums(norm);
        if !self.share.is_empty() {
            norm.channels.sums(self.workspace.get(weights, norm.x), &mut self.sums);
        }
    }

    fn sum_squares(&mut self, weights: &Weights<T>, norm: &Norm<T>) {
        self.clear_sums(norm);
        if !self.share.is_empty() {
            norm.channels.squares(self.workspace.get(weights, norm.x), norm.batch_mean(), &mut self.sums);
        }
    }

    fn clear_sums(&mut self, norm: &Norm<T>) {
        self.sums.clear();
        self.sums.resize(norm.channels.count, 0.0);
    }
}
