//! The sequential part of a step: some shards of the batch, one after the other.

use super::{Loss, SampleTarget, Targets};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::{Graph, ValueId};
use crate::network::class_of_logits;
use crate::run::{Keep, Reverse, Target as Wanted, Weights, Workspace};
use std::ops::Range;
use std::sync::Arc;

/// The most inputs a network in training may have: their slices are kept on the stack.
pub(super) const MAX_INPUTS: usize = 8;

/// A batch to work on.
pub(super) struct Work<'a, T> {
    pub(super) loss: &'a Loss,
    pub(super) inputs: &'a [&'a [T]],
    pub(super) targets: &'a Targets<'a, T>,
    pub(super) samples: usize,
    /// Samples of a lane that run together.
    pub(super) grain: usize,
    pub(super) learn: bool,
}

/// Memory and sums of one lane.
#[derive(Debug)]
pub(super) struct Lane<T> {
    graph: Arc<Graph>,
    output: ValueId,
    pub(super) workspace: Workspace<T>,
    pub(super) reverse: Reverse<T>,
    pub(super) cotangent: Vec<T>,
    /// The samples of a batch whose passes run in parts.
    pub(super) share: Range<usize>,
    /// Sums over the channels of a normalisation.
    pub(super) sums: Vec<f64>,
    /// The weighted sum of the samples' losses.
    pub(super) loss: f64,
    /// Samples whose class is predicted.
    pub(super) correct: usize,
    /// Why it stopped: there was not enough memory.
    pub(super) failed: Option<NetError>,
    /// Whether there are gradients of this batch.
    pub(super) has_gradient: bool,
}

impl<T: Element> Lane<T> {
    /// A lane whose loss is computed at this value, with the cotangents of these shared values.
    pub(super) fn new(graph: &Arc<Graph>, output: ValueId, shared: &[ValueId]) -> Self {
        let wanted = Wanted { output, ..Wanted::all(graph) };
        Self {
            output,
            workspace: Workspace::new(Arc::clone(graph), &Keep::All),
            reverse: Reverse::with_shared(Arc::clone(graph), wanted, shared),
            graph: Arc::clone(graph),
            cotangent: Vec::new(),
            share: 0..0,
            sums: Vec::new(),
            failed: None,
            loss: 0.0,
            correct: 0,
            has_gradient: false,
        }
    }

    /// The memory that this many samples take.
    pub(super) fn bytes(&self, samples: usize) -> usize {
        self.workspace.bytes(samples).saturating_add(self.reverse.bytes(samples, 1))
    }

    /// The gradient of a parameter, summed over this lane's shards; `None` if there is none.
    pub(super) fn gradient(&self, parameter: usize) -> Option<&[T]> {
        let gradient = self.reverse.gradient(parameter);
        (self.has_gradient && !gradient.is_empty()).then_some(gradient)
    }

    /// The cotangent of a shared value, summed over this lane's samples.
    pub(super) fn shared_cotangent(&self, id: ValueId) -> &[T] {
        if self.has_gradient { self.reverse.shared(id) } else { &[] }
    }

    /// The sums over the channels of a normalisation.
    pub(super) fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Forgets the batch before.
    pub(super) fn clear(&mut self) {
        (self.loss, self.correct, self.has_gradient, self.failed) = (0.0, 0, false, None);
    }

    pub(super) fn run(&mut self, index: usize, weights: &Weights<T>, work: &Work<'_, T>) {
        self.clear();
        let mut start = index * work.grain;
        while start < work.samples && self.failed.is_none() {
            let count = work.grain.min(work.samples - start);
            self.shard(start, count, weights, work);
            start += super::trainer::LANES * work.grain;
        }
    }

    /// Gives some samples to a pass. It fails if there is not enough memory.
    pub(super) fn load(
        &mut self,
        start: usize,
        count: usize,
        work: &Work<'_, T>,
        pass: impl FnOnce(&mut Workspace<T>, &[&[T]]) -> Result<()>,
    ) {
        let mut slices: [&[T]; MAX_INPUTS] = [&[]; MAX_INPUTS];
        for ((slice, data), &id) in slices.iter_mut().zip(work.inputs).zip(self.graph.inputs()) {
            let size = self.graph.value(id).meta.numel();
            *slice = &data[start * size..(start + count) * size];
        }
        self.failed = pass(&mut self.workspace, &slices[..work.inputs.len()]).err();
    }

    /// Losses and cotangents at the output, for these samples; returns the number of outputs.
    pub(super) fn losses(&mut self, start: usize, count: usize, weights: &Weights<T>, work: &Work<'_, T>) -> usize {
        let outputs = self.workspace.get(weights, self.output);
        if self.cotangent.len() < outputs.len() {
            self.cotangent.resize(outputs.len(), T::zero());
        }
        let cotangent = &mut self.cotangent[..outputs.len()];
        let n_outputs = outputs.len() / count;
        let rows = outputs.chunks_exact(n_outputs).zip(cotangent.chunks_exact_mut(n_outputs));
        for (sample, (output, slope)) in (start..).zip(rows) {
            let (target, weight) = (work.targets.get(sample, n_outputs), work.targets.weight(sample));
            self.loss += weight * work.loss.sample(output, target, slope);
            if let SampleTarget::Class(class) = target {
                self.correct += usize::from(class_of_logits(output) == class);
            }
            let scale = T::narrow(weight / work.samples as f64);
            slope.iter_mut().for_each(|slope| *slope *= scale);
        }
        outputs.len()
    }

    fn shard(&mut self, start: usize, count: usize, weights: &Weights<T>, work: &Work<'_, T>) {
        self.load(start, count, work, |workspace, inputs| workspace.forward(weights, inputs, count));
        if self.failed.is_some() {
            return;
        }
        let length = self.losses(start, count, weights, work);
        if !work.learn {
            return;
        }
        let cotangent = &self.cotangent[..length];
        if self.has_gradient {
            self.reverse.summed_onto(&self.workspace, weights, cotangent);
        } else {
            self.reverse.summed(&self.workspace, weights, cotangent);
        }
        self.has_gradient = true;
    }
}
