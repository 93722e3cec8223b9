//! The value of a setting by cross-validation.
//!
//! The training samples are dealt into folds that have nearly the same share of every class. For each value a machine is fitted on all
//! folds but one and scored on that one; every sample is held out once, and the score of a value is the mean over all samples. Of equal
//! scores the value with the stronger penalty wins.
//!
//! ```
//! use mercer_data::Classes;
//! use mercer_learn::selection::stratified;
//!
//! let labels = Classes::new(vec![0, 0, 0, 0, 1, 1], 2)?;
//! let folds = stratified(&labels, 2, 0)?;
//! let in_first = (0..6).filter(|&row| folds[row] == 0);
//! assert_eq!(in_first.map(|row| labels.indices()[row]).collect::<Vec<_>>(), [0, 0, 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::classes::ClassSet;
use crate::error::{LearnError, Result, check_size, setting};
use crate::metrics::{accuracy, negative_log_likelihood};
use crate::samples::SampleRows;
use crate::traits::{Classify, Fit};
use mercer_data::random::stream;
use mercer_data::{Classes, Labels};
use mercer_run::Context;
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use serde::Serialize;

/// What a machine is scored by on the samples held out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The mean of `−ln p` of the true classes; less is better.
    LogLoss,
    /// The share of right decisions; more is better.
    Accuracy,
}

mercer_run::named! {
    Criterion, "criterion":
    LogLoss = "log-loss", "Mean negative log-probability of the true class";
    Accuracy = "accuracy", "Share of correct decisions";
}

/// Which end of the values is the stronger penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strongest {
    /// Large values, as of a penalty.
    Largest,
    /// Small values, as of a cost.
    Smallest,
}

/// A value that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The value.
    pub value: f64,
    /// Its score on samples that were held out.
    pub score: f64,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// The best value.
    pub value: f64,
    /// All values that were tried, ascending.
    pub candidates: Vec<Candidate>,
}

/// Cross-validation of classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossValidation {
    /// How many folds.
    pub folds: usize,
    /// What decides.
    pub criterion: Criterion,
    /// Of the folds.
    pub seed: u64,
}

impl CrossValidation {
    /// Tries all values; their order does not matter.
    ///
    /// # Errors
    /// If there is no value, for folds that [`stratified`] refuses, and for every error of a fit.
    pub fn choose<F>(
        &self,
        (values, strongest): (&[f64], Strongest),
        settings: impl Fn(f64) -> Result<F>,
        samples: &SampleRows<'_>,
        labels: &Classes,
        context: &Context,
    ) -> Result<Selected>
    where
        F: Fit<Classes>,
        F::Machine: Classify,
    {
        samples.check_for_fit()?;
        check_size("the number of labels", samples.n_samples(), labels.indices().len())?;
        let values = ascending(values);
        let machines = values.iter().map(|&value| settings(value)).collect::<Result<Vec<F>>>()?;
        let fold_of = stratified(labels, self.folds, self.seed)?;
        let mut sums = vec![0.0; values.len()];
        for fold in 0..self.folds {
            let (held, kept): (Vec<usize>, Vec<usize>) = (0..fold_of.len()).partition(|&row| fold_of[row] == fold);
            let split = Split::new(samples, labels, &kept, &held)?;
            for (machine, sum) in machines.iter().zip(&mut sums) {
                context.check()?;
                *sum += split.score(machine, self.criterion, context)? * held.len() as f64;
            }
        }
        let scored = |(&value, sum): (&f64, f64)| Candidate { value, score: sum / fold_of.len() as f64 };
        let candidates: Vec<Candidate> = values.iter().zip(sums).map(scored).collect();
        match self.criterion {
            Criterion::LogLoss => Selected::best(candidates, strongest, |a, b| a < b),
            Criterion::Accuracy => Selected::best(candidates, strongest, |a, b| a > b),
        }
    }
}

impl Selected {
    /// The value of least error.
    pub(crate) fn least(values: &[f64], strongest: Strongest, error: impl Fn(f64) -> Result<f64>) -> Result<Self> {
        let tried = ascending(values).into_iter().map(|value| Ok(Candidate { value, score: error(value)? }));
        Self::best(tried.collect::<Result<_>>()?, strongest, |a, b| a < b)
    }

    /// Of ascending candidates the best; of equal ones that with the strongest penalty.
    fn best(candidates: Vec<Candidate>, strongest: Strongest, better: fn(f64, f64) -> bool) -> Result<Self> {
        let first_of_the_best = |best: Option<Candidate>, next: &Candidate| match best {
            Some(best) if !better(next.score, best.score) => Some(best),
            _ => Some(*next),
        };
        let best = match strongest {
            Strongest::Largest => candidates.iter().rev().fold(None, first_of_the_best),
            Strongest::Smallest => candidates.iter().fold(None, first_of_the_best),
        };
        match best {
            Some(best) => Ok(Self { value: best.value, candidates }),
            None => Err(setting("the list of values", "empty", "there must be one at least")),
        }
    }
}

/// Each value once.
fn ascending(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Samples to learn from, and samples to judge by.
struct Split {
    gram: bool,
    learnt: (Array2<f64>, Classes),
    held: (Array2<f64>, Classes),
}

impl Split {
    fn new(samples: &SampleRows<'_>, labels: &Classes, kept: &[usize], held: &[usize]) -> Result<Self> {
        let (learnt, other, gram) = match samples {
            SampleRows::Features(rows) => (rows.select(Axis(0), kept), rows.select(Axis(0), held), false),
            SampleRows::Gram(gram) => {
                let columns = gram.select(Axis(1), kept);
                (columns.select(Axis(0), kept), columns.select(Axis(0), held), true)
            }
        };
        let labels = Labels::Classes(labels.clone());
        let select = |rows: &[usize]| match labels.select(rows)? {
            Labels::Classes(classes) => Ok(classes),
            Labels::Targets(_) => Err(LearnError::Empty { what: "cross-validation" }),
        };
        Ok(Self { gram, learnt: (learnt, select(kept)?), held: (other, select(held)?) })
    }

    fn samples<'a>(&self, rows: &'a Array2<f64>) -> SampleRows<'a> {
        if self.gram { SampleRows::Gram(rows.view()) } else { SampleRows::Features(rows.view()) }
    }

    fn score<F>(&self, settings: &F, criterion: Criterion, context: &Context) -> Result<f64>
    where
        F: Fit<Classes>,
        F::Machine: Classify,
    {
        let machine = settings.fit_within(&self.samples(&self.learnt.0), &self.learnt.1, context)?;
        let (held, truth) = (self.samples(&self.held.0), self.held.1.indices());
        match criterion {
            Criterion::LogLoss => negative_log_likelihood(machine.probabilities(&held)?.view(), truth),
            Criterion::Accuracy => accuracy(&machine.decide(&held)?, truth),
        }
    }
}

/// The fold of every sample: each class is shuffled and dealt in turn, so that all folds have nearly the same number of its samples, and of
/// all samples.
///
/// # Errors
/// For fewer than two folds, for more folds than samples, and for a class with a single sample, which would be unknown when it is
/// held out.
pub fn stratified(labels: &Classes, folds: usize, seed: u64) -> Result<Vec<usize>> {
    let n_samples = labels.indices().len();
    let (classes, _) = ClassSet::for_boundary(labels, n_samples)?;
    if folds < 2 || folds > n_samples {
        return Err(setting(
            "the number of folds",
            folds,
            "it must be two at least, and at most the number of samples",
        ));
    }
    let mut fold_of = vec![0; n_samples];
    let mut next = 0;
    for &class in classes.present() {
        let mut members: Vec<usize> = (0..n_samples).filter(|&row| labels.indices()[row] == class).collect();
        if members.len() < 2 {
            let (name, count) = (labels.names()[class].clone(), members.len());
            return Err(LearnError::TooFew { class: name, count, needed: 2, what: "cross-validation" });
        }
        members.shuffle(&mut stream(seed, &format!("folds/class {class}")));
        for row in members {
            fold_of[row] = next;
            next = (next + 1) % folds;
        }
    }
    Ok(fold_of)
}
