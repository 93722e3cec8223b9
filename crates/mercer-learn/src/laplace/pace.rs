//! Splitting a block of samples into pieces, so that the work can be cancelled between them.

use crate::error::Result;
use mercer_kernel::{FeatureMap, Real};
use mercer_net::graph::Graph;
use mercer_net::network::Shards;
use mercer_run::Context;
use std::ops::Range;

/// The approximate work of a piece: a fraction of a second.
const FLOPS: f64 = 2e10;

/// The sizes that determine the pieces. A piece consists of whole shards, so it does not change the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Samples per shard.
    shard: usize,
    /// Operations per sample.
    flops: f64,
    /// The least number of shards in a piece.
    least: usize,
}

impl Pace {
    /// For work on independent shards: a piece has enough shards for all threads.
    pub(super) fn of_shards(shard: usize, flops: f64) -> Self {
        Self { shard, flops, least: 2 * rayon::current_num_threads() }
    }

    /// For work that multiplies a piece as a whole: the pieces are the same for any number of threads.
    pub(super) fn of_products(shard: usize, flops: f64) -> Self {
        Self { shard, flops, least: 16 }
    }

    /// For forward passes.
    pub(super) fn forward(graph: &Graph) -> Self {
        Self::of_shards(Shards::for_graph(graph).grain, graph.flops() as f64)
    }

    /// The pieces of this many samples. None is smaller than a shard, unless there are fewer samples.
    pub(super) fn pieces(self, samples: usize) -> impl Iterator<Item = Range<usize>> {
        let shard = self.shard.max(1);
        let affordable = (FLOPS / self.flops.max(1.0)) as usize / shard;
        let step = affordable.max(self.least).saturating_mul(shard);
        let count = samples.saturating_sub(samples % step % shard).div_ceil(step).max(usize::from(samples > 0));
        let end = move |at: usize| if at + 1 == count { samples } else { (at + 1) * step };
        (0..count).map(move |at| at * step..end(at))
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
        for (shard, flops, samples) in [(2, 1e12, 1000), (128, 1.0, 1000), (16, 1e8, 1025), (4, 1e12, 66), (1, 0.0, 1)]
        {
            let mut end = 0;
            for piece in Pace::of_products(shard, flops).pieces(samples) {
                assert_eq!((piece.start, piece.start % shard), (end, 0));
                assert!(piece.len() >= shard.min(samples), "{piece:?} of {samples}");
                end = piece.end;
            }
            assert_eq!(end, samples);
        }
        assert_eq!(Pace::of_products(4, 1e12).pieces(130).collect::<Vec<_>>(), [0..64, 64..130]);
        assert_eq!(Pace::of_products(4, 1e12).pieces(0).count(), 0);
        assert_eq!(Pace::of_products(4, 1.0).pieces(1000).count(), 1);
    }
}
