//! The sequential part of a step: some shards of the batch, one after the other.

use super::{Loss, SampleTarget, Targets};
use crate::element::Element;
use crate::graph::{Graph, ValueId};
use crate::network::class_of_logits;
use crate::run::{Keep, Reverse, Target as Wanted, Weights, Workspace};
use std::sync::Arc;

/// The most inputs a network in training may have: their slices are kept on the stack.
pub(super) const MAX_INPUTS: usize = 8;

/// A batch to work on.
pub(super) struct Work<'a, T> {
    pub(super) weights: &'a Weights<T>,
    pub(super) loss: &'a Loss,
    pub(super) inputs: &'a [&'a [T]],
    pub(super) targets: &'a Targets<'a, T>,
    pub(super) samples: usize,
    pub(super) grain: usize,
    pub(super) learn: bool,
}

/// Memory and sums of one lane.
#[derive(Debug)]
pub(super) struct Lane<T> {
    graph: Arc<Graph>,
    output: ValueId,
    workspace: Workspace<T>,
    reverse: Reverse<T>,
    cotangent: Vec<T>,
    /// The weighted sum of the samples' losses.
    pub(super) loss: f64,
    /// Samples whose class is predicted.
    pub(super) correct: usize,
    /// Whether there are gradients of this batch.
    has_gradient: bool,
}

impl<T: Element> Lane<T> {
    /// A lane whose loss is computed at this value.
    pub(super) fn new(graph: &Arc<Graph>, output: ValueId) -> Self {
        Self {
            output,
            workspace: Workspace::new(Arc::clone(graph), &Keep::All),
            reverse: Reverse::new(Arc::clone(graph), Wanted { output, ..Wanted::all(graph) }),
            graph: Arc::clone(graph),
            cotangent: Vec::new(),
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

    pub(super) fn run(&mut self, index: usize, work: &Work<'_, T>) {
        (self.loss, self.correct, self.has_gradient) = (0.0, 0, false);
        let mut start = index * work.grain;
        while start < work.samples {
            let count = work.grain.min(work.samples - start);
            self.shard(start, count, work);
            start += super::trainer::LANES * work.grain;
        }
    }

    fn shard(&mut self, start: usize, count: usize, work: &Work<'_, T>) {
        let mut slices: [&[T]; MAX_INPUTS] = [&[]; MAX_INPUTS];
        for ((slice, data), &id) in slices.iter_mut().zip(work.inputs).zip(self.graph.inputs()) {
            let size = self.graph.value(id).meta.numel();
            *slice = &data[start * size..(start + count) * size];
        }
        let forward = self.workspace.forward(work.weights, &slices[..work.inputs.len()], count);
        forward.expect("the sizes of the inputs were checked");
        let outputs = self.workspace.get(work.weights, self.output);
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
        if !work.learn {
            return;
        }
        if self.has_gradient {
            self.reverse.summed_onto(&self.workspace, work.weights, cotangent);
        } else {
            self.reverse.summed(&self.workspace, work.weights, cotangent);
        }
        self.has_gradient = true;
    }
}
