//! The reverse pass: cotangents of parameters and inputs, for several seeds at once.

#![allow(clippy::too_many_arguments, reason = "a step of a pass takes many arguments")]

use super::dependence::{active_values, cotangent_roots, parameter_uses};
use super::forward::scratch_elements;
use super::slots::{Life, assign};
use super::{Factor, Factors, NodeOperands, Weights, Workspace};
use crate::element::Element;
use crate::graph::{Graph, Node, Origin, ValueId};
use crate::op::{Call, OuterShape, Scratch, grow};
use std::sync::Arc;

/// How the cotangents of shared values are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Summed over the samples (one seed): training.
    Summed,
    /// Summed, and added to the gradients of the previous pass.
    SummedOnto,
    /// One per sample and seed, as outer products where the plan says so.
    PerSample,
}

/// Where the cotangents of parameters go: to the samples of a block, starting at `first`.
struct Rows<'a, T> {
    factors: &'a mut Factors<T>,
    first: usize,
}

/// Which parameters a reverse pass differentiates, and in which form.
#[derive(Clone, Debug)]
pub struct Target {
    /// The value whose cotangent is given.
    pub output: ValueId,
    /// For each parameter, whether its cotangent is requested.
    pub parameters: Vec<bool>,
    /// Whether the cotangents of the inputs are requested.
    pub inputs: bool,
}

impl Target {
    /// All parameters of a graph, from its first output.
    pub fn all(graph: &Graph) -> Self {
        Self { output: graph.outputs[0].1, parameters: vec![true; graph.parameters.len()], inputs: false }
    }
}

/// The plan and memory of reverse passes from one output.
#[derive(Debug)]
pub struct Reverse<T> {
    graph: Arc<Graph>,
    target: Target,
    /// Values whose cotangent is needed: they reach the output and depend on a requested value.
    active: Vec<bool>,
    /// The uses of each parameter that reach the output: node and operand.
    uses: Vec<Vec<(usize, usize)>>,
    slot_of: Vec<Option<usize>>,
    slots: Vec<Vec<T>>,
    slot_sizes: Vec<usize>,
    /// Whether a cotangent has been written in this pass.
    written: Vec<bool>,
    shared: Vec<Vec<T>>,
    temporary: Vec<T>,
    /// The positions of each parameter's factors that have been written.
    positions: Vec<usize>,
    scratch: Scratch<T>,
    /// The sizes of the last pass.
    samples: usize,
    seeds: usize,
}

impl<T: Element> Reverse<T> {
    /// Plans a reverse pass.
    pub fn new(graph: Arc<Graph>, target: Target) -> Self {
        Self::with_shared(graph, target, &[])
    }

    /// Plans a reverse pass that also gives the cotangents of these shared values; see [`shared`](Self::shared).
    pub(crate) fn with_shared(graph: Arc<Graph>, target: Target, shared: &[ValueId]) -> Self {
        let active = active_values(&graph, &target, shared);
        let uses = parameter_uses(&graph, &active);
        let root = cotangent_roots(&graph, &active);
        let last_step = graph.nodes.len();
        let mut lives: Vec<Option<Life>> = vec![None; graph.values.len()];
        // Steps run backwards: step s handles node (last_step − s).
        for (index, value) in graph.values.iter().enumerate() {
            if !active[index] || !value.meta.is_batched() {
                continue;
            }
            let done = match value.origin {
                Origin::Node(node) => last_step - node,
                _ => last_step + 1,
            };
            let size = value.meta.numel();
            let life = lives[root[index]].get_or_insert(Life { first: done, last: done, size });
            life.last = life.last.max(done);
            life.first = life.first.min(done);
        }
        for (step, node) in graph.nodes.iter().enumerate() {
            if !active[node.output.0] {
                continue;
            }
            for input in &node.inputs {
                if let Some(life) = &mut lives[root[input.0]] {
                    life.first = life.first.min(last_step - step);
                }
            }
        }
        if let Some(life) = &mut lives[root[target.output.0]] {
            life.first = 0;
        }
        let (slot_of_root, slot_sizes) = assign(&lives);
        let slot_of = (0..root.len()).map(|v| if active[v] { slot_of_root[root[v]] } else { None }).collect();
        Self {
            slots: slot_sizes.iter().map(|_| Vec::new()).collect(),
            shared: vec![Vec::new(); graph.values.len()],
            written: vec![false; graph.values.len()],
            temporary: Vec::new(),
            positions: vec![0; graph.parameters.len()],
            scratch: Scratch::default(),
            samples: 0,
            seeds: 0,
            graph,
            target,
            active,
            uses,
            slot_of,
            slot_sizes,
        }
    }

    /// Elements of memory per sample and seed.
    pub fn elements_per_seed(&self) -> usize {
        self.slot_sizes.iter().sum()
    }

    /// The outer forms of a parameter's uses, if all of them have one of the same kind.
    pub fn outer_shape(&self, parameter: usize) -> Option<OuterShape> {
        let mut joined: Option<OuterShape> = None;
        for &(index, which) in &self.uses[parameter] {
            let node = &self.graph.nodes[index];
            let output = &self.graph.value(node.output).meta;
            let shape = node.op.outer_shape(which, &self.graph.metas(node), output)?;
            joined = Some(match joined {
                None => shape,
                Some(known) => {
                    let same = OuterShape { positions: shape.positions, ..known };
                    if same != shape {
                        return None;
                    }
                    OuterShape { positions: known.positions + shape.positions, ..known }
                }
            });
        }
        joined
    }

    /// One cotangent per sample at the output, `[samples, …]`; gradients are summed over samples, see
    /// [`gradient`](Self::gradient).
    pub fn summed(&mut self, workspace: &Workspace<T>, weights: &Weights<T>, cotangent: &[T]) {
        self.run(workspace, weights, cotangent, 1, Mode::Summed, None);
    }

    /// As [`summed`](Self::summed), but added to the gradients of the previous pass.
    pub fn summed_onto(&mut self, workspace: &Workspace<T>, weights: &Weights<T>, cotangent: &[T]) {
        self.run(workspace, weights, cotangent, 1, Mode::SummedOnto, None);
    }

    /// `seeds` cotangents per sample at the output, `[samples, seeds, …]`; gradients per sample and seed.
    pub fn per_sample(&mut self, workspace: &Workspace<T>, weights: &Weights<T>, cotangent: &[T], seeds: usize) {
        self.run(workspace, weights, cotangent, seeds, Mode::PerSample, None);
    }

    /// As [`per_sample`](Self::per_sample), but in factors: outer products for the parameters chosen by `outer` (those
    /// that have an [`outer_shape`](Self::outer_shape)), explicit for the others.
    pub fn factors(
        &mut self,
        workspace: &Workspace<T>,
        weights: &Weights<T>,
        cotangent: &[T],
        seeds: usize,
        outer: &[bool],
    ) -> Factors<T> {
        let mut factors = self.factors_of(workspace.samples, seeds, outer);
        self.factors_into(workspace, weights, cotangent, &mut factors, 0);
        factors
    }

    /// Memory for the factors of a block of samples, all zero.
    pub fn factors_of(&self, samples: usize, seeds: usize, outer: &[bool]) -> Factors<T> {
        let mut factors = Factors { samples: 0, seeds: 0, parameters: Vec::new() };
        self.fit_factors(&mut factors, samples, seeds, outer);
        factors
    }

    /// Resizes factors for another block. Allocates only if it is larger than all before.
    pub fn fit_factors(&self, factors: &mut Factors<T>, samples: usize, seeds: usize, outer: &[bool]) {
        let count = self.graph.parameters.len();
        (factors.samples, factors.seeds) = (samples, seeds);
        factors.parameters.resize(count, None);
        for (index, piece) in factors.parameters.iter_mut().enumerate() {
            let wanted = self.target.parameters[index];
            let shape = outer[index].then(|| self.outer_shape(index)).flatten();
            let size = self.graph.value(self.graph.parameters[index]).meta.numel();
            Factor::fit(piece, wanted.then_some((shape, size)), samples, seeds);
        }
    }

    /// Bytes of the factors of a block of samples.
    pub fn factors_bytes(&self, samples: usize, seeds: usize, outer: &[bool]) -> usize {
        let each = self.target.parameters.iter().enumerate().filter(|&(_, &wanted)| wanted).map(|(index, _)| {
            let shape = outer[index].then(|| self.outer_shape(index)).flatten();
            let size = self.graph.value(self.graph.parameters[index]).meta.numel();
            Factor::<T>::lengths(shape, size, samples, seeds).iter().sum::<usize>()
        });
        each.sum::<usize>().saturating_mul(size_of::<T>())
    }

    /// As [`factors`](Self::factors), for the samples of a larger block, starting at `first`. The form of each
    /// parameter is the one for which the factors were made. Allocates nothing after the first time.
    ///
    /// # Panics
    /// If the factors are of another graph, or have no room for these samples.
    pub fn factors_into(
        &mut self,
        workspace: &Workspace<T>,
        weights: &Weights<T>,
        cotangent: &[T],
        factors: &mut Factors<T>,
        first: usize,
    ) {
        assert!(first + workspace.samples <= factors.samples, "room for the samples");
        let seeds = factors.seeds;
        self.positions.fill(0);
        self.run(workspace, weights, cotangent, seeds, Mode::PerSample, Some(Rows { factors, first }));
    }

    /// Bytes that passes per sample (not summed ones) need for this many samples and seeds besides the factors, known
    /// before anything is allocated.
    pub fn bytes(&self, samples: usize, seeds: usize) -> usize {
        let count = samples.saturating_mul(seeds);
        let graph = &self.graph;
        // Shared values other than parameters have one cotangent per sample here.
        let shared = graph.nodes.iter().map(|node| node.output).filter(|id| self.active[id.0]);
        let shared: usize =
            shared.map(|id| &graph.value(id).meta).filter(|meta| !meta.is_batched()).map(|meta| meta.numel()).sum();
        let elements = self.elements_per_seed().saturating_add(shared).saturating_mul(count);
        elements.saturating_add(scratch_elements(graph)).saturating_mul(size_of::<T>())
    }

    /// Bytes that are allocated.
    pub fn allocated(&self) -> usize {
        let elements: usize = self.slots.iter().chain(&self.shared).map(Vec::capacity).sum();
        (elements + self.temporary.capacity()) * size_of::<T>() + self.scratch.allocated()
    }

    /// The gradient of a parameter after the last pass: summed, `[…]`, or `[samples, seeds, …]`. Empty if the output
    /// does not depend on it.
    pub fn gradient(&self, parameter: usize) -> &[T] {
        let id = self.graph.parameters[parameter];
        if self.written[id.0] { &self.shared[id.0] } else { &[] }
    }

    /// The cotangent of a shared value, summed over samples; empty if the output does not depend on it.
    pub(crate) fn shared(&self, id: ValueId) -> &[T] {
        if self.written[id.0] { &self.shared[id.0] } else { &[] }
    }

    /// The cotangent of a batched value in the course of a pass, `[samples, …]`; `None` if it is not needed.
    pub(crate) fn batched_mut(&mut self, id: ValueId) -> Option<&mut [T]> {
        let length = self.samples * self.seeds * self.graph.value(id).meta.numel();
        self.slot_of[id.0].map(|slot| &mut self.slots[slot][..length])
    }

    /// The cotangent of an input after the last pass, `[samples, seeds, …]`; empty if it was not requested.
    pub fn input(&self, index: usize) -> &[T] {
        let id = self.graph.inputs[index];
        match self.slot_of[id.0] {
            Some(slot) if self.written[id.0] => {
                &self.slots[slot][..self.samples * self.seeds * self.graph.value(id).meta.numel()]
            }
            _ => &[],
        }
    }

    fn run(
        &mut self,
        workspace: &Workspace<T>,
        weights: &Weights<T>,
        cotangent: &[T],
        seeds: usize,
        mode: Mode,
        mut rows: Option<Rows<'_, T>>,
    ) {
        self.begin(workspace.samples, cotangent, seeds, mode);
        self.nodes(workspace, weights, 0..self.graph.nodes.len(), mode, &mut rows);
        if let Some(rows) = rows {
            // A parameter that does not reach the output has no gradient.
            let graph = Arc::clone(&self.graph);
            for (index, &id) in graph.parameters.iter().enumerate() {
                let written = std::mem::take(&mut self.written[id.0]) || self.positions[index] > 0;
                if let (false, Some(piece)) = (written, &mut rows.factors.parameters[index]) {
                    piece.clear(rows.first, self.samples, seeds, graph.value(id).meta.numel());
                }
            }
        }
    }

    /// Begins a [`summed`](Self::summed) pass that is run in parts, by [`advance_summed`](Self::advance_summed).
    pub(crate) fn begin_summed(&mut self, workspace: &Workspace<T>, cotangent: &[T]) {
        self.begin(workspace.samples, cotangent, 1, Mode::Summed);
    }

    /// Runs these nodes of a summed pass, the last one first.
    pub(crate) fn advance_summed(
        &mut self,
        workspace: &Workspace<T>,
        weights: &Weights<T>,
        nodes: std::ops::Range<usize>,
    ) {
        self.nodes(workspace, weights, nodes, Mode::Summed, &mut None);
    }

    fn begin(&mut self, samples: usize, cotangent: &[T], seeds: usize, mode: Mode) {
        let graph = Arc::clone(&self.graph);
        (self.samples, self.seeds) = (samples, seeds);
        for (written, value) in self.written.iter_mut().zip(&graph.values) {
            *written &= mode == Mode::SummedOnto && matches!(value.origin, Origin::Parameter(_));
        }
        for (slot, &size) in self.slots.iter_mut().zip(&self.slot_sizes) {
            grow(slot, size * samples * seeds);
        }
        let output = self.target.output;
        assert_eq!(cotangent.len(), samples * seeds * graph.value(output).meta.numel(), "cotangent of the output");
        if let Some(slot) = self.slot_of[output.0] {
            self.slots[slot][..cotangent.len()].copy_from_slice(cotangent);
            self.written[output.0] = true;
        }
    }

    fn nodes(
        &mut self,
        workspace: &Workspace<T>,
        weights: &Weights<T>,
        nodes: std::ops::Range<usize>,
        mode: Mode,
        rows: &mut Option<Rows<'_, T>>,
    ) {
        let graph = Arc::clone(&self.graph);
        let (samples, seeds) = (self.samples, self.seeds);
        for node in graph.nodes[nodes].iter().rev() {
            if !self.active[node.output.0] || !self.written[node.output.0] {
                continue;
            }
            let operands = NodeOperands { graph: &graph, node, weights, workspace, with_result: true };
            for (which, &input) in node.inputs.iter().enumerate() {
                if !self.active[input.0] || !node.op.differentiable(which) {
                    continue;
                }
                let mut into = None;
                if let (Some(rows), Origin::Parameter(index)) = (&mut *rows, graph.value(input).origin) {
                    match &mut rows.factors.parameters[index] {
                        Some(Factor::Explicit(gradient)) => {
                            let size = seeds * graph.value(input).meta.numel();
                            into = Some(&mut gradient[rows.first * size..(rows.first + samples) * size]);
                        }
                        Some(outer) => {
                            let call = Call::new(&operands, samples);
                            self.outer(&graph, node, &call, which, index, outer, rows.first);
                            continue;
                        }
                        None => continue,
                    }
                }
                self.step(&graph, node, &operands, which, input, mode, into);
            }
        }
    }

    /// The part of a pass that concerns one operand of one node.
    fn step(
        &mut self,
        graph: &Graph,
        node: &Node,
        operands: &NodeOperands<'_, T>,
        which: usize,
        input: ValueId,
        mode: Mode,
        into: Option<&mut [T]>,
    ) {
        let output_batched = graph.value(node.output).meta.is_batched();
        let meta = &graph.value(input).meta;
        let kernel = T::kernel(node.op.as_ref());
        let summed = mode != Mode::PerSample;
        let add = self.written[input.0];
        self.written[input.0] = true;
        // The summed cotangent of a shared result is a single one for all samples.
        let (samples, seeds) = if summed && !output_batched { (1, 1) } else { (self.samples, self.seeds) };
        let call = Call::new(operands, samples);
        let mut scratch = std::mem::take(&mut self.scratch);
        if meta.is_batched() {
            let slot = self.slot_of[input.0].expect("active batched values have a slot");
            if node.op.is_view() && self.slot_of[node.output.0] == Some(slot) {
                self.scratch = scratch;
                return;
            }
            let mut dx = std::mem::take(&mut self.slots[slot]);
            let dy = self.cotangent(graph, node.output, samples * seeds);
            kernel.vjp(&call, dy, seeds, which, &mut dx[..samples * seeds * meta.numel()], add, &mut scratch);
            self.slots[slot] = dx;
        } else if let Some(dx) = into {
            let dy = self.cotangent(graph, node.output, samples * seeds);
            kernel.vjp(&call, dy, seeds, which, dx, add, &mut scratch);
        } else {
            let size = meta.numel();
            let mut dx = std::mem::take(&mut self.shared[input.0]);
            let length = if summed { size } else { samples * seeds * size };
            if dx.len() != length {
                dx.resize(length, T::zero());
            }
            let mut temporary = std::mem::take(&mut self.temporary);
            let dy = self.cotangent(graph, node.output, samples * seeds);
            if !(summed && output_batched) {
                kernel.vjp(&call, dy, seeds, which, &mut dx, add, &mut scratch);
            } else {
                if !add {
                    dx.fill(T::zero());
                }
                if !kernel.accumulate(&call, dy, which, &mut dx, &mut scratch) {
                    grow(&mut temporary, samples * size);
                    let each = &mut temporary[..samples * size];
                    kernel.vjp(&call, dy, seeds, which, each, false, &mut scratch);
                    mercer_linalg::simd::dispatch(
                        #[inline(always)]
                        || {
                            for one in each.chunks_exact(size.max(1)) {
                                dx.iter_mut().zip(one).for_each(|(sum, &x)| *sum += x);
                            }
                        },
                    );
                }
            }
            self.temporary = temporary;
            self.shared[input.0] = dx;
        }
        self.scratch = scratch;
    }

    fn cotangent<'a>(&'a self, graph: &Graph, id: ValueId, count: usize) -> &'a [T] {
        match self.slot_of[id.0] {
            Some(slot) => &self.slots[slot][..count * graph.value(id).meta.numel()],
            None => &self.shared[id.0],
        }
    }

    /// Writes the factors of one use of a parameter.
    fn outer(
        &mut self,
        graph: &Graph,
        node: &Node,
        call: &Call<'_, T>,
        which: usize,
        parameter: usize,
        factor: &mut Factor<T>,
        first: usize,
    ) {
        let output = &graph.value(node.output).meta;
        let Factor::Outer { shape: whole, left, right } = factor else { unreachable!("explicit ones go elsewhere") };
        let shape = node.op.outer_shape(which, &graph.metas(node), output).expect("all uses have one");
        let (samples, seeds) = (self.samples, self.seeds);
        let start = self.positions[parameter];
        self.positions[parameter] += shape.positions;
        let width = if shape.one_hot { 1 } else { shape.left };
        let (each_left, each_right) = (whole.positions * width, seeds * whole.positions * shape.right);
        let left = &mut left[first * each_left..(first + samples) * each_left];
        let right = &mut right[first * each_right..(first + samples) * each_right];
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut temporary = std::mem::take(&mut self.temporary);
        let dy = self.cotangent(graph, node.output, samples * seeds);
        let kernel = T::kernel(node.op.as_ref());
        if shape.positions == whole.positions {
            kernel.outer(call, dy, seeds, which, left, right, &mut scratch);
        } else {
            // One of several uses: its positions are interleaved with those of the others.
            let (own_left, own_right) = (shape.positions * width, shape.positions * shape.right);
            grow(&mut temporary, samples * (own_left + seeds * own_right));
            let (some_left, rest) = temporary.split_at_mut(samples * own_left);
            let some_right = &mut rest[..samples * seeds * own_right];
            kernel.outer(call, dy, seeds, which, some_left, some_right, &mut scratch);
            spread(some_left, own_left, left, each_left, start * width);
            spread(some_right, own_right, right, each_right / seeds.max(1), start * shape.right);
        }
        self.temporary = temporary;
        self.scratch = scratch;
    }
}

/// Copies rows of `size` to `at` of longer rows.
fn spread<T: Copy>(from: &[T], size: usize, to: &mut [T], longer: usize, at: usize) {
    for (from, to) in from.chunks_exact(size.max(1)).zip(to.chunks_exact_mut(longer.max(1))) {
        to[at..at + size].copy_from_slice(from);
    }
}
