//! The two passes over the samples.

use super::opened::OpenedShift;
use super::views::ViewSource;
use crate::Error;
use mercer_data::Dataset;
use mercer_kernel::Real;
use mercer_lens::shift::{Decided, FittedView, N_PROJECTED, Permutations, View, ViewStatistics, decide, pilot_rows};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis, s};
use std::ops::Range;

/// Reads samples block by block: the old ones, then the new ones.
pub(super) struct Reader<'a, T: Real> {
    opened: &'a OpenedShift,
    pub(super) views: Vec<ViewSource<T>>,
    /// The features of all blocks, if they fit into memory.
    held: Vec<Vec<Array2<T>>>,
}

/// A block of samples of one set.
struct Block {
    set: usize,
    rows: Range<usize>,
    /// The same rows, counted over both sets.
    pooled: Range<usize>,
}

/// What is known after the first pass.
pub(super) struct FirstPass {
    pub(super) views: Vec<FittedView>,
    pub(super) statistics: Vec<ViewStatistics>,
    /// The network's decisions on all samples, if there are labels.
    pub(super) decided: Vec<Decided>,
    /// The samples that centre and length scale of the main view are from.
    pub(super) pilot: Array2<f64>,
}

/// What is known after the second pass.
pub(super) struct SecondPass {
    /// Coordinates and the classifier's score, a row per sample, for every view.
    pub(super) projected: Vec<Array2<f64>>,
    /// The witness of every sample in the main view.
    pub(super) witness: Vec<f64>,
}

/// Old samples with the rates of classes of the new ones, compared with these in the second pass.
pub(super) struct Matched {
    /// The old samples, in order.
    pub(super) rows: Vec<usize>,
    pub(super) permutations: Permutations,
    pub(super) view: View,
}

impl<'a, T: Real> Reader<'a, T> {
    pub(super) fn new(opened: &'a OpenedShift, context: &Context) -> Result<Self, Error> {
        Ok(Self { opened, views: ViewSource::all(opened, context)?, held: Vec::new() })
    }

    /// The view that samples are looked at in: the last layer, or the data.
    pub(super) fn main(&self) -> usize {
        self.opened.n_layers.saturating_sub(1)
    }

    fn blocks(&self) -> Vec<Block> {
        let mut found = Vec::new();
        let mut before = 0;
        for (set, inputs) in self.opened.sets().into_iter().enumerate() {
            let n_samples = inputs.first().map_or(0, Dataset::n_samples);
            for start in (0..n_samples).step_by(self.opened.reading.block) {
                let rows = start..(start + self.opened.reading.block).min(n_samples);
                found.push(Block { set, pooled: before + rows.start..before + rows.end, rows });
            }
            before += n_samples;
        }
        found
    }

    /// The features of some samples in all views, and their scores if they are wanted.
    #[allow(clippy::type_complexity, reason = "features and scores, used here alone")]
    fn read(
        &self,
        (inputs, rows): (&[Dataset], Range<usize>),
        context: &Context,
    ) -> Result<(Vec<Array2<T>>, Option<Array2<T>>), Error> {
        let opened = self.opened;
        let layers = match (&opened.layers, opened.source.network()) {
            (Some(layers), Some(network)) => {
                let all: Vec<usize> = (0..layers.count()).collect();
                layers.values_in::<T>(network, &all, (inputs, rows.clone()), &context.quiet())?
            }
            _ => Vec::new(),
        };
        let one = |view: &ViewSource<T>| view.features(&layers, (inputs, rows.clone()), &context.quiet());
        let features = self.views.iter().map(one).collect::<Result<Vec<_>, Error>>()?;
        inputs.iter().for_each(Dataset::release);
        Ok((features, opened.logits_at.map(|at| layers[at].clone())))
    }

    /// Some samples of both sets, for the centre and the length scale of every view.
    fn pilot(&self, n_rows: usize, context: &Context) -> Result<Vec<Array2<f64>>, Error> {
        let rows = pilot_rows(n_rows, self.opened.job.seed);
        let cut = rows.partition_point(|&row| row < self.opened.reference.n_samples);
        let mut found: Vec<Vec<Array2<f64>>> = vec![Vec::new(); self.views.len()];
        for (set, inputs) in self.opened.sets().into_iter().enumerate() {
            let before = if set == 0 { 0 } else { self.opened.reference.n_samples };
            let own = if set == 0 { &rows[..cut] } else { &rows[cut..] };
            let own: Vec<usize> = own.iter().map(|row| row - before).collect();
            for some in own.chunks(self.opened.reading.block) {
                let inputs = inputs.iter().map(|input| input.subset(some)).collect::<Result<Vec<_>, _>>()?;
                let (features, _) = self.read((&inputs, 0..some.len()), context)?;
                found.iter_mut().zip(features).for_each(|(all, one)| all.push(one.mapv(|x| x.wide())));
            }
        }
        let joined = |parts: Vec<Array2<f64>>| {
            let parts: Vec<ArrayView2<'_, f64>> = parts.iter().map(|part| part.view()).collect();
            ndarray::concatenate(Axis(0), &parts).map_err(|error| Error::new(format!("the samples: {error}")))
        };
        found.into_iter().map(joined).collect()
    }

    /// Sums over all samples.
    pub(super) fn first(&mut self, permutations: &Permutations, context: &Context) -> Result<FirstPass, Error> {
        let (job, n_rows) = (&self.opened.job, permutations.n_rows());
        let pilots = self.pilot(n_rows, context)?;
        let new = |pilot: &Array2<f64>| View::new(pilot.view(), permutations.n_columns(), job.frequencies, job.seed);
        let mut views = pilots.iter().map(new).collect::<Result<Vec<_>, _>>()?;
        let pilot = pilots.into_iter().nth(self.main()).unwrap_or_default();
        let mut decided = Vec::new();
        for block in self.blocks() {
            context.check()?;
            let sets = self.opened.sets();
            let (features, scores) = self.read((sets[block.set], block.rows.clone()), context)?;
            let members = permutations.members(block.pooled.clone());
            for (view, features) in views.iter_mut().zip(&features) {
                view.add(features.mapv(|x| x.wide()).view(), &members)?;
            }
            if let Some(scores) = scores {
                decided.extend(decide(two_columns(&scores).view())?);
            }
            if self.opened.reading.held {
                self.held.push(features);
            }
            context.report(block.pooled.end, n_rows, "samples");
        }
        let (views, statistics) = views.into_iter().map(View::fit).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(FirstPass { views, statistics, decided, pilot })
    }

    /// Coordinates of all samples.
    pub(super) fn second(
        &self,
        first: &FirstPass,
        permutations: &Permutations,
        mut matched: Option<&mut Matched>,
        context: &Context,
    ) -> Result<SecondPass, Error> {
        let n_rows = permutations.n_rows();
        let main = self.main();
        let mut projected: Vec<Array2<f64>> =
            first.views.iter().map(|_| Array2::zeros((n_rows, N_PROJECTED))).collect();
        let mut witness = Vec::with_capacity(n_rows);
        let mut n_matched = 0;
        for (at, block) in self.blocks().into_iter().enumerate() {
            context.check()?;
            let again;
            let features = match self.held.get(at) {
                Some(held) => held,
                None => {
                    again = self.read((self.opened.sets()[block.set], block.rows.clone()), context)?.0;
                    &again
                }
            };
            let halves = permutations.halves(block.pooled.clone());
            for ((view, features), all) in first.views.iter().zip(features).zip(&mut projected) {
                let found = view.project(features.mapv(|x| x.wide()).view(), halves)?;
                all.slice_mut(s![block.pooled.clone(), ..]).assign(&found);
            }
            let wide = features[main].mapv(|x| x.wide());
            witness.extend(first.views[main].witness(wide.view())?);
            if let Some(matched) = &mut matched {
                let own: Vec<usize> = match block.set {
                    0 => {
                        let from = matched.rows.partition_point(|&row| row < block.rows.start);
                        let to = matched.rows.partition_point(|&row| row < block.rows.end);
                        matched.rows[from..to].iter().map(|row| row - block.rows.start).collect()
                    }
                    _ => (0..block.rows.len()).collect(),
                };
                if !own.is_empty() {
                    let members = matched.permutations.members(n_matched..n_matched + own.len());
                    matched.view.add(wide.select(Axis(0), &own).view(), &members)?;
                    n_matched += own.len();
                }
            }
            context.report(block.pooled.end, n_rows, "samples");
        }
        Ok(SecondPass { projected, witness })
    }
}

/// Scores in double precision; a single output `f` becomes the two scores `0` and `f`.
fn two_columns<T: Real>(scores: &Array2<T>) -> Array2<f64> {
    let wide = scores.mapv(|x| x.wide());
    match wide.ncols() {
        1 => {
            let mut both = Array2::zeros((wide.nrows(), 2));
            both.column_mut(1).assign(&wide.column(0));
            both
        }
        _ => wide,
    }
}
