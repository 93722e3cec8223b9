//! Running a network on many samples, in shards of a fixed size, in parallel.

use super::Network;
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::{Batch, Graph, Position, ValueId};
use crate::op::{Conv, Gather, MatMul};
use crate::run::{Keep, Weights, Workspace, check_memory, too_large};
use rayon::prelude::*;
use std::sync::Arc;

/// How samples are split into shards. The split depends only on the network, so results do not depend on threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shards {
    /// Samples per shard.
    pub grain: usize,
}

impl Shards {
    /// Dense layers multiply all rows of a shard at once and profit from many. In convolutions and sequences every
    /// sample already has many rows, and a shard should stay in the second-level cache.
    pub fn for_graph(graph: &Graph) -> Self {
        let (mut rows, mut total) = (0.0, 0.0);
        for node in graph.nodes() {
            let any = node.op.as_any();
            let output = &graph.value(node.output).meta;
            let inputs = graph.metas(node);
            let per_sample = if any.is::<Conv>() {
                output.numel() / output.shape[1].max(1)
            } else if any.is::<MatMul>() {
                output.numel() / output.shape[output.rank() - 1].max(1)
            } else {
                continue;
            };
            let flops = node.op.flops(&inputs, output) as f64;
            rows += flops * (per_sample as f64).ln();
            total += flops;
        }
        // The typical number of rows per sample in a product, weighted by its work.
        let typical = if total > 0.0 { (rows / total).exp() } else { 1.0 };
        let wanted = (128.0 / typical).ceil().clamp(1.0, 128.0);
        let largest =
            graph.values().iter().filter(|value| value.meta.is_batched()).map(|value| value.meta.numel()).max();
        let fitting = (CACHED_ELEMENTS / largest.unwrap_or(1).max(1)).clamp(4, 32);
        Self { grain: (wanted as usize).max(fitting).next_power_of_two() }
    }
}

/// The most elements that the largest value of a shard should have (half a megabyte of `f32`).
const CACHED_ELEMENTS: usize = 1 << 17;

/// Outputs of a network for many samples.
#[derive(Clone, Debug)]
pub struct Prediction<T> {
    /// `[samples, …]`, row-major.
    pub values: Vec<T>,
    /// The shape of one sample's output.
    pub shape: Vec<usize>,
}

impl Network {
    /// Runs the network on `samples` samples and returns the value `at` (an output by default).
    ///
    /// Each input is `[samples, …sample shape]`, row-major. `shard` is the number of samples that run together; the
    /// default suits the network. A product of one row is summed in a different order than a product of many, so
    /// another shard size changes the last bits. Callers that split the data into blocks to save memory should use
    /// multiples of the default, as `mercer predict` does.
    pub fn predict<T: Element>(
        &self,
        inputs: &[(&[T], &[usize])],
        samples: usize,
        at: Option<&str>,
        shard: Option<usize>,
    ) -> Result<Prediction<T>> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|(_, shape)| shape.to_vec()).collect();
        let graph = self.graph(&shapes)?;
        let weights = self.weights::<T>(&graph);
        let id = match at {
            None => graph.outputs()[0].1,
            Some(name) => find(&graph, name)?,
        };
        let data: Vec<&[T]> = inputs.iter().map(|(data, _)| *data).collect();
        check_inputs(&graph, &data, samples)?;
        let values = run(&graph, &weights, &data, samples, id, shard.unwrap_or(Shards::for_graph(&graph).grain))?;
        Ok(Prediction { values, shape: sample_shape(&graph, id) })
    }
}

/// The index of the largest number, the first of equal ones: the predicted class of a row of outputs.
///
/// ```
/// assert_eq!(mercer_net::network::largest(&[0.1, 0.7, 0.7]), 1);
/// ```
pub fn largest<T: PartialOrd>(row: &[T]) -> usize {
    (1..row.len()).fold(0, |best, index| if row[index] > row[best] { index } else { best })
}

/// The predicted class of a row of logits: the [`largest`]; class 1 where a single logit is above 0.
///
/// ```
/// use mercer_net::network::class_of_logits;
///
/// assert_eq!([class_of_logits(&[0.1, 0.7, 0.7]), class_of_logits(&[0.1]), class_of_logits(&[0.0])], [1, 1, 0]);
/// ```
pub fn class_of_logits<T: Element>(row: &[T]) -> usize {
    match row {
        [single] => usize::from(*single > T::zero()),
        row => largest(row),
    }
}

/// A value by name, or an error with similar names.
pub fn find(graph: &Graph, name: &str) -> Result<ValueId> {
    let by_output = graph.outputs().iter().find(|(own, _)| own == name).map(|(_, id)| *id);
    by_output.or_else(|| graph.find(name)).ok_or_else(|| {
        let all: Vec<&str> = graph.values().iter().map(|value| value.name.as_str()).filter(|n| !n.is_empty()).collect();
        NetError::Unknown { what: "node", name: name.to_owned(), near: mercer_run::names::near(name, &all) }
    })
}

/// The shape of a value for one sample, without the file's batch axis where that is a separate axis.
pub(crate) fn sample_shape(graph: &Graph, id: ValueId) -> Vec<usize> {
    let meta = &graph.value(id).meta;
    let mut shape = meta.shape.clone();
    let axis = match &meta.batch {
        None => None,
        Some(Batch::Untracked) => Some(0),
        Some(Batch::At(places)) => places.iter().map(|&Position { axis, .. }| axis).min(),
    };
    if let Some(axis) = axis
        && shape.get(axis) == Some(&1)
    {
        shape.remove(axis);
    }
    shape
}

/// Checks the inputs of a graph: sizes, finite numbers, and token ids within the embedding.
pub fn check_inputs<T: Element>(graph: &Graph, inputs: &[&[T]], samples: usize) -> Result<()> {
    for (index, data) in inputs.iter().enumerate() {
        let Some(&id) = graph.inputs().get(index) else { continue };
        let value = graph.value(id);
        let size = value.meta.numel().max(1);
        if data.len() != samples * size {
            let reason = format!("{} numbers for {samples} samples of {size}", data.len());
            return Err(NetError::Input { input: value.name.clone(), reason });
        }
        if let Some(at) = data.iter().position(|x| !x.is_finite()) {
            return Err(NetError::NotFinite { place: format!("input {}", value.name), sample: at / size });
        }
        if let Some(rows) = index_limit(graph, id) {
            let bad = data
                .iter()
                .position(|x| x.fract() != T::zero() || x.wide() >= rows as f64 || x.wide() < -(rows as f64));
            if let Some(at) = bad {
                let (input, sample) = (value.name.clone(), at / size);
                let reason = format!("sample {sample} has index {}, but the embedding has {rows} rows", data[at]);
                return Err(NetError::Input { input, reason });
            }
        }
    }
    Ok(())
}

/// The number of rows of the smallest table that an input indexes.
fn index_limit(graph: &Graph, input: ValueId) -> Option<usize> {
    // Reshaped views of the input.
    let mut same = vec![false; graph.values().len()];
    same[input.index()] = true;
    for node in graph.nodes().iter().filter(|node| node.op.is_view()) {
        same[node.output.index()] = same[node.inputs[0].index()];
    }
    graph
        .nodes()
        .iter()
        .filter_map(|node| {
            let gather = node.op.as_any().downcast_ref::<Gather>()?;
            let table = &graph.value(node.inputs[0]).meta.shape;
            same[node.inputs[1].index()].then_some(table[gather.axis])
        })
        .min()
}

fn run<T: Element>(
    graph: &Arc<Graph>,
    weights: &Weights<T>,
    inputs: &[&[T]],
    samples: usize,
    id: ValueId,
    grain: usize,
) -> Result<Vec<T>> {
    let meta = &graph.value(id).meta;
    let size = meta.numel();
    let wanted = samples.saturating_mul(size);
    let grain = grain.max(1);
    let keep = Keep::Only(vec![id]);
    // Every thread has its own shard.
    let (shard, at_once) = (grain.min(samples), samples.div_ceil(grain).min(rayon::current_num_threads()));
    let each = Workspace::<T>::new(Arc::clone(graph), &keep).bytes(shard) / size_of::<T>();
    let elements = each.saturating_mul(at_once).saturating_add(wanted);
    check_memory::<T>(graph, elements, samples)?;
    let mut values = Vec::new();
    values.try_reserve_exact(wanted).map_err(|_| too_large::<T>(graph, elements, samples))?;
    values.resize(wanted, T::zero());
    let sizes: Vec<usize> = graph.inputs().iter().map(|&input| graph.value(input).meta.numel()).collect();
    values.par_chunks_mut((grain * size).max(1)).enumerate().try_for_each_init(
        || Workspace::new(Arc::clone(graph), &keep),
        |workspace, (shard, out)| {
            let start = shard * grain;
            let count = grain.min(samples - start);
            let slices: Vec<&[T]> =
                inputs.iter().zip(&sizes).map(|(data, size)| &data[start * size..(start + count) * size]).collect();
            workspace.forward(weights, &slices, count)?;
            let result = workspace.get(weights, id);
            if meta.is_batched() {
                out.copy_from_slice(result);
            } else {
                // A value that all samples share is repeated.
                out.chunks_exact_mut(size.max(1)).for_each(|row| row.copy_from_slice(result));
            }
            match result.iter().position(|x| !x.is_finite()) {
                None => Ok(()),
                Some(at) => Err(NetError::NotFinite {
                    place: format!("value {:?}", graph.value(id).name),
                    sample: start + at / size.max(1),
                }),
            }
        },
    )?;
    Ok(values)
}
