//! The attributions of all test samples, a few rows of kernel values at a time.

use crate::Error;
use crate::job::surrogate::Surrogate;
use mercer_data::NpyWriter;
use mercer_kernel::Real;
use mercer_lens::{Distribution, Grouping, Summary, summarise};
use ndarray::{Array2, Array3, ArrayView2, Axis};
use rayon::prelude::*;

/// With more classes, only those that matter for a sample are attributed.
const ALL_CLASSES: usize = 20;

/// What is computed for every test sample.
pub(super) struct Attributor<'a, T> {
    pub(super) surrogate: &'a Surrogate,
    pub(super) grouping: &'a Grouping,
    /// The class that the network decides for.
    pub(super) predicted: &'a [usize],
    /// The correct class, if it is known.
    pub(super) correct: Option<&'a [usize]>,
    /// Training samples to list at either end.
    pub(super) top: usize,
    /// Samples whose attributions are kept.
    pub(super) rows: Vec<usize>,
    /// Receives all attributions, if they are wanted.
    pub(super) all: Option<NpyWriter<T>>,
    pub(super) found: Attributed,
}

/// The attributions of the test samples, in their order.
#[derive(Default)]
pub(super) struct Attributed {
    /// The summaries of the attributed classes of every sample.
    pub(super) summaries: Vec<Vec<(usize, Summary)>>,
    /// The attributions of the rows that are kept, `[samples, classes]`.
    pub(super) kept: Vec<(usize, Array2<f64>)>,
}

impl<T: Real> Attributor<'_, T> {
    /// The classes whose scores are attributed.
    fn classes(&self, sample: usize) -> Vec<usize> {
        if self.surrogate.n_classes <= ALL_CLASSES {
            return (0..self.surrogate.n_classes).collect();
        }
        let mut classes = vec![self.predicted[sample]];
        classes.extend(self.correct.map(|correct| correct[sample]));
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Attributes the scores of some samples, from their kernel values with all training samples.
    pub(super) fn visit(&mut self, first: usize, rows: ArrayView2<'_, f64>) -> Result<(), Error> {
        let summarised: Vec<Vec<(usize, Summary)>> = (0..rows.nrows())
            .into_par_iter()
            .map(|at| {
                let row = rows.row(at);
                let kernel = row.as_slice().unwrap_or(&[]);
                let one = |class: usize| {
                    let all = self.surrogate.attributions(kernel, class)?;
                    Ok((class, summarise(kernel, &all, self.top, self.grouping)))
                };
                self.classes(first + at).into_iter().map(one).collect()
            })
            .collect::<Result<_, Error>>()?;
        self.found.summaries.extend(summarised);
        for (at, row) in rows.outer_iter().enumerate() {
            let wanted = self.rows.contains(&(first + at));
            if !wanted && self.all.is_none() {
                continue;
            }
            let all = self.whole(row.as_slice().unwrap_or(&[]))?;
            if let Some(writer) = &mut self.all {
                writer.append(all.mapv(T::narrow).insert_axis(Axis(0)).view().into_dyn())?;
            }
            if wanted {
                self.found.kept.push((first + at, all));
            }
        }
        Ok(())
    }

    /// Completes the file of all attributions, and returns what was found.
    pub(super) fn finish(self) -> Result<Attributed, Error> {
        if let Some(writer) = self.all {
            writer.finish()?;
        }
        Ok(self.found)
    }

    /// All attributions of a sample, `[training samples, classes]`.
    fn whole(&self, kernel: &[f64]) -> Result<Array2<f64>, Error> {
        let mut all = Array2::zeros((kernel.len(), self.surrogate.n_classes));
        for (class, mut column) in all.axis_iter_mut(Axis(1)).enumerate() {
            let values = self.surrogate.attributions(kernel, class)?;
            column.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
        }
        Ok(all)
    }
}

impl Attributed {
    /// The summary of the class that the network decides for.
    fn of_class(&self, predicted: &[usize]) -> impl Iterator<Item = &Summary> {
        self.summaries.iter().zip(predicted).filter_map(|(own, class)| {
            own.iter().find(|(attributed, _)| attributed == class).map(|(_, summary)| summary)
        })
    }

    /// The distributions of the predicted classes, `[samples, groups, statistics]`: number, mean, quartiles, whiskers,
    /// fliers.
    pub(super) fn distributions(&self, predicted: &[usize], n_groups: usize) -> Array3<f64> {
        let mut found = Array3::zeros((self.summaries.len(), n_groups, STATISTICS.len()));
        for (sample, summary) in self.of_class(predicted).enumerate() {
            for (group, distribution) in summary.groups.iter().enumerate() {
                for (at, value) in statistics(distribution).into_iter().enumerate() {
                    found[(sample, group, at)] = value;
                }
            }
        }
        found
    }

    /// The mean attributions `[samples, classes, groups]`, if all classes are attributed.
    pub(super) fn means(&self, n_classes: usize, n_groups: usize) -> Option<Array3<f64>> {
        if self.summaries.iter().any(|own| own.len() != n_classes) {
            return None;
        }
        let mut found = Array3::zeros((self.summaries.len(), n_classes, n_groups));
        for (sample, own) in self.summaries.iter().enumerate() {
            for (class, summary) in own {
                for (group, distribution) in summary.groups.iter().enumerate() {
                    found[(sample, *class, group)] = distribution.mean;
                }
            }
        }
        Some(found)
    }

    /// The mean over the predicted classes of the effective number of samples, and of the share of the listed ones.
    pub(super) fn concentration(&self, predicted: &[usize]) -> (f64, f64) {
        let n = self.summaries.len().max(1) as f64;
        let sum = |part: fn(&Summary) -> f64| self.of_class(predicted).map(part).sum::<f64>() / n;
        (sum(|summary| summary.effective), sum(|summary| summary.top_share))
    }

    /// The share of groups with samples, over all test samples, whose mean lies between the quartiles.
    pub(super) fn inside(&self, predicted: &[usize]) -> f64 {
        let groups = self.of_class(predicted).flat_map(|summary| &summary.groups).filter(|group| group.n > 0);
        let (mut inside, mut all) = (0_usize, 0_usize);
        for group in groups {
            inside += usize::from(group.mean_is_inside());
            all += 1;
        }
        inside as f64 / all.max(1) as f64
    }

    /// Per class, the mean attribution to each group over the samples that the network decides for that class.
    pub(super) fn by_group(&self, predicted: &[usize], n_classes: usize, n_groups: usize) -> Vec<Option<Vec<f64>>> {
        let mut sums = vec![(0_usize, vec![0.0; n_groups]); n_classes];
        for (summary, &class) in self.of_class(predicted).zip(predicted) {
            let (count, own) = &mut sums[class];
            *count += 1;
            own.iter_mut().zip(&summary.groups).for_each(|(sum, group)| *sum += group.mean);
        }
        let mean = |(count, own): (usize, Vec<f64>)| {
            (count > 0).then(|| own.into_iter().map(|sum| sum / count as f64).collect())
        };
        sums.into_iter().map(mean).collect()
    }
}

/// The statistics of a distribution, in the order in which they are written.
pub(super) const STATISTICS: [&str; 8] = ["n", "mean", "q1", "median", "q3", "low_whisker", "high_whisker", "n_fliers"];

fn statistics(found: &Distribution) -> [f64; 8] {
    let Distribution { n, mean, q1, median, q3, low_whisker, high_whisker, n_fliers } = *found;
    [n as f64, mean, q1, median, q3, low_whisker, high_whisker, n_fliers as f64]
}
