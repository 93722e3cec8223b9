//! Features of many samples, block by block.

use super::plan::{Plan, feature_side};
use super::sink::Sink;
use super::sizes::{Held, Sizes};
use super::{GramOutcome, precision, source};
use crate::error::Result;
use crate::feature::{Effort, FeatureMap};
use crate::kernel::{Cost, Real};
use crate::store::{StoreColumns, StoreLayout, Tiles};
use mercer_data::{Dataset, RowBlock};
use mercer_run::Context;
use std::time::Instant;

/// The features of a data set, to be computed.
#[derive(Clone)]
pub struct FeatureRun<'a, T: Real> {
    map: &'a dyn FeatureMap<T>,
    data: &'a [Dataset],
    /// Computed once, because a map plans its passes for it.
    effort: Effort,
    held: Held,
}

impl<'a, T: Real> FeatureRun<'a, T> {
    /// The features of a data set (one [`Dataset`] per input of the map).
    pub fn new(map: &'a dyn FeatureMap<T>, data: &'a [Dataset]) -> Self {
        Self { map, data, effort: map.effort(), held: Held::default() }
    }

    /// Counts memory relative to what the process held when the run began.
    pub fn holding(mut self, held: &Held) -> Self {
        self.held = held.clone();
        self
    }

    /// Shape and blocks of the result.
    pub fn layout(&self) -> StoreLayout {
        let n_features = self.map.n_features();
        StoreLayout {
            arrays: vec!["features".to_owned()],
            rows: self.data.first().map_or(0, Dataset::n_samples),
            columns: StoreColumns::Features(n_features),
            per_sample: 1,
            tile: feature_side(n_features, size_of::<T>()),
            precision: precision::<T>(),
        }
    }

    /// The plan for computing these blocks. An error if the memory does not suffice.
    pub fn plan(&self, blocks: &Tiles, context: &Context) -> Result<Plan> {
        let layout = self.layout();
        let effort = self.effort;
        let sample_bytes = self.map.n_features() * size_of::<T>();
        let cost = Cost {
            sample_bytes,
            prepare_bytes: effort.bytes,
            shared_bytes: effort.shared_bytes,
            shared_sample_bytes: effort.shared_sample_bytes,
            ..Cost::default()
        };
        let (source, memory) = (source::<T>(self.data, &[]), context.memory());
        let sizes = Sizes::of_features(&layout, &cost, source, rayon::current_num_threads());
        let sizes = self.held.with(sizes, 1, true, memory);
        sizes.resident(1, true, memory)?;
        let samples = layout.samples(blocks, layout.rows);
        Ok(Plan {
            tile: layout.tile,
            tiles: blocks.len(),
            blocks: [layout.row_blocks(), 1],
            resident_blocks: 1,
            prepared_blocks: blocks.len(),
            block_bytes: sizes.block,
            bytes: sizes.peak(1, false),
            least_bytes: sizes.least(1, true),
            gflop: samples as f64 * effort.flops / 1e9,
        })
    }

    /// The blocks divided among this many processes.
    pub fn partition(&self, parts: usize) -> Vec<Tiles> {
        let (blocks, parts) = (self.layout().n_tiles(), parts.max(1));
        (0..parts).map(|part| Tiles::range(blocks * part / parts..blocks * (part + 1) / parts)).collect()
    }

    /// Computes the given blocks and passes each to `sink`.
    pub fn run(&self, blocks: &Tiles, sink: &dyn Sink<T>, context: &Context) -> Result<GramOutcome> {
        let plan = self.plan(blocks, context)?;
        let layout = self.layout();
        let mut outcome = GramOutcome { tiles: blocks.len(), gflop: plan.gflop, ..GramOutcome::default() };
        let mut features = Vec::new();
        let total = layout.samples(blocks, layout.rows);
        let mut done = 0;
        for block in blocks.iter() {
            context.check()?;
            let Some(place) = layout.tile(block) else { continue };
            let start = Instant::now();
            let inputs = RowBlock::<T>::read(self.data, place.rows.clone())?;
            let read = start.elapsed().as_secs_f64();
            features.resize(place.rows.len() * self.map.n_features(), T::zero());
            let computed = self.map.features(&inputs.slices(), place.rows.len(), &mut features);
            computed.map_err(|error| error.shifted(place.rows.start))?;
            let worked = start.elapsed().as_secs_f64();
            sink.write(block, &place, &[&features])?;
            outcome.reading += read;
            outcome.seconds += worked - read;
            outcome.writing += start.elapsed().as_secs_f64() - worked;
            done += place.rows.len();
            context.report(done, total, "samples");
        }
        Ok(outcome)
    }
}
