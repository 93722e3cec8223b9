//! The first phase: everything that depends on a single sample.

use super::dual::Form;
use super::limit::{Limit, LimitKind};
use super::net::{LimitInput, LimitLayer, NodeId};
use super::refuse;
use super::run::{Known, Machine, Pairs, Side};
use super::series;
use crate::error::{KernelError, Result};
use crate::kernel::Real;
use crate::products::{all_finite, square};
use rayon::prelude::*;
use std::ops::Range;

/// The prepared samples of a block.
#[derive(Debug)]
pub(super) struct Prepared<T> {
    pub(super) samples: usize,
    /// Of an input node with one position `[samples, channels]`, with more `[channels, positions, samples]`.
    pub(super) inputs: Vec<Vec<T>>,
    /// The squared length of each sample, of input nodes with one position.
    pub(super) squares: Vec<Vec<T>>,
    /// Of each node that a pair needs, `[…, samples]`.
    pub(super) known: Vec<Option<Known<T>>>,
}

/// Whether an input node has one position, so that pairs are one matrix product.
pub(super) fn is_dense<T>(limit: &Limit<T>, node: NodeId) -> Option<&LimitInput> {
    match &limit.net.nodes()[node] {
        super::LimitNode { layer: LimitLayer::Input(input), space: [1, 1], .. } => Some(input),
        _ => None,
    }
}

impl<T: Real> Prepared<T> {
    pub(super) fn new(limit: &Limit<T>, inputs: &[&[T]], samples: usize) -> Result<Self> {
        let made = limit.features.apply(inputs, samples)?;
        let arrays: Vec<&[T]> =
            if limit.features.is_empty() { inputs.to_vec() } else { made.iter().map(|x| &x[..]).collect() };
        for node in limit.net.nodes() {
            let LimitLayer::Input(input) = &node.layer else { continue };
            check(input, node.space[0] * node.space[1], &arrays, samples)?;
        }
        let nodes = limit.net.nodes().len();
        let chunks: Vec<Range<usize>> =
            (0..samples).step_by(limit.lanes).map(|start| start..(start + limit.lanes).min(samples)).collect();
        let sides: Vec<Side<T>> =
            chunks.par_iter().map(|chunk| side(limit, &arrays, samples, chunk.clone())).collect::<Result<_>>()?;
        let mut prepared = Self {
            samples,
            inputs: vec![Vec::new(); nodes],
            squares: vec![Vec::new(); nodes],
            known: vec![None; nodes],
        };
        for node in 0..nodes {
            if let Some(input) = is_dense(limit, node) {
                let all = arrays[input.array].to_vec();
                prepared.squares[node] = all.chunks_exact(input.channels.max(1)).map(square).collect();
                prepared.inputs[node] = all;
            } else {
                prepared.inputs[node] = join(&sides, &chunks, samples, |side| &side.inputs[node]);
            }
            if limit.kept[node] {
                let of = |get: fn(&Known<T>) -> &[T]| {
                    join(&sides, &chunks, samples, |side| side.nodes[node].as_ref().map_or(&[][..], get))
                };
                prepared.known[node] = Some(Known {
                    variance: of(|k| &k.variance),
                    deviation: of(|k| &k.deviation),
                    series: of(|k| &k.series),
                });
            }
        }
        Ok(prepared)
    }
}

/// Checks that the array of an input exists, has the right length and is finite.
fn check<T: Real>(input: &LimitInput, positions: usize, arrays: &[&[T]], samples: usize) -> Result<()> {
    let size = input.channels * positions;
    let Some(array) = arrays.get(input.array) else {
        let reason = format!("the network has an input {}, {} were given", input.array, arrays.len());
        return Err(KernelError::Setting(reason));
    };
    if array.len() != size * samples || size == 0 {
        let reason = format!("{} numbers for {samples} samples of {size}", array.len());
        return Err(KernelError::Setting(format!("input {}: {reason}", input.array)));
    }
    match array.chunks_exact(size).position(|row| !all_finite(row)) {
        Some(sample) => Err(KernelError::NotFinite { place: format!("input {}", input.array), sample }),
        None => Ok(()),
    }
}

/// Chunks `[rows, lanes]` side by side: `[rows, samples]`; a chunk with fewer rows has zeros.
fn join<'a, T: Real>(
    sides: &'a [Side<T>],
    chunks: &[Range<usize>],
    samples: usize,
    of: impl Fn(&'a Side<T>) -> &'a [T],
) -> Vec<T> {
    let rows = sides.iter().zip(chunks).map(|(side, chunk)| of(side).len() / chunk.len()).max().unwrap_or(0);
    let mut joined = vec![T::zero(); rows * samples];
    for (side, chunk) in sides.iter().zip(chunks) {
        let pieces = of(side).chunks_exact(chunk.len()).zip(joined.chunks_exact_mut(samples));
        pieces.for_each(|(piece, row)| row[chunk.clone()].copy_from_slice(piece));
    }
    joined
}

/// All prepared data of some samples, as lanes.
fn side<T: Real>(limit: &Limit<T>, arrays: &[&[T]], samples: usize, chunk: Range<usize>) -> Result<Side<T>> {
    let nodes = limit.net.nodes();
    let lanes = chunk.len();
    let mut side = Side { nodes: vec![None; nodes.len()], inputs: vec![Vec::new(); nodes.len()] };
    let mut machine = Machine::default();
    for (id, node) in nodes.iter().enumerate() {
        if let LimitLayer::Input(input) = &node.layer
            && is_dense(limit, id).is_none()
        {
            let array = arrays[input.array];
            let size = array.len() / samples.max(1);
            for channel in 0..input.channels {
                for position in 0..node.space[0] * node.space[1] {
                    let [_, row, column] = input.strides;
                    let at =
                        channel * input.strides[0] + position / node.space[1] * row + position % node.space[1] * column;
                    side.inputs[id].extend(chunk.clone().map(|sample| array[sample * size + at]));
                }
            }
        }
        if limit.needed[id] {
            let variance = variance(limit, arrays, chunk.clone(), id, &side, &mut machine);
            let deviation: Vec<T> = variance.iter().map(|a| a.sqrt()).collect();
            if let Some(at) = variance.iter().position(|a| !a.is_finite()) {
                return Err(KernelError::NotFinite {
                    place: format!("the variance of {}", node.name),
                    sample: chunk.start + at % lanes,
                });
            }
            let series = match limit.series_of(id) {
                None => Vec::new(),
                Some((name, expression, odd)) => {
                    match series::expand((expression, odd), &deviation, limit.of == LimitKind::Ntk) {
                        Ok(series) => series,
                        Err(at) => {
                            let reason = format!(
                                "its series needs more than {} terms for sample {}, where its argument has a deviation of {:.3}",
                                series::TERMS,
                                chunk.start + at % lanes,
                                deviation[at]
                            );
                            return refuse(name, &reason);
                        }
                    }
                }
            };
            side.nodes[id] = Some(Known { variance, deviation, series });
        }
    }
    Ok(side)
}

/// The variances of a node, `[positions, lanes]`, from those of the nodes before it. The steps are those of a covariance, so
/// that a sample with itself gives the same bits.
fn variance<T: Real>(
    limit: &Limit<T>,
    arrays: &[&[T]],
    chunk: Range<usize>,
    id: NodeId,
    side: &Side<T>,
    machine: &mut Machine<T>,
) -> Vec<T> {
    let node = &limit.net.nodes()[id];
    let lanes = chunk.len();
    let of = |at: usize| side.nodes[node.inputs[at]].as_ref().map_or(&[][..], |known| &known.variance);
    let positions = node.space[0] * node.space[1];
    match &node.layer {
        LimitLayer::Input(input) => {
            let scale = T::narrow(1.0 / input.channels as f64);
            if positions == 1 {
                let rows = arrays[input.array][chunk.start * input.channels..chunk.end * input.channels]
                    .chunks_exact(input.channels);
                return rows.map(|row| square(row) * scale).collect();
            }
            let mut sum = vec![T::zero(); positions * lanes];
            for plane in side.inputs[id].chunks_exact(positions * lanes) {
                sum.iter_mut().zip(plane).for_each(|(sum, &x)| *sum += x * x);
            }
            sum.iter_mut().for_each(|sum| *sum *= scale);
            sum
        }
        LimitLayer::Dense(scales) => {
            let (weight, bias) = (T::narrow(scales.weight), T::narrow(scales.bias));
            of(0).iter().map(|&a| weight * a + bias).collect()
        }
        LimitLayer::Conv(scales, patch) => {
            let mut sums =
                super::run::patch_sums(of(0), patch, limit.net.nodes()[node.inputs[0]].space, node.space, lanes);
            let (weight, bias) = (T::narrow(scales.weight / patch.points() as f64), T::narrow(scales.bias));
            sums.iter_mut().for_each(|a| *a = weight * *a + bias);
            sums
        }
        LimitLayer::Activation(activation) => {
            let mut value = of(0).to_vec();
            if let Some(known) = &side.nodes[node.inputs[0]] {
                activation.apply(Form::Covariance, &mut value, None, known.moments(), known.moments());
            }
            value
        }
        LimitLayer::Sum(shares) => {
            let mut sum = vec![T::zero(); positions * lanes];
            for (at, &share) in shares.iter().enumerate() {
                sum.iter_mut().zip(of(at)).for_each(|(sum, &a)| *sum += T::narrow(share) * a);
            }
            sum
        }
        LimitLayer::LayerNorm { epsilon } => {
            let epsilon = T::narrow(*epsilon);
            of(0).iter().map(|&a| if a + epsilon > T::zero() { a / (a + epsilon) } else { T::zero() }).collect()
        }
        LimitLayer::Flatten => {
            let mut sum = vec![T::zero(); lanes];
            let input = of(0);
            input.chunks_exact(lanes).for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, &a)| *sum += a));
            let share = T::narrow(lanes as f64 / input.len() as f64);
            sum.iter_mut().for_each(|sum| *sum *= share);
            sum
        }
        LimitLayer::AveragePool { .. } | LimitLayer::GlobalAveragePool => {
            let Some(program) = &limit.pools[id] else { return Vec::new() };
            let nothing: Vec<Vec<T>> = (0..limit.net.nodes().len())
                .map(|node| if is_dense(limit, node).is_some() { vec![T::zero(); lanes] } else { Vec::new() })
                .collect();
            let pairs = Pairs { lanes, left: side, right: side, distances: &nothing, tangent: false };
            machine.run(&limit.net, program, &pairs).0.to_vec()
        }
    }
}
