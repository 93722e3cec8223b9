//! The forward pass.

use super::slots::{Life, assign};
use super::{NodeOperands, Weights};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::{Graph, Node, Origin, ValueId};
use crate::op::{Call, Scratch};
use std::sync::Arc;

/// Which values survive a forward pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of them: derivative passes need them.
    All,
    /// The outputs and these. The memory of the others is reused.
    Only(Vec<ValueId>),
}

/// The memory of forward passes over one graph.
#[derive(Debug)]
pub struct Workspace<T> {
    graph: Arc<Graph>,
    slot_of: Vec<Option<usize>>,
    slots: Vec<Vec<T>>,
    slot_sizes: Vec<usize>,
    /// The results that all samples share, by value.
    shared: Vec<Vec<T>>,
    pub(super) samples: usize,
    pub(super) scratch: Scratch<T>,
}

impl<T: Element> Workspace<T> {
    /// Plans the memory; it is allocated at the first pass.
    pub fn new(graph: Arc<Graph>, keep: &Keep) -> Self {
        let root = view_roots(&graph);
        let never = graph.nodes.len() + 1;
        let mut lives: Vec<Option<Life>> = vec![None; graph.values.len()];
        for (index, value) in graph.values.iter().enumerate() {
            let first = match value.origin {
                Origin::Input(_) => 0,
                Origin::Node(step) => step + 1,
                Origin::Parameter(_) | Origin::Constant(_) => continue,
            };
            if !value.meta.is_batched() {
                continue;
            }
            let size = value.meta.numel();
            let owner = root[index];
            let last = if matches!(keep, Keep::All) { never } else { first };
            let life = lives[owner].get_or_insert(Life { first, last, size });
            life.last = life.last.max(last);
        }
        let mut extend = |id: ValueId, until: usize| {
            if let Some(life) = &mut lives[root[id.0]] {
                life.last = life.last.max(until);
            }
        };
        for (step, node) in graph.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|&id| extend(id, step + 1));
        }
        graph.outputs.iter().for_each(|&(_, id)| extend(id, never));
        if let Keep::Only(ids) = keep {
            ids.iter().for_each(|&id| extend(id, never));
        }
        let (slot_of_root, slot_sizes) = assign(&lives);
        let slot_of = root.iter().map(|&owner| slot_of_root[owner]).collect();
        let slots = slot_sizes.iter().map(|_| Vec::new()).collect();
        let shared = vec![Vec::new(); graph.values.len()];
        Self { graph, slot_of, slots, slot_sizes, shared, samples: 0, scratch: Scratch::default() }
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The number of samples of the last pass.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Elements of memory per sample.
    pub fn elements_per_sample(&self) -> usize {
        self.slot_sizes.iter().sum()
    }

    /// The bytes that passes over this many samples need, known before anything is allocated: the values, and the
    /// largest scratch of a primitive.
    pub fn bytes(&self, samples: usize) -> usize {
        let shared = shared_elements(&self.graph);
        let elements = self.elements_per_sample().saturating_mul(samples).saturating_add(shared);
        elements.saturating_add(scratch_elements(&self.graph)).saturating_mul(size_of::<T>())
    }

    /// Bytes that are allocated.
    pub fn allocated(&self) -> usize {
        let elements: usize = self.slots.iter().chain(&self.shared).map(Vec::capacity).sum();
        elements * size_of::<T>() + self.scratch.allocated()
    }

    /// Runs the network on `samples` samples; each input is `[samples, …]`, row-major.
    pub fn forward(&mut self, weights: &Weights<T>, inputs: &[&[T]], samples: usize) -> Result<()> {
        self.begin(inputs, samples)?;
        self.advance(weights, 0..self.graph.nodes.len());
        Ok(())
    }

    /// Begins a pass that is run in parts, by [`advance`](Self::advance).
    pub(crate) fn begin(&mut self, inputs: &[&[T]], samples: usize) -> Result<()> {
        let graph = Arc::clone(&self.graph);
        check_inputs(&graph, inputs, samples)?;
        self.samples = samples;
        self.reserve(samples)?;
        for (&id, data) in graph.inputs.iter().zip(inputs) {
            if let Some(slot) = self.slot_of[id.0] {
                self.slots[slot][..data.len()].copy_from_slice(data);
            }
        }
        Ok(())
    }

    /// Runs the next nodes of a pass.
    pub(crate) fn advance(&mut self, weights: &Weights<T>, nodes: std::ops::Range<usize>) {
        let (graph, samples) = (Arc::clone(&self.graph), self.samples);
        for node in &graph.nodes[nodes] {
            let meta = &graph.value(node.output).meta;
            let slot = self.slot_of[node.output.0];
            if node.op.is_view() && slot.is_some() && self.slot_of[node.inputs[0].0] == slot {
                continue;
            }
            let results = if meta.is_batched() { samples } else { 1 };
            let mut y = std::mem::take(match slot {
                Some(slot) => &mut self.slots[slot],
                None => &mut self.shared[node.output.0],
            });
            let mut scratch = std::mem::take(&mut self.scratch);
            let operands = NodeOperands { graph: &graph, node, weights, workspace: self, with_result: false };
            let call = Call::new(&operands, results);
            T::kernel(node.op.as_ref()).apply(&call, &mut y[..results * meta.numel()], &mut scratch);
            self.scratch = scratch;
            match slot {
                Some(slot) => self.slots[slot] = y,
                None => self.shared[node.output.0] = y,
            }
        }
    }

    /// Allocates memory for this many samples, or returns an error that names the largest value.
    fn reserve(&mut self, samples: usize) -> Result<()> {
        let wanted = |size: usize| size.saturating_mul(samples);
        let slots = self.slots.iter().zip(&self.slot_sizes).filter(|(slot, size)| slot.len() < wanted(**size));
        let elements = slots.fold(0usize, |sum, (_, &size)| sum.saturating_add(wanted(size)));
        check_memory::<T>(&self.graph, elements, samples)?;
        for (slot, &size) in self.slots.iter_mut().zip(&self.slot_sizes) {
            let wanted = wanted(size);
            if slot.len() < wanted {
                slot.clear();
                slot.try_reserve_exact(wanted).map_err(|_| too_large::<T>(&self.graph, elements, samples))?;
                mercer_linalg::memory::advise_spare(slot);
                slot.resize(wanted, T::zero());
            }
        }
        for node in &self.graph.nodes {
            let meta = &self.graph.value(node.output).meta;
            let shared = &mut self.shared[node.output.0];
            if !meta.is_batched() && shared.len() < meta.numel() {
                let missing = || too_large::<T>(&self.graph, meta.numel(), samples);
                shared.try_reserve_exact(meta.numel()).map_err(|_| missing())?;
                shared.resize(meta.numel(), T::zero());
            }
        }
        Ok(())
    }

    /// A value of the last pass: `[samples, …]`, or once if it is shared. Empty if its memory was reused.
    pub fn get<'a>(&'a self, weights: &'a Weights<T>, id: ValueId) -> &'a [T] {
        let value = self.graph.value(id);
        if let Some(leaf) = weights.leaf(value.origin) {
            return leaf;
        }
        match self.slot_of[id.0] {
            Some(slot) => &self.slots[slot][..(self.samples * value.meta.numel()).min(self.slots[slot].len())],
            None => &self.shared[id.0],
        }
    }

    /// Checks that every number of a value of the last pass is finite. The error names the value and the sample.
    pub fn check_finite(&self, weights: &Weights<T>, id: ValueId) -> Result<()> {
        let value = self.graph.value(id);
        let data = self.get(weights, id);
        match data.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(at) => Err(NetError::NotFinite { place: value.name.clone(), sample: at / value.meta.numel().max(1) }),
        }
    }
}

/// Checks that there is one array of the right size per input.
pub(super) fn check_inputs<T>(graph: &Graph, inputs: &[&[T]], samples: usize) -> Result<()> {
    if inputs.len() != graph.inputs.len() {
        let reason = format!("the network has {} inputs, but {} were given", graph.inputs.len(), inputs.len());
        return Err(NetError::Setting(reason));
    }
    for (&id, data) in graph.inputs.iter().zip(inputs) {
        let value = graph.value(id);
        if data.len() != samples * value.meta.numel() {
            let reason = format!("{} numbers for {samples} samples of shape {:?}", data.len(), value.meta.shape);
            return Err(NetError::Input { input: value.name.clone(), reason });
        }
    }
    Ok(())
}

/// The largest scratch of a primitive of the graph, in elements.
pub(super) fn scratch_elements(graph: &Graph) -> usize {
    let each = graph.nodes.iter().map(|node| node.op.scratch(&graph.metas(node), &graph.value(node.output).meta));
    each.max().unwrap_or(0)
}

/// Elements of the results shared by all samples.
fn shared_elements(graph: &Graph) -> usize {
    let results = graph.nodes.iter().map(|node| &graph.value(node.output).meta);
    results.filter(|meta| !meta.is_batched()).fold(0, |sum, meta| sum.saturating_add(meta.numel()))
}

/// Checks that there is memory for a pass that takes this many elements. Small passes are not checked.
pub(crate) fn check_memory<T>(graph: &Graph, elements: usize, samples: usize) -> Result<()> {
    const SMALL: usize = 64 << 20;
    let bytes = elements.saturating_mul(size_of::<T>());
    if bytes > SMALL && mercer_run::available().is_some_and(|available| bytes > available) {
        return Err(too_large::<T>(graph, elements, samples));
    }
    Ok(())
}

/// The error of a pass whose values do not fit into memory.
pub(crate) fn too_large<T>(graph: &Graph, elements: usize, samples: usize) -> NetError {
    let bytes = elements.saturating_mul(size_of::<T>());
    let largest = graph.nodes.iter().max_by_key(|node| graph.value(node.output).meta.numel());
    let node = largest.map_or("of no name".to_owned(), Node::label);
    let shape = largest.map_or(&[][..], |node| &graph.value(node.output).meta.shape);
    let reason = format!(
        "not enough memory: {samples} samples need {bytes} bytes; this node's result of shape {shape:?} is the \
         largest; run fewer samples at once"
    );
    NetError::Shape { node, reason }
}

/// The error of a pass for which there is not enough memory.
pub(crate) fn out_of_memory<T>(elements: usize) -> NetError {
    let bytes = elements.saturating_mul(size_of::<T>());
    NetError::Setting(format!("not enough memory for {bytes} bytes; run fewer samples at once"))
}

/// For every value, the value that owns its memory: itself, unless it is a view of a batched value.
fn view_roots(graph: &Graph) -> Vec<usize> {
    let mut root: Vec<usize> = (0..graph.values.len()).collect();
    for node in &graph.nodes {
        let source = node.inputs[0];
        if node.op.is_view() && graph.value(source).meta.is_batched() {
            root[node.output.0] = root[source.0];
        }
    }
    root
}
