//! The memory layout of the gradients of a block of samples.

use super::forms::{FormChoice, NtkForm, Price, explicit, factored, shared_directions, weight_of_bias};
use super::gradients::Gradients;
use super::layers::{layer_names, layers};
use crate::error::Result;
use crate::kernel::Real;
use mercer_linalg::memory::zeros;
use mercer_net::op::OuterShape;
use mercer_net::run::{Factor, Factors};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The storage of each parameter's gradients.
#[derive(Debug)]
pub(crate) struct Plan {
    /// All pairs of seeds, or the sum over equal seeds.
    pub(crate) full: bool,
    pub(crate) seeds: usize,
    /// Explicit numbers per sample and seed.
    pub(crate) width: usize,
    /// The explicit parameters and their offsets.
    pub(crate) explicit: Vec<(usize, usize)>,
    pub(crate) outers: Vec<Outer>,
    pub(crate) parts: Vec<Part>,
    pub(crate) forms: Vec<NtkForm>,
}

/// A parameter stored as factors.
#[derive(Debug)]
pub(crate) struct Outer {
    pub(crate) parameter: usize,
    pub(crate) shape: OuterShape,
    /// Whether the layer's bias is a column of ones appended to the left factor.
    pub(crate) bias: bool,
    /// The directions `[seeds, right]` for projection, if the deltas of all seeds are a shared matrix times one vector
    /// per sample. One delta then suffices for all seeds.
    pub(crate) directions: Option<Vec<f64>>,
}

/// The summands of one of the matrices.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// Of the explicit numbers.
    pub(crate) columns: Range<usize>,
    /// Of the factored parameters.
    pub(crate) outers: Range<usize>,
}

/// The prepared samples of a block.
#[derive(Debug)]
pub(crate) struct Prepared<T: Real> {
    /// `[samples, seeds, width]`.
    pub(crate) explicit: Vec<T>,
    /// Per factored parameter `[samples, positions, left]`, and `[samples, seeds, positions, right]` for a full kernel or
    /// `[samples, positions, seeds, right]` for a summed one.
    pub(crate) outers: Vec<(Vec<T>, Vec<T>)>,
    spare: Arc<Spare<T>>,
}

impl<T: Real> Drop for Prepared<T> {
    fn drop(&mut self) {
        let outers = self.outers.drain(..).flat_map(|(left, right)| [left, right]);
        self.spare.keep(outers.chain([std::mem::take(&mut self.explicit)]));
    }
}

/// The memory of blocks that are no longer needed. The system would clear fresh memory first, which takes up to a fifth
/// of the preparation time.
#[derive(Debug, Default)]
pub(crate) struct Spare<T>(Mutex<Vec<Vec<T>>>);

impl<T: Real> Spare<T> {
    fn keep(&self, buffers: impl Iterator<Item = Vec<T>>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(buffers.filter(|buffer| buffer.capacity() > 0));
    }

    /// A buffer of this length with arbitrary contents.
    fn take(&self, length: usize) -> Vec<T> {
        if length == 0 {
            return Vec::new();
        }
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = (0..spare.len()).filter(|&at| spare[at].capacity() >= length);
        // The last block of a data set may be small; it must not hold the memory of a large block for long.
        let Some(best) = fitting.min_by_key(|&at| spare[at].capacity()) else { return zeros(length) };
        let mut buffer = spare.swap_remove(best);
        buffer.resize(length, T::zero());
        buffer
    }
}

/// The part of a block that a shard fills.
pub(crate) struct Place<'a, T> {
    explicit: &'a mut [T],
    outers: Vec<(&'a mut [T], &'a mut [T])>,
    samples: usize,
}

impl Outer {
    /// The number of seeds whose deltas are stored.
    pub(crate) fn seeds(&self, seeds: usize) -> usize {
        if self.directions.is_some() { 1 } else { seeds }
    }

    fn left(&self) -> usize {
        self.shape.positions * if self.shape.one_hot { 1 } else { self.shape.left }
    }
}

impl Plan {
    pub(crate) fn new<T: Real>(gradients: &Gradients<T>, full: bool, by_layer: bool, forms: Vec<NtkForm>) -> Self {
        let shapes = gradients.outer_shapes();
        // The weights that absorb a bias.
        let absorbed = (0..forms.len()).filter(|&at| forms[at] == NtkForm::Absorbed);
        let weights: HashSet<usize> = absorbed.filter_map(|bias| weight_of_bias(gradients, bias)).collect();
        let groups = if by_layer {
            layers(gradients.graph(), gradients.chosen())
        } else {
            let all = (0..forms.len()).filter(|&at| gradients.chosen()[at]).collect();
            vec![("kernel".to_owned(), all)]
        };
        let mut plan = Self {
            full,
            seeds: gradients.n_seeds(),
            width: 0,
            explicit: Vec::new(),
            outers: Vec::new(),
            parts: Vec::new(),
            forms,
        };
        for (name, members) in groups {
            let (first_column, first_outer) = (plan.width, plan.outers.len());
            for &at in &members {
                match (plan.forms[at], shapes[at]) {
                    (NtkForm::Absorbed, _) => {}
                    (NtkForm::Factored, Some(shape)) => {
                        let bias = weights.contains(&at);
                        let directions = if full { None } else { shared_directions(gradients, at, &shape) };
                        plan.outers.push(Outer { parameter: at, shape, bias, directions });
                    }
                    _ => {
                        plan.explicit.push((at, plan.width));
                        plan.width += gradients.numel(at);
                    }
                }
            }
            let (columns, outers) = (first_column..plan.width, first_outer..plan.outers.len());
            plan.parts.push(Part { name, columns, outers });
        }
        plan
    }

    /// For each parameter, whether the reverse pass computes factors.
    pub(crate) fn outer_flags(&self) -> Vec<bool> {
        let mut flags = vec![false; self.forms.len()];
        self.outers.iter().for_each(|outer| flags[outer.parameter] = true);
        flags
    }

    /// Pairs of seeds per pair of samples.
    fn pairs(&self) -> usize {
        if self.full { self.seeds * self.seeds } else { self.seeds }
    }

    /// The cost of a factored parameter.
    fn price(&self, outer: &Outer) -> Price {
        let seeds = outer.seeds(self.seeds);
        factored(&outer.shape, seeds, if self.full { seeds * seeds } else { seeds })
    }

    /// Numbers per prepared sample.
    pub(crate) fn elements(&self) -> usize {
        let outers: usize = self.outers.iter().map(|outer| self.price(outer).elements).sum();
        self.seeds * self.width + outers
    }

    /// Operations per pair of samples.
    pub(crate) fn pair_flops(&self) -> f64 {
        let outers: f64 = self.outers.iter().map(|outer| self.price(outer).flops).sum();
        explicit(self.width, self.seeds, self.pairs()).flops + outers
    }

    /// The form chosen for each selected parameter.
    pub(crate) fn choices<T: Real>(&self, gradients: &Gradients<T>, chosen: &[bool]) -> Vec<FormChoice> {
        let graph = gradients.graph();
        let (layers, shapes) = (layer_names(graph), gradients.outer_shapes());
        let outers: HashMap<usize, &Outer> = self.outers.iter().rev().map(|outer| (outer.parameter, outer)).collect();
        (0..self.forms.len())
            .filter(|&at| chosen[at])
            .map(|at| {
                let outer = outers.get(&at).copied();
                let (price, form) = match (outer, self.forms[at]) {
                    (Some(outer), _) => (Some(self.price(outer)), NtkForm::Factored),
                    (None, NtkForm::Absorbed) => (None, NtkForm::Absorbed),
                    _ => (Some(explicit(gradients.numel(at), self.seeds, self.pairs())), NtkForm::Explicit),
                };
                FormChoice {
                    parameter: graph.value(graph.parameters()[at]).name.clone(),
                    layer: layers[at].clone(),
                    form,
                    positions: shapes[at].map_or(1, |shape| shape.positions),
                    bytes: price.map_or(0, |price| price.elements * size_of::<T>()),
                    pair_flops: price.map_or(0.0, |price| price.flops),
                }
            })
            .collect()
    }

    /// The gradients of some samples.
    pub(crate) fn prepare<T: Real>(
        &self,
        gradients: &Gradients<T>,
        spare: &Arc<Spare<T>>,
        inputs: &[&[T]],
        samples: usize,
    ) -> Result<Prepared<T>> {
        let mut prepared = Prepared {
            spare: Arc::clone(spare),
            explicit: spare.take(samples * self.seeds * self.width),
            outers: self
                .outers
                .iter()
                .map(|outer| {
                    let right = outer.seeds(self.seeds) * outer.shape.positions * outer.shape.right;
                    (spare.take(samples * outer.left()), spare.take(samples * right))
                })
                .collect(),
        };
        let shards: Vec<usize> = gradients.shards(samples).map(|rows| rows.len()).collect();
        let explicit = cut(&mut prepared.explicit, samples, &shards);
        let mut places: Vec<Place<'_, T>> = explicit
            .into_iter()
            .zip(&shards)
            .map(|(explicit, &samples)| Place { explicit, outers: Vec::new(), samples })
            .collect();
        for (left, right) in &mut prepared.outers {
            let pieces = cut(left, samples, &shards).into_iter().zip(cut(right, samples, &shards));
            places.iter_mut().zip(pieces).for_each(|(place, piece)| place.outers.push(piece));
        }
        gradients.sweep(inputs, samples, &self.outer_flags(), places, |place, factors| {
            self.fill(gradients, place, factors)
        })?;
        Ok(prepared)
    }

    fn fill<T: Real>(&self, gradients: &Gradients<T>, place: Place<'_, T>, factors: &Factors<T>) -> Result<()> {
        for &(parameter, offset) in &self.explicit {
            let size = gradients.numel(parameter);
            let rows = place.explicit.chunks_exact_mut(self.width.max(1));
            let Some(Factor::Explicit(gradient)) = &factors.parameters[parameter] else {
                rows.for_each(|row| row[offset..offset + size].fill(T::zero()));
                continue;
            };
            gradients.check_gradient(parameter, gradient, place.samples)?;
            let rows = rows.zip(gradient.chunks_exact(size.max(1)));
            rows.for_each(|(row, gradient)| row[offset..offset + size].copy_from_slice(gradient));
        }
        for (outer, (left_place, right_place)) in self.outers.iter().zip(place.outers) {
            let Some(Factor::Outer { left, right, .. }) = &factors.parameters[outer.parameter] else {
                left_place.fill(T::zero());
                right_place.fill(T::zero());
                continue;
            };
            gradients.check_gradient(outer.parameter, left, place.samples)?;
            gradients.check_gradient(outer.parameter, right, place.samples)?;
            left_place.copy_from_slice(left);
            if let Some(directions) = &outer.directions {
                project(right, directions, outer.shape.right, right_place);
            } else if self.full || self.seeds == 1 || outer.shape.positions == 1 {
                right_place.copy_from_slice(right);
            } else {
                self.seeds_inside(&outer.shape, right, right_place);
            }
        }
        Ok(())
    }

    /// `[samples, seeds, positions, right]` → `[samples, positions, seeds, right]`, so that the sum over seeds is part
    /// of one product.
    fn seeds_inside<T: Copy>(&self, shape: &OuterShape, from: &[T], to: &mut [T]) {
        let (s, p, r) = (self.seeds, shape.positions, shape.right);
        for (from, to) in from.chunks_exact(s * p * r).zip(to.chunks_exact_mut(s * p * r)) {
            for seed in 0..s {
                for position in 0..p {
                    let row = &from[(seed * p + position) * r..][..r];
                    to[(position * s + seed) * r..][..r].copy_from_slice(row);
                }
            }
        }
    }
}

/// Cuts an array of equal samples into shards of the given numbers of samples.
fn cut<'a, T>(mut rest: &'a mut [T], samples: usize, shards: &[usize]) -> Vec<&'a mut [T]> {
    let size = rest.len() / samples.max(1);
    let mut pieces = Vec::with_capacity(shards.len());
    for count in shards {
        let (piece, after) = rest.split_at_mut(count * size);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The deltas of every sample, `[seeds, right]`, projected onto unit directions per right element.
fn project<T: Real>(deltas: &[T], directions: &[f64], right: usize, to: &mut [T]) {
    let directions: Vec<T> = directions.iter().map(|&x| T::narrow(x)).collect();
    let per_sample = directions.len();
    for (deltas, to) in deltas.chunks_exact(per_sample).zip(to.chunks_exact_mut(right)) {
        to.fill(T::zero());
        for (delta, direction) in deltas.chunks_exact(right).zip(directions.chunks_exact(right)) {
            to.iter_mut().zip(delta.iter().zip(direction)).for_each(|(to, (&x, &v))| *to += x * v);
        }
    }
}
