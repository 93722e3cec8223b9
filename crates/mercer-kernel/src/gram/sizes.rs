//! Counts the memory of a run before it begins.
//!
//! All resident memory counts: memory that the process already holds, prepared blocks, scratch memory of every thread,
//! copies being written, mapped data files, and memory outside our own buffers: packed operands of matrix products,
//! stacks, code that has not run yet, and memory that the allocator retains.

use crate::error::{KernelError, Result};
use crate::kernel::Cost;
use crate::store::StoreLayout;
use mercer_linalg::memory::{keep_nothing_back, kept_back};
use mercer_run::{PROCESS_NOISE, resident_memory, resident_memory_roughly};
use std::sync::{Arc, OnceLock};

/// Pages of code and constants that a run touches for the first time, in a release build without link-time optimisation.
/// With 2 MiB, one of 37 kernels exceeded its limit by 1.6 %.
const CODE: usize = 3 << 20;

/// The part of a thread's stack that is touched.
const STACK: usize = 128 << 10;

/// A product packs pieces of one operand, of this depth at most.
const PACKED_DEPTH: usize = 512;

/// Rows are packed in groups of this size.
const PACKED_ROWS: usize = 96;

/// Bytes that a thread packs for a product of `rows` by `columns` numbers over this depth.
fn packed(rows: usize, columns: usize, depth: usize, element: usize) -> usize {
    (rows.max(columns) + PACKED_ROWS).saturating_mul(depth.min(PACKED_DEPTH)).saturating_mul(element)
}

/// Bytes that all threads share while preparing a block of this many samples.
fn shared(cost: &Cost, samples: usize) -> usize {
    cost.shared_bytes.saturating_add(cost.shared_sample_bytes.saturating_mul(samples))
}

/// The sizes for planning memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Memory that the process already holds, including what its allocator retains.
    base: usize,
    /// The part of it that the allocator retains, and would return if memory is tight.
    spare: usize,
    /// A prepared block.
    pub(super) block: usize,
    /// The memory of all threads, and memory shared by them.
    working: usize,
}

/// The source data of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// Bytes of mapped files: a page counts once it has been read.
    pub(super) mapped: usize,
    /// Of a sample, as a kernel takes it.
    pub(super) sample: usize,
}

impl Source {
    /// The files, and samples as stored, as converted and as preprocessed.
    fn held(&self, samples: usize) -> usize {
        samples.saturating_mul(self.sample).saturating_mul(3).saturating_add(self.mapped)
    }
}

impl Sizes {
    /// Of a Gram matrix.
    pub(super) fn new(layout: &StoreLayout, cost: &Cost, source: Source, threads: usize) -> Self {
        let element = layout.precision.size();
        let side = layout.tile.min(layout.rows.max(layout.n_columns()));
        let rows = side * layout.per_sample;
        let columns = rows.min(layout.n_columns().saturating_mul(layout.per_sample));
        // A tile is written from a padded copy; its mirror image, from a transposed one.
        let tile = (3 + cost.contract_tiles) * rows * columns * element * layout.arrays.len();
        let contract = tile + cost.contract_bytes * side;
        let packed = packed(rows, columns, cost.sample_bytes / element, element);
        // Scratch memory of preparing is kept for the next block.
        let thread = cost.prepare_bytes + packed + STACK;
        let contracting = if cost.contract_alone { contract } else { threads * contract };
        let working = threads * thread + contracting + shared(cost, side) + source.held(side) + CODE;
        Self { base: 0, spare: 0, block: side * cost.sample_bytes, working }
    }

    /// Of features.
    pub(super) fn of_features(layout: &StoreLayout, cost: &Cost, source: Source, threads: usize) -> Self {
        let side = layout.tile.min(layout.rows);
        // The features, and the copy being written.
        let block = side * cost.sample_bytes;
        let thread = cost.prepare_bytes + STACK;
        let working = block + threads * thread + shared(cost, side) + source.held(side) + CODE;
        Self { base: 0, spare: 0, block, working }
    }

    /// The peak with this many resident blocks and one passing by.
    pub(super) fn peak(&self, resident: usize, streams: bool) -> usize {
        let blocks = resident.saturating_add(usize::from(streams));
        self.base.saturating_add(self.working).saturating_add(blocks.saturating_mul(self.block))
    }

    /// The number of blocks that can stay resident; an error if there is no room for one resident block and one passing
    /// by.
    pub(super) fn resident(&self, blocks: usize, one_side: bool, memory: usize) -> Result<usize> {
        if one_side && self.peak(blocks, false) <= memory {
            return Ok(blocks);
        }
        if self.peak(1, !(one_side && blocks == 1)) > memory {
            return Err(KernelError::Memory { allowed: memory, needed: self.least(blocks, one_side) });
        }
        let room = memory - self.base - self.working;
        Ok((room / self.block.max(1)).saturating_sub(1).clamp(1, blocks))
    }

    /// The smallest sufficient memory, also for another process that does the same.
    pub(super) fn least(&self, blocks: usize, one_side: bool) -> usize {
        self.peak(1, !(one_side && blocks == 1)).saturating_sub(self.spare).saturating_add(PROCESS_NOISE)
    }
}

/// The memory that the process held before the first plan of a run. Later plans of the same run count from there too,
/// because memory allocated for the run since then is part of their sizes. Clones belong to the same run.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<OnceLock<(usize, usize)>>);

/// The memory that the allocator retains even if told to retain none.
const LEAST_KEPT: usize = 1 << 20;

/// The allocator may retain memory if the limit is at least this many times larger.
const AMPLE: usize = 8;

impl Held {
    /// The sizes, including memory already held. If that leaves too little room, the allocator is told to retain
    /// nothing.
    pub(super) fn with(&self, sizes: Sizes, blocks: usize, one_side: bool, memory: usize) -> Sizes {
        let (held, kept) = *self.0.get_or_init(|| {
            let (roughly, kept) = (resident_memory_roughly(), kept_back());
            if roughly.saturating_add(kept).saturating_add(sizes.peak(blocks, !one_side)) <= memory / AMPLE {
                return (roughly, kept);
            }
            let held = resident_memory();
            let fits = |bytes: usize| held.saturating_add(kept).saturating_add(bytes) <= memory;
            let ample = memory / AMPLE >= kept && fits(sizes.least(blocks, one_side));
            if !ample && !fits(sizes.peak(blocks, !one_side)) {
                keep_nothing_back();
            }
            (resident_memory(), kept_back())
        });
        Sizes { base: held + kept, spare: kept.saturating_sub(LEAST_KEPT), ..sizes }
    }
}
