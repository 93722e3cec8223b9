//! The Gram engine: computes a kernel matrix tile by tile, within a memory budget.
//!
//! The upper triangle is computed when the matrix is symmetric. Blocks are prepared one after the other, parallel inside;
//! tiles of blocks that are in memory are contracted in parallel, each on one thread, unless a kernel parallelises
//! inside a tile. The tile size depends only on the kernel, so the result is the same bits for any memory and any
//! number of threads.
//!
//! ```
//! use mercer_data::Dataset;
//! use mercer_kernel::gram::Gram;
//! use mercer_kernel::{Ntk, NtkKind};
//! use mercer_net::arch::Mlp;
//! use mercer_run::Context;
//!
//! let network = Mlp::new(2, &[8], 3).build(0)?;
//! let ntk = Ntk::<f32>::new(&network, &[vec![2]], NtkKind::Trace)?;
//! let samples = ndarray::Array2::from_shape_fn((50, 2), |(i, j)| (i as f32 * 0.1 + j as f32).sin());
//! let rows = [Dataset::from_array("samples", samples.view().into_dyn())?];
//! let context = Context::new().with_memory(64 << 20);
//! assert_eq!(Gram::new(&ntk, &rows).to_kernel(&context)?.shape(), [50, 50]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod disk;
mod features;
mod kept;
mod kept_operator;
mod listing;
mod operator;
mod panels;
mod partition;
mod plan;
mod sink;
mod sizes;
mod strips;

pub use disk::{check_disk, free_disk};
pub use features::FeatureRun;
pub use kept::KeptGram;
pub use kept_operator::KeptOperator;
pub use listing::Listing;
pub use operator::GramOperator;
pub use plan::{Estimate, Plan};
pub use sink::{InMemory, NpyFiles, Sink};

use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use crate::products::all_finite;
use crate::store::{StoreColumns, StoreLayout, TilePlace, Tiles};
use mercer_data::{DType, Dataset, RowBlock};
use mercer_run::Context;
use ndarray::ArrayD;
use panels::{Panel, panels};
use plan::tile_side;
use rayon::prelude::*;
pub use sizes::Held;
use sizes::Sizes;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A Gram matrix to be computed.
#[derive(Clone)]
pub struct Gram<'a, T: Real> {
    kernel: &'a dyn Kernel<T>,
    rows: &'a [Dataset],
    columns: Option<&'a [Dataset]>,
    /// Computed once, because a kernel plans its passes for it.
    cost: Cost,
    held: Held,
}

/// The number of tiles in flight.
const BATCH: usize = 4096;

/// The time and work of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct GramOutcome {
    /// Tiles that were computed.
    pub tiles: usize,
    /// Seconds of work, without reading and writing.
    pub seconds: f64,
    /// Seconds of reading data.
    pub reading: f64,
    /// Seconds that the work waited for writing results.
    pub writing: f64,
    /// Work in 10⁹ operations.
    pub gflop: f64,
}

impl<'a, T: Real> Gram<'a, T> {
    /// The matrix of a data set (one [`Dataset`] per input of the kernel) with itself.
    pub fn new(kernel: &'a dyn Kernel<T>, rows: &'a [Dataset]) -> Self {
        Self { kernel, rows, columns: None, cost: kernel.cost(), held: Held::default() }
    }

    /// Counts memory relative to what the process held when the run began.
    pub fn holding(mut self, held: &Held) -> Self {
        self.held = held.clone();
        self
    }

    /// Uses these samples for the columns.
    pub fn against(mut self, columns: &'a [Dataset]) -> Self {
        self.columns = Some(columns);
        self
    }

    /// Shape and tiles of the result.
    pub fn layout(&self) -> StoreLayout {
        let count = |data: &[Dataset]| data.first().map_or(0, Dataset::n_samples);
        let columns = match self.columns {
            Some(columns) => StoreColumns::Samples { count: count(columns), symmetric: false },
            None => StoreColumns::Samples { count: count(self.rows), symmetric: true },
        };
        let (mut arrays, per_sample) = (self.kernel.parts(), self.kernel.per_sample());
        arrays.extend(self.kernel.beside());
        let tile = tile_side(&self.cost, per_sample, arrays.len(), size_of::<T>());
        StoreLayout { arrays, rows: count(self.rows), columns, per_sample, tile, precision: precision::<T>() }
    }

    fn sizes(&self, layout: &StoreLayout, memory: usize) -> Sizes {
        let source = source::<T>(self.rows, self.columns.unwrap_or(&[]));
        let sizes = Sizes::new(layout, &self.cost, source, rayon::current_num_threads());
        self.held.with(sizes, layout.row_blocks(), layout.is_symmetric(), memory)
    }

    /// The plan for computing these tiles. An error if the memory of the context does not suffice, including everything
    /// that the process holds.
    pub fn plan(&self, tiles: &Tiles, context: &Context) -> Result<Plan> {
        let layout = self.layout();
        let memory = context.memory();
        let sizes = self.sizes(&layout, memory);
        let symmetric = layout.is_symmetric();
        let resident = sizes.resident(layout.row_blocks(), symmetric, memory)?;
        let (mut prepared, mut gflop) = (0, 0.0);
        for panel in panels(&layout, tiles, resident) {
            prepared += panel.prepared();
            gflop += panel.gflop(&self.cost);
        }
        let used = resident.min(layout.row_blocks());
        Ok(Plan {
            tile: layout.tile,
            tiles: tiles.len(),
            blocks: [layout.row_blocks(), layout.column_blocks()],
            resident_blocks: used,
            prepared_blocks: prepared,
            block_bytes: sizes.block,
            bytes: sizes.peak(used, !(symmetric && used == layout.row_blocks())),
            least_bytes: sizes.least(layout.row_blocks(), symmetric),
            gflop,
        })
    }

    /// The tiles divided among this many processes: parts of about equal work with few blocks in common. They depend
    /// on the kernel and the numbers of samples alone, so that every process finds the same.
    pub fn partition(&self, parts: usize) -> Vec<Tiles> {
        partition::partition(&self.layout(), &self.cost, parts)
    }

    /// Computes the given tiles and passes each to `sink`.
    pub fn run(&self, tiles: &Tiles, sink: &dyn Sink<T>, context: &Context) -> Result<GramOutcome> {
        T::run_gram(self, tiles, sink, context)
    }

    pub(crate) fn compute(&self, tiles: &Tiles, sink: &dyn Sink<T>, context: &Context) -> Result<GramOutcome> {
        let plan = self.plan(tiles, context)?;
        let layout = self.layout();
        let run = Run {
            gram: self,
            layout: &layout,
            sink,
            context,
            total: (plan.gflop * 1e3) as usize,
            done: AtomicU64::new(0),
            writing: AtomicU64::new(0),
            reading: AtomicU64::new(0),
        };
        let start = Instant::now();
        for panel in panels(&layout, tiles, plan.resident_blocks) {
            run.panel(&panel)?;
        }
        let seconds = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / 1e9;
        let (reading, writing) = (seconds(&run.reading), seconds(&run.writing) / rayon::current_num_threads() as f64);
        let total = start.elapsed().as_secs_f64();
        Ok(GramOutcome {
            tiles: tiles.len(),
            seconds: (total - reading - writing).max(0.0),
            reading,
            writing,
            gflop: plan.gflop,
        })
    }

    /// The whole matrix in memory: one array per part of the kernel. An error if it does not fit.
    pub fn to_arrays(&self, context: &Context) -> Result<Vec<ArrayD<T>>> {
        let layout = self.layout();
        let numbers = layout.shape().iter().fold(layout.arrays.len(), |all, &size| all.saturating_mul(size));
        let (held, memory) = (numbers.saturating_mul(size_of::<T>()), context.memory());
        let left = context.with_memory(memory.saturating_sub(held));
        let tiles = layout.all_tiles();
        self.plan(&tiles, &left).map_err(|error| match error {
            KernelError::Memory { needed, .. } => {
                KernelError::Memory { allowed: memory, needed: needed.saturating_add(held) }
            }
            other => other,
        })?;
        let sink = InMemory::new(layout);
        self.run(&tiles, &sink, &left)?;
        Ok(sink.into_arrays())
    }

    /// The kernel itself in memory: the sum of its parts, without the matrices beside them.
    pub fn to_kernel(&self, context: &Context) -> Result<ArrayD<T>> {
        let parts = self.kernel.parts().len();
        let sum = self.to_arrays(context)?.into_iter().take(parts).reduce(|sum, part| sum + part);
        sum.ok_or_else(|| KernelError::Setting("the kernel has no matrix".to_owned()))
    }
}

/// The samples of a block, out of this many.
fn samples_of(layout: &StoreLayout, block: usize, samples: usize) -> Range<usize> {
    block * layout.tile..((block + 1) * layout.tile).min(samples)
}

/// The name of a scalar in stores.
pub(crate) fn precision<T: Real>() -> DType {
    if size_of::<T>() == 4 { DType::F32 } else { DType::F64 }
}

/// The bytes that are read: pages of a mapped file count as resident once read.
fn source<T: Real>(rows: &[Dataset], columns: &[Dataset]) -> sizes::Source {
    let stored = |data: &Dataset| data.stored_shape().iter().product::<usize>().saturating_mul(data.dtype().size());
    let numbers: usize = rows.iter().map(|data| data.sample_shape().iter().product::<usize>()).sum();
    sizes::Source {
        mapped: rows.iter().chain(columns).map(stored).sum(),
        sample: numbers.saturating_mul(size_of::<T>()),
    }
}

/// A run under way.
struct Run<'a, T: Real> {
    gram: &'a Gram<'a, T>,
    layout: &'a StoreLayout,
    sink: &'a dyn Sink<T>,
    context: &'a Context,
    /// Work in millions of operations.
    total: usize,
    done: AtomicU64,
    /// Nanoseconds.
    writing: AtomicU64,
    reading: AtomicU64,
}

impl<T: Real> Run<'_, T> {
    fn panel(&self, panel: &Panel<'_>) -> Result<()> {
        let mut blocks = HashMap::new();
        for block in panel.resident.iter() {
            blocks.insert(block, self.prepare(self.gram.rows, samples_of(self.layout, block, self.layout.rows))?);
        }
        self.tiles(panel.inside(), |place| (&blocks[&place.row_block], &blocks[&place.column_block]))?;
        for column in panel.streamed.iter() {
            let data = self.gram.columns.unwrap_or(self.gram.rows);
            let passing = self.prepare(data, samples_of(self.layout, column, self.layout.n_columns()))?;
            self.tiles(panel.passing(column), |place| (&blocks[&place.row_block], &passing))?;
        }
        Ok(())
    }

    fn prepare(&self, data: &[Dataset], rows: Range<usize>) -> Result<Block> {
        self.check_cancelled()?;
        let start = Instant::now();
        let inputs = RowBlock::<T>::read(data, rows.clone())?;
        self.reading.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let block =
            self.gram.kernel.prepare(&inputs.slices(), rows.len()).map_err(|error| error.shifted(rows.start))?;
        self.advance(self.gram.cost.prepare_flops * rows.len() as f64 / 1e9);
        Ok(block)
    }

    fn tiles<'b>(
        &self,
        mut tiles: impl Iterator<Item = usize>,
        pair: impl Fn(&TilePlace) -> (&'b Block, &'b Block) + Sync,
    ) -> Result<()> {
        let n_parts = self.layout.arrays.len();
        let one = |buffer: &mut Vec<T>, index: usize| {
            self.check_cancelled()?;
            let Some(place) = self.layout.tile(index) else { return Ok(()) };
            let (a, b) = pair(&place);
            let (height, width) = self.layout.tile_shape(&place);
            let size = height * width;
            buffer.resize(n_parts * size, T::zero());
            self.gram.kernel.contract(a, b, buffer);
            let start = Instant::now();
            let matrices: Vec<&[T]> = buffer.chunks_exact(size.max(1)).collect();
            if !all_finite(buffer) {
                let at = buffer.iter().position(|x| !x.is_finite()).unwrap_or_default();
                let (row, column) = (at % size / width / self.layout.per_sample, at % width / self.layout.per_sample);
                return Err(KernelError::Overflow {
                    row: place.rows.start + row,
                    column: place.columns.start + column,
                });
            }
            self.sink.write(index, &place, &matrices)?;
            self.writing.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            self.advance(self.pair_gflop(&place));
            Ok(())
        };
        if self.gram.cost.contract_alone {
            let mut buffer = Vec::new();
            return tiles.try_for_each(|index| one(&mut buffer, index));
        }
        loop {
            let batch: Vec<usize> = tiles.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            batch.par_iter().try_for_each_init(Vec::new, |buffer, &index| one(buffer, index))?;
        }
    }

    fn pair_gflop(&self, place: &TilePlace) -> f64 {
        let on_diagonal = self.layout.is_symmetric() && place.row_block == place.column_block;
        let pairs = place.rows.len() as f64 * place.columns.len() as f64;
        self.gram.cost.pair_flops * pairs * if on_diagonal { 0.5 } else { 1.0 } / 1e9
    }

    fn check_cancelled(&self) -> Result<()> {
        Ok(self.context.check()?)
    }

    fn advance(&self, gflop: f64) {
        let done = (gflop * 1e3) as u64 + self.done.fetch_add((gflop * 1e3) as u64, Ordering::Relaxed);
        self.context.report((done as usize).min(self.total), self.total, "MFLOP");
    }
}
