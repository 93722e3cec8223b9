//! Split conformal prediction: sets of classes and intervals that hold the truth with a chosen probability.
//!
//! Samples that chose nothing about the predictions are scored by how badly they were predicted. With `n` of them,
//!
//! ```text
//! q = the ⌈(n + 1)·coverage⌉-th smallest score,     set of x = every answer whose score is at most q
//! ```
//!
//! holds the truth of another sample of the same kind with probability between `coverage` and `coverage + 1/(n + 1)`, for any
//! network and any posterior (Vovk, Gammerman and Shafer 2005; Papadopoulos et al. 2002; Lei et al. 2018, arXiv 1604.04173;
//! the upper end needs scores without ties). The probability is over both the samples that calibrate and the new one, and a
//! mean over all kinds of samples: rare ones may be covered less.
//!
//! - Classes: the score of a class is one minus its probability (Sadinle, Lei and Wasserman 2019, arXiv 1609.00451), which
//!   gives the smallest sets on average. A set is empty where every class is less probable than the true ones usually are.
//! - Numbers: the score is `|y − f(x)|/s(x)` with the standard deviation `s(x)` of the prediction, so an interval is
//!   `f(x) ± q·s(x)`. Every output has its own `q`, and its own coverage.
//!
//! ```
//! use mercer_learn::conformal::Conformal;
//! use ndarray::array;
//!
//! let p = array![[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]];
//! let calibrated = Conformal::of_classes(p.view(), &[0, 1, 0, 1], 0.8)?;
//! assert_eq!(calibrated.sets(array![[0.95, 0.05], [0.5, 0.5]].view())?, array![[true, false], [true, true]]);
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

use crate::error::{LearnError, Result, check_size, setting};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// Whole ranks are found through rounding of this size.
const ROUNDING: f64 = 1e-9;

/// What was calibrated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conformal {
    /// The chosen probability.
    pub coverage: f64,
    /// The number of samples that calibrated it.
    pub n_samples: usize,
    /// How answers are scored.
    pub score: Score,
    /// The largest score in a set: one of all classes, or one for every output of a regression.
    pub largest: Vec<f64>,
}

/// How answers are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// One minus the probability of a class.
    Probability,
    /// The distance from the mean, in standard deviations.
    Residual,
}

/// The fewest samples that can calibrate a coverage: with fewer, every set would hold everything.
///
/// # Errors
/// For a coverage that is not between zero and one.
pub fn least_samples(coverage: f64) -> Result<usize> {
    if !(coverage > 0.0 && coverage < 1.0) {
        return Err(setting("the coverage", coverage, "must be between 0 and 1"));
    }
    Ok((coverage / (1.0 - coverage) - ROUNDING).ceil().max(1.0) as usize)
}

impl Conformal {
    /// Calibrates sets of classes by samples that chose nothing about these probabilities.
    ///
    /// # Errors
    /// For a coverage that is not between zero and one, too few samples, and classes that do not exist.
    pub fn of_classes(probabilities: ArrayView2<'_, f64>, classes: &[usize], coverage: f64) -> Result<Self> {
        let (n_samples, n_classes) = probabilities.dim();
        check_size("the number of labels", n_samples, classes.len())?;
        if let Some(row) = classes.iter().position(|&class| class >= n_classes) {
            return Err(LearnError::Class { row, class: classes[row], n_classes });
        }
        let scores = classes.iter().enumerate().map(|(row, &class)| 1.0 - probabilities[(row, class)]).collect();
        let largest = vec![quantile(scores, coverage)?];
        Ok(Self { coverage, n_samples, score: Score::Probability, largest })
    }

    /// Calibrates intervals by samples that chose nothing about these means and deviations.
    ///
    /// # Errors
    /// For a coverage that is not between zero and one, too few samples, and deviations that are not positive.
    pub fn of_numbers(
        mean: ArrayView2<'_, f64>,
        deviation: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        coverage: f64,
    ) -> Result<Self> {
        check_size("the number of targets", mean.nrows(), targets.nrows())?;
        check_size("the number of targets per sample", mean.ncols(), targets.ncols())?;
        check_size("the number of deviations", mean.len(), deviation.len())?;
        if !deviation.iter().all(|&s| s.is_finite() && s > 0.0) {
            return Err(LearnError::NotFinite { what: "deviations" });
        }
        let of_output = |output: usize| {
            let columns = (mean.column(output), deviation.column(output), targets.column(output));
            let rows = columns.0.iter().zip(columns.1).zip(columns.2);
            quantile(rows.map(|((mean, deviation), target)| (target - mean).abs() / deviation).collect(), coverage)
        };
        let largest = (0..mean.ncols()).map(of_output).collect::<Result<_>>()?;
        Ok(Self { coverage, n_samples: mean.nrows(), score: Score::Residual, largest })
    }

    /// Which classes are in the set of every sample.
    ///
    /// # Errors
    /// If intervals were calibrated.
    pub fn sets(&self, probabilities: ArrayView2<'_, f64>) -> Result<Array2<bool>> {
        match (self.score, &self.largest[..]) {
            (Score::Probability, &[largest]) => Ok(probabilities.mapv(|p| 1.0 - p <= largest)),
            _ => Err(setting("the conformal score", "residual", "sets of classes were not calibrated")),
        }
    }

    /// The lower and the upper end of every interval.
    ///
    /// # Errors
    /// If sets of classes were calibrated, or for another number of outputs.
    pub fn intervals(
        &self,
        mean: ArrayView2<'_, f64>,
        deviation: ArrayView2<'_, f64>,
    ) -> Result<(Array2<f64>, Array2<f64>)> {
        if self.score != Score::Residual {
            return Err(setting("the conformal score", "probability", "intervals were not calibrated"));
        }
        check_size("the number of outputs", self.largest.len(), mean.ncols())?;
        let half = &deviation * &Array1::from(self.largest.clone());
        Ok((&mean - &half, &mean + &half))
    }
}

/// The score that bounds a set.
fn quantile(mut scores: Vec<f64>, coverage: f64) -> Result<f64> {
    let least = least_samples(coverage)?;
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(LearnError::NotFinite { what: "scores of calibration samples" });
    }
    let rank = ((scores.len() + 1) as f64 * coverage - ROUNDING).ceil().max(1.0) as usize;
    if rank > scores.len() {
        let reason = "there are fewer samples than this coverage needs";
        return Err(setting("the number of samples that calibrate", format!("{} of {least}", scores.len()), reason));
    }
    scores.sort_by(f64::total_cmp);
    Ok(scores[rank - 1])
}

/// How often sets held the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The fraction of the samples whose set held it.
    pub covered: f64,
    /// The standard error of that fraction, that of a binomial distribution.
    pub standard_error: f64,
}

impl Coverage {
    /// Of sets of classes.
    ///
    /// # Errors
    /// For no samples, and classes that do not exist.
    pub fn of_sets(sets: ArrayView2<'_, bool>, classes: &[usize]) -> Result<Self> {
        check_size("the number of labels", sets.nrows(), classes.len())?;
        if let Some(row) = classes.iter().position(|&class| class >= sets.ncols()) {
            return Err(LearnError::Class { row, class: classes[row], n_classes: sets.ncols() });
        }
        Self::of(classes.iter().zip(sets.outer_iter()).map(|(&class, set)| set[class]))
    }

    /// Of intervals, every output of every sample by itself.
    ///
    /// # Errors
    /// For no samples, and another number of targets.
    pub fn of_intervals(
        lower: ArrayView2<'_, f64>,
        upper: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
    ) -> Result<Self> {
        check_size("the number of targets", lower.len(), targets.len())?;
        let samples = targets.len_of(Axis(0)).max(1);
        let all = lower.iter().zip(&upper).zip(&targets).map(|((low, high), y)| (low..=high).contains(&y));
        let found = Self::of(all)?;
        // Outputs of one sample are not independent of each other.
        Ok(Self { standard_error: error(found.covered, samples), ..found })
    }

    fn of(held: impl Iterator<Item = bool>) -> Result<Self> {
        let (mut samples, mut covered) = (0_usize, 0_usize);
        for held in held {
            samples += 1;
            covered += usize::from(held);
        }
        if samples == 0 {
            return Err(LearnError::Empty { what: "a coverage" });
        }
        let covered = covered as f64 / samples as f64;
        Ok(Self { covered, standard_error: error(covered, samples) })
    }
}

fn error(covered: f64, samples: usize) -> f64 {
    (covered * (1.0 - covered) / samples as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::softmax;
    use mercer_data::random::stream;
    use ndarray::{array, s};
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn ranks_are_those_of_the_definition() {
        let scores = |n: usize| (1..=n).rev().map(|at| at as f64).collect::<Vec<_>>();
        // ⌈(9 + 1)·0.9⌉ = 9, ⌈(19 + 1)·0.9⌉ = 18, ⌈(10 + 1)·0.5⌉ = 6.
        for (n, coverage, rank) in [(9, 0.9, 9.0), (19, 0.9, 18.0), (10, 0.5, 6.0), (99, 0.99, 99.0), (1, 0.1, 1.0)] {
            assert_eq!(quantile(scores(n), coverage).unwrap(), rank, "{n} {coverage}");
        }
        for coverage in [0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999] {
            let least = least_samples(coverage).unwrap();
            assert!(quantile(scores(least), coverage).is_ok(), "{coverage}");
            assert!(least == 1 || quantile(scores(least - 1), coverage).is_err(), "{coverage}");
        }
        for coverage in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(quantile(scores(50), coverage).is_err() && least_samples(coverage).is_err());
        }
        assert!(quantile(vec![f64::NAN; 50], 0.5).is_err());
    }

    /// The probability is over calibration and test: the mean over many of both is within two standard errors of the chosen
    /// coverage, or of what the finite number of samples adds to it.
    #[test]
    fn the_truth_is_covered_as_often_as_promised() {
        let mut random = stream(5, "conformal/test");
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let (runs, n, tests) = (2000, 59, 20);
        for coverage in [0.5, 0.9] {
            let (mut classes, mut numbers) = (Vec::new(), Vec::new());
            for _ in 0..runs {
                // Probabilities that are far too sure, and classes that are drawn from others.
                let logits = Array2::from_shape_simple_fn((n + tests, 4), &mut normal);
                let p = softmax((&logits * 3.0).view());
                let drawn = |row: usize, noise: [f64; 4]| {
                    let score = |class: usize| logits[(row, class)] + noise[class];
                    (0..4).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap()
                };
                let truth: Vec<usize> =
                    (0..n + tests).map(|row| drawn(row, [normal(), normal(), normal(), normal()])).collect();
                let found = Conformal::of_classes(p.slice(s![..n, ..]), &truth[..n], coverage).unwrap();
                let sets = found.sets(p.slice(s![n.., ..])).unwrap();
                classes.push(Coverage::of_sets(sets.view(), &truth[n..]).unwrap().covered);
                // Deviations that are wrong, and noise with heavy tails.
                let mean = Array2::from_shape_simple_fn((n + tests, 1), &mut normal);
                let deviation = mean.mapv(|x: f64| 0.1 + x.abs());
                let y = mean.mapv(|x| x + normal() / normal().abs());
                let (own, new) = (s![..n, ..], s![n.., ..]);
                let found =
                    Conformal::of_numbers(mean.slice(own), deviation.slice(own), y.slice(own), coverage).unwrap();
                let (low, high) = found.intervals(mean.slice(new), deviation.slice(new)).unwrap();
                numbers.push(Coverage::of_intervals(low.view(), high.view(), y.slice(new)).unwrap().covered);
            }
            // The exact probability, ⌈(n + 1)·coverage⌉/(n + 1), is the chosen one here.
            for covered in [classes, numbers] {
                let mean = covered.iter().sum::<f64>() / runs as f64;
                let variance = covered.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / runs as f64;
                let error = (variance / runs as f64).sqrt();
                assert!((mean - coverage).abs() < 2.0 * error, "{mean} ± {error} instead of {coverage}");
            }
        }
    }

    #[test]
    fn sets_and_intervals_of_small_cases() {
        let p = array![[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]];
        let found = Conformal::of_classes(p.view(), &[0, 1, 0, 1], 0.5).unwrap();
        // Scores 0.1, 0.2, 0.3, 0.6; the third smallest.
        assert!((found.largest[0] - 0.3).abs() < 1e-15);
        let sets = found.sets(array![[0.71, 0.29], [0.5, 0.5]].view()).unwrap();
        assert_eq!(sets, array![[true, false], [false, false]]);
        let coverage = Coverage::of_sets(sets.view(), &[0, 1]).unwrap();
        assert_eq!(coverage, Coverage { covered: 0.5, standard_error: (0.25_f64 / 2.0).sqrt() });
        assert!(found.intervals(p.view(), p.view()).is_err());
        assert!(Coverage::of_sets(sets.view(), &[0, 2]).is_err() && Coverage::of_sets(sets.view(), &[0]).is_err());
        assert!(Conformal::of_classes(p.view(), &[0, 1, 0, 2], 0.5).is_err());
        assert!(Conformal::of_classes(p.view(), &[0, 1, 0, 1], 0.9).is_err());

        let (mean, deviation) =
            (array![[0.0, 5.0], [0.0, 5.0], [0.0, 5.0]], array![[1.0, 2.0], [2.0, 2.0], [4.0, 2.0]]);
        let targets = array![[1.0, 6.0], [-4.0, 5.0], [12.0, 1.0]];
        let found = Conformal::of_numbers(mean.view(), deviation.view(), targets.view(), 0.5).unwrap();
        assert_eq!(found.largest, [2.0, 0.5]);
        let (low, high) = found.intervals(mean.view(), deviation.view()).unwrap();
        assert_eq!((low.row(1).to_vec(), high.row(1).to_vec()), (vec![-4.0, 4.0], vec![4.0, 6.0]));
        let covered = Coverage::of_intervals(low.view(), high.view(), targets.view()).unwrap();
        assert!((covered.covered - 4.0 / 6.0).abs() < 1e-15, "{covered:?}");
        let nothing = Array2::zeros((3, 2));
        assert!(Conformal::of_numbers(mean.view(), nothing.view(), targets.view(), 0.5).is_err());
        assert!(found.sets(p.view()).is_err() && found.intervals(mean.slice(s![.., ..1]), deviation.view()).is_err());
    }
}
