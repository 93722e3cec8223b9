//! How data are cut so that what is in memory stays small and progress is seen.

use mercer_net::graph::Graph;
use mercer_net::network::Shards;
use std::ops::Range;

/// Inputs and results of a block take about so many bytes.
const BYTES: usize = 64 << 20;

/// A block is about so much work: a fraction of a second.
const FLOPS: u64 = 20_000_000_000;

/// More samples at a time bring nothing.
const MOST_ROWS: usize = 16_384;

/// Bytes of the inputs and the result of a sample.
pub(crate) fn sample_bytes(graph: &Graph, at: Option<&str>, element: usize) -> usize {
    let size = |id| graph.value(id).meta.numel();
    let inputs: usize = graph.inputs().iter().map(|&id| size(id)).fold(0, usize::saturating_add);
    let target = at.and_then(|name| graph.find(name)).or_else(|| graph.outputs().first().map(|&(_, id)| id));
    inputs.saturating_add(target.map_or(0, size)).saturating_mul(element).max(1)
}

/// Samples that threads share at least: a shard each.
pub(crate) fn round(graph: &Graph) -> usize {
    Shards::for_graph(graph).grain.max(1).saturating_mul(rayon::current_num_threads())
}

/// The rows of the data, block by block. A block is whole shards, as many as threads can share and as fit into so many bytes, or
/// about `most` rows if that is said: shards begin at the same rows whatever a block is, so that results are the same bits.
pub(crate) fn split(
    graph: &Graph,
    n_samples: usize,
    most: Option<usize>,
    (sample, room): (usize, usize),
) -> impl Iterator<Item = Range<usize>> + use<> {
    let affordable = (room.min(BYTES) / sample).min((FLOPS / graph.flops().max(1)) as usize);
    let round = if most.is_some() { Shards::for_graph(graph).grain.max(1) } else { round(graph) };
    let n_rows = match most {
        Some(rows) => rows.div_ceil(round).saturating_mul(round),
        None => (affordable.min(MOST_ROWS) / round).max(1).saturating_mul(round),
    };
    (0..n_samples).step_by(n_rows).map(move |start| start..start.saturating_add(n_rows).min(n_samples))
}
