//! The order in which the planes of a pair of samples are computed.
//!
//! A plane is a node's covariance at one class of offsets (see [`patch`](super::patch)). Flattening needs only class
//! zero of its input, pooling needs several, and every class goes through convolutions, including strided ones, on its
//! own. The planes that the output needs are found by walking back from it. Each is computed once and used, and its
//! memory is reused: with global pooling, one class after the other runs through all layers in cache.

use super::dual::Form;
use super::net::{LimitLayer, LimitNet, NodeId};
use super::patch::{Patch, Space, Tap};
use std::collections::HashMap;

/// The offset of a plane, modulo the numbers of rows and columns.
pub(super) type Class = [usize; 2];

/// One piece of work. `from` and `to` are slots; they may be the same.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Products or distances of the inputs.
    Input { node: NodeId, class: Class, form: Form, to: usize },
    /// Zeros.
    Clear { to: usize },
    /// Adds sums over a patch.
    Patch { from: usize, to: usize, rows: Vec<Tap>, columns: Vec<Tap>, from_space: Space, to_space: Space },
    /// Adds the sum over all positions.
    Total { from: usize, to: usize },
    /// A random layer, after the sum over its patch.
    Linear { node: NodeId, from: usize, to: usize, form: Form },
    /// An activation.
    Activation { node: NodeId, class: Class, from: usize, to: usize, form: Form },
    /// A normalisation.
    Norm { node: NodeId, class: Class, from: usize, to: usize, form: Form },
    /// Adds a multiple of a value in covariance form.
    Add { from: usize, to: usize, factor: f64 },
    /// Multiplies every position by its factor; a single factor applies to all.
    Scale { to: usize, factors: Vec<f64> },
    /// Converts distances to covariances.
    Covariance { node: NodeId, from: usize, to: usize },
}

/// The steps that compute the plane of class zero of one node.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    /// Positions of each slot.
    pub(super) slots: Vec<usize>,
    /// The slot of the result, in covariance form.
    pub(super) result: usize,
    /// The maximum number of positions of a plane, or of an intermediate one between rows and columns.
    pub(super) largest: usize,
    /// Pairs of positions per pair of samples that go through an activation.
    pub(super) activations: usize,
}

/// A plane under construction.
struct Frame {
    node: NodeId,
    class: Class,
    sources: Vec<Source>,
    next: usize,
    /// Slots of the sources so far.
    have: Vec<(usize, Form)>,
    to: Option<usize>,
}

/// A plane that another one needs, and the sums it goes through.
struct Source {
    node: NodeId,
    class: Class,
    taps: Option<(Vec<Tap>, Vec<Tap>)>,
}

struct Compiler<'a> {
    net: &'a LimitNet,
    steps: Vec<Step>,
    sizes: Vec<usize>,
    made: HashMap<(NodeId, Class), (usize, Form)>,
}

impl Program {
    pub(super) fn new(net: &LimitNet, target: NodeId) -> Self {
        let mut compiler = Compiler { net, steps: Vec::new(), sizes: Vec::new(), made: HashMap::new() };
        let (slot, form) = compiler.demand(target);
        let result = compiler.covariance(target, slot, form);
        let Compiler { mut steps, sizes, .. } = compiler;
        let largest = steps.iter().map(|step| step.half_made()).chain(sizes.iter().copied()).max().unwrap_or(1);
        let positions = |step: &Step| if let Step::Activation { to, .. } = step { sizes[*to] } else { 0 };
        let activations = steps.iter().map(positions).sum();
        let (slots, result) = reuse(&mut steps, &sizes, result);
        Self { steps, slots, result, largest, activations }
    }

    /// The nodes whose variances the steps read.
    pub(super) fn reads(&self, net: &LimitNet) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Activation { node, .. } | Step::Norm { node, .. } => Some(net.nodes()[*node].inputs[0]),
                Step::Linear { node, form: Form::Distance, .. } | Step::Covariance { node, .. } => Some(*node),
                _ => None,
            })
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

impl Step {
    /// The slot it writes, those it reads, and whether it may write over the one it reads first.
    fn slots(&mut self) -> (&mut usize, Option<&mut usize>, bool) {
        match self {
            Self::Input { to, .. } | Self::Clear { to } | Self::Scale { to, .. } => (to, None, false),
            Self::Patch { from, to, .. } | Self::Total { from, to } | Self::Add { from, to, .. } => {
                (to, Some(from), false)
            }
            Self::Linear { from, to, .. }
            | Self::Activation { from, to, .. }
            | Self::Norm { from, to, .. }
            | Self::Covariance { from, to, .. } => (to, Some(from), true),
        }
    }

    /// Additions of a step that sums over patches or positions, per pair of samples.
    pub(super) fn additions(&self) -> usize {
        let count = |taps: &[Tap]| taps.iter().map(|tap| tap.length).sum::<usize>();
        match self {
            Self::Patch { rows, columns, from_space, to_space, .. } => {
                count(columns) * from_space[0] + count(rows) * to_space[1]
            }
            _ => 0,
        }
    }

    fn half_made(&self) -> usize {
        match self {
            Self::Patch { from_space, to_space, .. } => from_space[0] * to_space[1],
            _ => 0,
        }
    }
}

impl Compiler<'_> {
    fn slot(&mut self, space: Space) -> usize {
        self.sizes.push(space[0] * space[1]);
        self.sizes.len() - 1
    }

    /// Computes the plane of class zero of a node and its dependencies; without recursion, since networks may be deep.
    fn demand(&mut self, target: NodeId) -> (usize, Form) {
        let mut stack = vec![self.begin(target, [0, 0])];
        while let Some(mut frame) = stack.pop() {
            match frame.sources.get(frame.next) {
                None => {
                    let made = self.finish(&frame);
                    self.made.insert((frame.node, frame.class), made);
                }
                Some(source) => match self.made.get(&(source.node, source.class)) {
                    Some(&(slot, form)) => {
                        self.arrive(&mut frame, slot, form);
                        frame.next += 1;
                        stack.push(frame);
                    }
                    None => {
                        let inner = self.begin(source.node, source.class);
                        stack.extend([frame, inner]);
                    }
                },
            }
        }
        self.made[&(target, [0, 0])]
    }

    fn begin(&self, node: NodeId, class: Class) -> Frame {
        let own = &self.net.nodes()[node];
        let plain = |input: &NodeId, class: Class| Source { node: *input, class, taps: None };
        let sources = match &own.layer {
            LimitLayer::Input(_) => Vec::new(),
            LimitLayer::Conv(_, patch) => self.patches(node, class, patch, false),
            LimitLayer::AveragePool { patch, .. } => self.patches(node, class, patch, true),
            LimitLayer::GlobalAveragePool => {
                let [rows, columns] = self.net.nodes()[own.inputs[0]].space;
                let classes = (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column]));
                classes.map(|class| plain(&own.inputs[0], class)).collect()
            }
            LimitLayer::Flatten => vec![plain(&own.inputs[0], [0, 0])],
            LimitLayer::Dense(_) | LimitLayer::Activation(_) | LimitLayer::LayerNorm { .. } | LimitLayer::Sum(_) => {
                own.inputs.iter().map(|input| plain(input, class)).collect()
            }
        };
        Frame { node, class, sources, next: 0, have: Vec::new(), to: None }
    }

    fn patches(&self, node: NodeId, class: Class, patch: &Patch, pool: bool) -> Vec<Source> {
        let own = &self.net.nodes()[node];
        let (input, output) = (self.net.nodes()[own.inputs[0]].space, own.space);
        let [rows, columns] = [0, 1].map(|axis| patch.maps(axis, input[axis], output[axis], class[axis], pool));
        let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
        pairs
            .map(|(row, column)| Source {
                node: own.inputs[0],
                class: [row.class, column.class],
                taps: Some((row.taps.clone(), column.taps.clone())),
            })
            .collect()
    }

    /// The slot of a frame's result, cleared on first use.
    fn cleared(&mut self, frame: &mut Frame) -> usize {
        if let Some(to) = frame.to {
            return to;
        }
        let to = self.slot(self.net.nodes()[frame.node].space);
        self.steps.push(Step::Clear { to });
        frame.to = Some(to);
        to
    }

    /// The operation on a source once it is computed.
    fn arrive(&mut self, frame: &mut Frame, slot: usize, form: Form) {
        let source = &frame.sources[frame.next];
        let (node, taps) = (source.node, source.taps.clone());
        let own = &self.net.nodes()[frame.node];
        let from_space = self.net.nodes()[node].space;
        match &own.layer {
            LimitLayer::AveragePool { .. } | LimitLayer::GlobalAveragePool => {
                let from = self.covariance(node, slot, form);
                let to = self.cleared(frame);
                self.steps.push(match taps {
                    Some((rows, columns)) => Step::Patch { from, to, rows, columns, from_space, to_space: own.space },
                    None => Step::Total { from, to },
                });
                frame.have.push((to, Form::Covariance));
            }
            LimitLayer::Conv(..) => {
                // Padding changes a variance but not a covariance at an offset, so distances cannot be used there.
                let (from, form) = match frame.class {
                    [0, 0] => (slot, form),
                    _ => (self.covariance(node, slot, form), Form::Covariance),
                };
                let to = self.cleared(frame);
                if let Some((rows, columns)) = taps {
                    self.steps.push(Step::Patch { from, to, rows, columns, from_space, to_space: own.space });
                }
                frame.have.push((from, form));
            }
            LimitLayer::Flatten => {
                let to = self.cleared(frame);
                self.steps.push(Step::Total { from: slot, to });
                frame.have.push((to, form));
            }
            _ => frame.have.push((slot, form)),
        }
    }

    fn finish(&mut self, frame: &Frame) -> (usize, Form) {
        let (node, class) = (frame.node, frame.class);
        let own = &self.net.nodes()[node];
        let (from, form) = frame.have.last().copied().unwrap_or((0, Form::Covariance));
        let input_space = own.inputs.first().map_or([1, 1], |&input| self.net.nodes()[input].space);
        match &own.layer {
            LimitLayer::Input(_) => {
                let to = self.slot(own.space);
                // Equal positions of nearly equal samples are the only place where covariances cancel.
                let form = if class == [0, 0] { Form::Distance } else { Form::Covariance };
                self.steps.push(Step::Input { node, class, form, to });
                (to, form)
            }
            LimitLayer::Dense(_) => {
                let to = self.slot(own.space);
                self.steps.push(Step::Linear { node, from, to, form });
                (to, form)
            }
            LimitLayer::Conv(..) => {
                // A class without any pair of positions inside is zero.
                let summed = frame.to.unwrap_or_else(|| {
                    let to = self.slot(own.space);
                    self.steps.push(Step::Clear { to });
                    to
                });
                let to = self.slot(own.space);
                self.steps.push(Step::Linear { node, from: summed, to, form });
                (to, form)
            }
            LimitLayer::Activation(activation) => {
                let to = self.slot(own.space);
                self.steps.push(Step::Activation { node, class, from, to, form });
                (to, activation.form(form))
            }
            LimitLayer::LayerNorm { .. } => {
                let to = self.slot(own.space);
                self.steps.push(Step::Norm { node, class, from, to, form });
                (to, form)
            }
            LimitLayer::Sum(shares) => {
                let to = self.slot(own.space);
                self.steps.push(Step::Clear { to });
                let all = frame.have.iter().all(|&(_, form)| form == Form::Distance);
                for ((&input, &(slot, form)), &factor) in own.inputs.iter().zip(&frame.have).zip(shares) {
                    let from = if all { slot } else { self.covariance(input, slot, form) };
                    self.steps.push(Step::Add { from, to, factor });
                }
                (to, if all { Form::Distance } else { Form::Covariance })
            }
            LimitLayer::Flatten => {
                let factors = vec![1.0 / (input_space[0] * input_space[1]) as f64];
                self.steps.push(Step::Scale { to: from, factors });
                (from, form)
            }
            LimitLayer::GlobalAveragePool => {
                let factors = vec![((input_space[0] * input_space[1]) as f64).powi(-2)];
                self.steps.push(Step::Scale { to: from, factors });
                (from, Form::Covariance)
            }
            LimitLayer::AveragePool { patch, count_padding } => {
                let factors = pool_factors(patch, *count_padding, input_space, own.space, class);
                let to = frame.to.unwrap_or_else(|| {
                    let to = self.slot(own.space);
                    self.steps.push(Step::Clear { to });
                    to
                });
                self.steps.push(Step::Scale { to, factors });
                (to, Form::Covariance)
            }
        }
    }

    fn covariance(&mut self, node: NodeId, slot: usize, form: Form) -> usize {
        if form == Form::Covariance {
            return slot;
        }
        let to = self.slot(self.net.nodes()[node].space);
        self.steps.push(Step::Covariance { node, from: slot, to });
        to
    }
}

/// `1 / (points of the patch at p · points of the patch at q)`.
fn pool_factors(patch: &Patch, count_padding: bool, input: Space, output: Space, class: Class) -> Vec<f64> {
    let counts = [0, 1].map(|axis| patch.counts(axis, input[axis], output[axis], count_padding));
    if counts.iter().zip(patch.size).all(|(counts, size)| counts.iter().all(|&count| count == size)) {
        return vec![(patch.points() as f64).powi(-2)];
    }
    let along = |axis: usize, at: usize| {
        let other = (at + class[axis]) % output[axis];
        1.0 / (counts[axis][at] * counts[axis][other]) as f64
    };
    (0..output[0]).flat_map(|row| (0..output[1]).map(move |column| along(0, row) * along(1, column))).collect()
}

/// Gives slots with disjoint lifetimes the same memory.
fn reuse(steps: &mut [Step], sizes: &[usize], result: usize) -> (Vec<usize>, usize) {
    let mut last = vec![0; sizes.len()];
    for (at, step) in steps.iter_mut().enumerate() {
        let (to, from, _) = step.slots();
        last[*to] = at;
        if let Some(from) = from {
            last[*from] = at;
        }
    }
    last[result] = usize::MAX;
    let mut places: Vec<Option<usize>> = vec![None; sizes.len()];
    let (mut slots, mut free): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter_mut().enumerate() {
        let (to, from, in_place) = step.slots();
        let (target, source) = (*to, from.as_ref().map(|from| **from));
        if places[target].is_none() {
            let inherited = source.filter(|&source| in_place && last[source] == at && sizes[source] == sizes[target]);
            let place = inherited.and_then(|source| places[source]).unwrap_or_else(|| {
                match free.iter().position(|&slot| slots[slot] == sizes[target]) {
                    Some(found) => free.swap_remove(found),
                    None => {
                        slots.push(sizes[target]);
                        slots.len() - 1
                    }
                }
            });
            places[target] = Some(place);
        }
        let place = places[target].unwrap_or_default();
        *to = place;
        if let (Some(from), Some(source)) = (from, source) {
            let source_place = places[source].unwrap_or_default();
            *from = source_place;
            if last[source] == at && source_place != place {
                free.push(source_place);
            }
        }
        if last[target] == at {
            free.push(place);
        }
    }
    (slots, places[result].unwrap_or_default())
}
