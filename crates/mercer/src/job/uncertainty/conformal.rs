//! Conformal sets and intervals: calibrated on validation samples that chose nothing, saved with the posterior.

use super::choice::Predictive;
use crate::Error;
use crate::csv::{Table, number};
use crate::job::folder::ResultFolder;
use crate::spec::Samples;
use mercer_data::random::stream;
use mercer_data::{Dataset, Labels};
use mercer_learn::conformal::{Conformal, Coverage, Score, least_samples};
use mercer_learn::laplace::Marginals;
use ndarray::{Array2, ArrayView2, Axis, stack};
use rand::seq::SliceRandom;
use serde::Serialize;

/// Samples with their labels.
#[derive(Debug)]
pub(super) struct Labelled {
    pub(super) inputs: Vec<Dataset>,
    pub(super) labels: Labels,
}

impl Labelled {
    pub(super) fn n_samples(&self) -> usize {
        self.labels.n_samples()
    }

    fn of(samples: &Samples, labels: &Labels, rows: &[usize]) -> Result<Self, Error> {
        let inputs = samples.inputs.iter().map(|input| input.subset(rows)).collect::<Result<_, _>>()?;
        Ok(Self { inputs, labels: labels.select(rows)? })
    }
}

/// What validation samples are for.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// Those that choose.
    pub(super) choosing: Option<Labelled>,
    /// Those that calibrate.
    pub(super) calibrating: Option<Labelled>,
}

impl Divided {
    /// All samples choose, unless sets are calibrated. Then half of them choose, if there is something to choose, and the
    /// other half calibrates: sets are valid only if their samples have not chosen what the sets are made from.
    pub(super) fn new(
        validation: Option<&Samples>,
        coverage: Option<f64>,
        is_choice: bool,
        seed: u64,
    ) -> Result<Self, Error> {
        let Some((samples, labels)) = validation.and_then(|samples| Some((samples, samples.labels.as_ref()?))) else {
            return Ok(Self::default());
        };
        let mut rows: Vec<usize> = (0..samples.n_samples).collect();
        let Some(coverage) = coverage else {
            let (inputs, labels) = (samples.inputs.clone(), labels.clone());
            return Ok(Self { choosing: Some(Labelled { inputs, labels }), calibrating: None });
        };
        let half = if is_choice { samples.n_samples / 2 } else { 0 };
        rows.shuffle(&mut stream(seed, "uncertainty/conformal"));
        let (choosing, calibrating) = rows.split_at_mut(half);
        choosing.sort_unstable();
        calibrating.sort_unstable();
        let least = least_samples(coverage)?;
        if calibrating.len() < least || (is_choice && choosing.is_empty()) {
            let whole = if is_choice { 2 * least } else { least };
            let text = format!("‹conformal› {coverage} takes at least {whole} samples in ‹validation›");
            return Err(Error::new(format!("{text}, and there are {}", samples.n_samples))
                .hint("a lower coverage, or more samples that the network was not trained on"));
        }
        let choosing = is_choice.then(|| Labelled::of(samples, labels, choosing)).transpose()?;
        Ok(Self { choosing, calibrating: Some(Labelled::of(samples, labels, calibrating)?) })
    }
}

/// The sets or intervals of some samples.
#[derive(Clone, Debug, PartialEq)]
pub enum Regions {
    /// Which classes are in the set of every sample.
    Sets(Array2<bool>),
    /// The ends of the interval of every output.
    Intervals {
        /// The lower ends.
        lower: Array2<f64>,
        /// The upper ends.
        upper: Array2<f64>,
    },
}

/// The findings for sets or intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionFindings {
    /// The coverage that was asked for.
    pub coverage: f64,
    /// How answers are scored: one minus the probability of a class, or the residual in standard deviations.
    pub score: Score,
    /// The number of samples that calibrated them.
    pub n_calibration: usize,
    /// The largest score in a set; one for every output of a regression.
    pub largest: Vec<f64>,
    /// The mean number of classes in a set, or the mean width of an interval.
    pub size: f64,
    /// The fraction of sets without a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<f64>,
    /// The fraction of sets with a single class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<f64>,
    /// How often they held the truth, if it is known.
    #[serde(flatten)]
    pub found: Option<Coverage>,
}

/// The standard deviations of what is observed: of the outputs, and of the noise around them.
fn deviation(variance: ArrayView2<'_, f64>, noise: f64) -> Array2<f64> {
    variance.mapv(|variance| (variance + noise * noise).sqrt())
}

/// Calibrates the sets of these predictions.
pub(super) fn calibrate(
    found: &Marginals,
    predictive: &Predictive,
    labels: &Labels,
    coverage: f64,
) -> Result<Conformal, Error> {
    Ok(match (found.noise(), labels) {
        (Some(noise), Labels::Targets(targets)) => {
            let deviation = deviation(found.variance.view(), noise);
            Conformal::of_numbers(found.mean.view(), deviation.view(), targets.view(), coverage)?
        }
        (None, Labels::Classes(classes)) => {
            Conformal::of_classes(predictive.probabilities(found).view(), classes.indices(), coverage)?
        }
        _ => return Err(Error::new("‹validation-labels›: they are of another kind than ‹labels›")),
    })
}

impl Regions {
    /// The sets of these probabilities.
    pub(super) fn of_classes(calibrated: &Conformal, probabilities: ArrayView2<'_, f64>) -> Result<Self, Error> {
        Ok(Self::Sets(calibrated.sets(probabilities)?))
    }

    /// The intervals around these means.
    pub(super) fn of_numbers(
        calibrated: &Conformal,
        (mean, variance, noise): (ArrayView2<'_, f64>, ArrayView2<'_, f64>, f64),
    ) -> Result<Self, Error> {
        let (lower, upper) = calibrated.intervals(mean, deviation(variance, noise).view())?;
        Ok(Self::Intervals { lower, upper })
    }

    /// The names of the tables.
    pub(crate) const FILES: [&'static str; 2] = [SETS, INTERVALS];

    /// The name of their table.
    pub(crate) fn file(&self) -> &'static str {
        match self {
            Self::Sets(_) => SETS,
            Self::Intervals { .. } => INTERVALS,
        }
    }

    /// A line per sample with its classes, or per sample and output with the ends of its interval.
    pub(crate) fn table(&self, names: Option<&[String]>) -> Table {
        match self {
            Self::Sets(sets) => {
                let mut table = Table::new(&["row", "size", "classes"]);
                let name = |class: usize| {
                    names.and_then(|names| names.get(class)).cloned().unwrap_or_else(|| class.to_string())
                };
                for (row, set) in sets.outer_iter().enumerate() {
                    let classes = set.iter().enumerate().filter(|(_, own)| **own).map(|(class, _)| name(class));
                    let classes: Vec<String> = classes.collect();
                    table.line(&[&row.to_string(), &classes.len().to_string(), &classes.join(";")]);
                }
                table
            }
            Self::Intervals { lower, upper } => {
                let mut table = Table::new(&["row", "output", "lower", "upper"]);
                for (((row, output), low), high) in lower.indexed_iter().zip(upper) {
                    table.line(&[&row.to_string(), &output.to_string(), &number(*low), &number(*high)]);
                }
                table
            }
        }
    }

    /// What is worth saying of them.
    pub(crate) fn findings(&self, calibrated: &Conformal, labels: Option<&Labels>) -> Result<RegionFindings, Error> {
        let (size, empty, single, found) = match self {
            Self::Sets(sets) => {
                let sizes: Vec<usize> = sets.outer_iter().map(|set| set.iter().filter(|own| **own).count()).collect();
                let samples = sizes.len().max(1) as f64;
                let of = |wanted: usize| sizes.iter().filter(|&&size| size == wanted).count() as f64 / samples;
                let found = match labels {
                    Some(Labels::Classes(classes)) => Some(Coverage::of_sets(sets.view(), classes.indices())?),
                    _ => None,
                };
                (sizes.iter().sum::<usize>() as f64 / samples, Some(of(0)), Some(of(1)), found)
            }
            Self::Intervals { lower, upper } => {
                let found = match labels {
                    Some(Labels::Targets(targets)) => {
                        Some(Coverage::of_intervals(lower.view(), upper.view(), targets.view())?)
                    }
                    _ => None,
                };
                ((upper - lower).mean().unwrap_or(0.0), None, None, found)
            }
        };
        Ok(RegionFindings {
            coverage: calibrated.coverage,
            score: calibrated.score,
            n_calibration: calibrated.n_samples,
            largest: calibrated.largest.clone(),
            size,
            empty,
            single,
            found,
        })
    }

    /// Writes them as a table and as an array: a one for every class of a set, or `[samples, outputs, 2]`. Returns the names.
    pub(super) fn write(&self, folder: &ResultFolder, names: Option<&[String]>) -> Result<[String; 2], Error> {
        folder.file(self.file(), self.table(names).as_bytes())?;
        let array = match self {
            Self::Sets(sets) => {
                folder.array(SETS_ARRAY, &sets.mapv(u8::from))?;
                SETS_ARRAY
            }
            Self::Intervals { lower, upper } => {
                let ends = stack(Axis(2), &[lower.view(), upper.view()]);
                folder.array(INTERVALS_ARRAY, &ends.map_err(|error| Error::new(error.to_string()))?)?;
                INTERVALS_ARRAY
            }
        };
        Ok([self.file().to_owned(), array.to_owned()])
    }
}

/// The files of this part.
pub(super) const SETS: &str = "sets.csv";
pub(super) const SETS_ARRAY: &str = "sets.npy";
pub(super) const INTERVALS: &str = "intervals.csv";
pub(super) const INTERVALS_ARRAY: &str = "intervals.npy";
