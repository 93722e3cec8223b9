//! The plan of a run: its work and its memory.
//!
//! A panel of blocks of rows stays resident while the blocks of the columns pass by, so that with `R` resident of `B` blocks
//! a symmetric matrix takes about `B·(B/R + 1)/2` prepares instead of `B`.

use crate::kernel::{Cost, Real};
use mercer_linalg::gemm;
use serde::Serialize;
use std::time::Instant;

/// Samples per tile. More have no benefit, and progress would be saved less often.
const LARGEST_TILE: usize = 256;

/// A prepared block should not be larger than this, as long as it has more than sixty-four samples.
const BLOCK_BYTES: usize = 320 << 20;

/// The hard limit on a prepared block. With fewer samples, the time of a tile is dominated by reading its blocks.
const LARGE_BLOCK_BYTES: usize = 1 << 30;

/// A tile should not be larger than this.
const TILE_BYTES: usize = 64 << 20;

/// The samples of a tile: a power of two that depends only on the kernel, never on memory or threads, so that results
/// do not depend on those either.
pub(crate) fn tile_side(cost: &Cost, per_sample: usize, parts: usize, element: usize) -> usize {
    let mut side = LARGEST_TILE;
    while side > 1 {
        let block = side.saturating_mul(cost.sample_bytes);
        let rows = side.saturating_mul(per_sample);
        let tile = rows.saturating_mul(rows).saturating_mul(element).saturating_mul(parts);
        let block_fits = block <= if side > 64 { BLOCK_BYTES } else { LARGE_BLOCK_BYTES };
        if block_fits && tile <= TILE_BYTES {
            break;
        }
        side /= 2;
    }
    side
}

/// The samples of a block of features: large, because sketches compute their projection once per block.
pub(crate) fn feature_side(n_features: usize, element: usize) -> usize {
    let row = n_features.saturating_mul(element).max(1);
    (TILE_BYTES / row).clamp(16, 2048).next_power_of_two() / 2 * 2
}

/// The plan of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Samples per side of a tile.
    pub tile: usize,
    /// Tiles to compute.
    pub tiles: usize,
    /// Blocks of rows, and of columns.
    pub blocks: [usize; 2],
    /// Blocks that stay in memory while others pass by.
    pub resident_blocks: usize,
    /// Blocks to prepare, counting repeats.
    pub prepared_blocks: usize,
    /// Bytes of one prepared block.
    pub block_bytes: usize,
    /// Peak bytes, including what the process already holds.
    pub bytes: usize,
    /// The smallest memory with which the run can be done.
    pub least_bytes: usize,
    /// Work in 10⁹ operations.
    pub gflop: f64,
}

/// The estimated time of a plan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// Seconds of work.
    pub seconds: f64,
    /// The expected rate of all threads together.
    pub gflop_per_second: f64,
}

/// Kernels reach about this fraction of the speed of a large product.
const EFFICIENCY: f64 = 0.7;

impl Plan {
    /// Measures a short product and extrapolates to the plan.
    pub fn estimate<T: Real>(&self) -> Estimate {
        const SIDE: usize = 384;
        let (a, mut c) = (vec![T::one(); SIDE * SIDE], vec![T::zero(); SIDE * SIDE]);
        let mut best = f64::INFINITY;
        for _ in 0..8 {
            let start = Instant::now();
            gemm([SIDE, SIDE, SIDE], (&a, SIDE, 1), (&a, 1, SIDE), false, &mut c);
            best = best.min(start.elapsed().as_secs_f64());
        }
        let rate = 2.0 * (SIDE as f64).powi(3) / best / 1e9 * EFFICIENCY * rayon::current_num_threads() as f64;
        Estimate { seconds: self.gflop / rate, gflop_per_second: rate }
    }
}
