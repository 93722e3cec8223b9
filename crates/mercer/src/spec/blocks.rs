//! Cuts data into blocks, which limits memory and makes progress visible.

use mercer_net::graph::Graph;
use mercer_net::network::Shards;
use std::ops::Range;

/// The approximate bytes of a block's inputs and results.
const BYTES: usize = 64 << 20;

/// The approximate work of a block: a fraction of a second.
const FLOPS: u64 = 20_000_000_000;

/// More samples at a time have no benefit.
const MOST_ROWS: usize = 16_384;

/// Bytes of the inputs and the result of a sample.
pub(crate) fn sample_bytes(graph: &Graph, at: Option<&str>, element: usize) -> usize {
    let size = |id| graph.value(id).meta.numel();
    let inputs: usize = graph.inputs().iter().map(|&id| size(id)).fold(0, usize::saturating_add);
    let target = at.and_then(|name| graph.find(name)).or_else(|| graph.outputs().first().map(|&(_, id)| id));
    inputs.saturating_add(target.map_or(0, size)).saturating_mul(element).max(1)
}

/// The minimum number of samples that threads share: one shard each.
pub(crate) fn round(graph: &Graph) -> usize {
    Shards::for_graph(graph).grain.max(1).saturating_mul(rayon::current_num_threads())
}

/// The rows of the data, block by block. A block consists of whole shards: as many as the threads can share and as fit
/// into the byte limit, or about `most` rows if given. Shards begin at the same rows for any block size, so results are
/// the same bits.
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
