//! A block of samples in pieces, so that the work on it can be called off between them.

use crate::error::Result;
use mercer_kernel::{FeatureMap, Real};
use mercer_net::graph::Graph;
use mercer_net::network::Shards;
use mercer_run::Context;
use std::ops::Range;

/// A piece is about so much work: a fraction of a second.
const FLOPS: f64 = 2e10;

/// Shards of every thread that a piece has at least.
const SHARDS: usize = 2;

/// How fast samples are worked on. A piece is whole shards, and what a shard gives depends on no other, so that pieces do not change
/// results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Samples that are worked on together.
    pub(super) shard: usize,
    /// Operations per sample.
    pub(super) flops: f64,
}

impl Pace {
    /// Of forward passes.
    pub(super) fn forward(graph: &Graph) -> Self {
        Self { shard: Shards::of(graph).grain, flops: graph.flops() as f64 }
    }

    /// The pieces of so many samples.
    pub(super) fn pieces(self, samples: usize) -> impl Iterator<Item = Range<usize>> {
        let shard = self.shard.max(1);
        let affordable = (FLOPS / self.flops.max(1.0)) as usize / shard;
        let shards = affordable.max(SHARDS * rayon::current_num_threads());
        let step = shards.saturating_mul(shard);
        (0..samples).step_by(step).map(move |start| start..start.saturating_add(step).min(samples))
    }

    /// The features of some samples.
    pub(super) fn features<T: Real>(
        self,
        map: &dyn FeatureMap<T>,
        (inputs, samples): (&[&[T]], usize),
        out: &mut [T],
        context: &Context,
    ) -> Result<()> {
        let width = map.n_features();
        for piece in self.pieces(samples) {
            context.check()?;
            let out = &mut out[piece.start * width..piece.end * width];
            let own = rows(inputs, samples, &piece);
            map.features(&own, piece.len(), out).map_err(|error| error.shifted(piece.start))?;
        }
        Ok(())
    }
}

/// Some samples of every input.
pub(super) fn rows<'a, T>(inputs: &[&'a [T]], samples: usize, piece: &Range<usize>) -> Vec<&'a [T]> {
    let part = |data: &&'a [T]| {
        let width = data.len() / samples.max(1);
        &data[piece.start * width..piece.end * width]
    };
    inputs.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_shards_and_cover_all_samples() {
        for (shard, flops, samples) in [(2, 1e12, 1000), (128, 1.0, 1000), (16, 1e8, 999), (1, 0.0, 1), (4, 1e9, 0)] {
            let mut end = 0;
            for piece in (Pace { shard, flops }).pieces(samples) {
                assert_eq!((piece.start, piece.start % shard), (end, 0));
                assert!(piece.end > end);
                end = piece.end;
            }
            assert_eq!(end, samples);
        }
        let dear = (Pace { shard: 2, flops: 1e12 }).pieces(1000).next().expect("a piece");
        assert_eq!(dear.len(), (2 * SHARDS * rayon::current_num_threads()).min(1000));
    }
}
