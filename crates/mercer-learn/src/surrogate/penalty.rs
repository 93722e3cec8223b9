//! The penalty of the multinomial model by cross-validation, along a path from strong to weak.
//!
//! The score of a penalty is the mean of `−Σ_c t_c·ln p_c` over samples that were held out. Folds are stratified by the
//! most likely class. Each fit starts where the fit of the next stronger penalty ended.
//!
//! A fit on `n` of the `N` samples takes another penalty, so that it regularises as much as the chosen penalty will with
//! all samples. Eigenvalues of `K` are proportional to the number of samples, and a direction with the eigenvalue `μ` is
//! shrunk by `μ/(μ + λ)` with the norm of the function, by `μ²/(μ² + λ)` with that of the weights. Therefore
//!
//! ```text
//! function: λₙ = λ·n/N        weights: λₙ = λ·(n/N)²
//! ```

use super::glm::DualGlm;
use super::machine::PenaltyNorm;
use super::newton::{Leading, Space};
use super::rows::{DualRows, Owned};
use super::targets::{leading, probabilities};
use crate::error::{LearnError, Result, check_positive, setting};
use crate::selection::{Candidate, Selected, Strongest, stratified};
use crate::softmax::log_softmax;
use mercer_data::Classes;
use mercer_data::random::stream;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;

/// Cross-validation of the penalty of a [`DualGlm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltyChoice {
    /// How many folds.
    pub folds: usize,
    /// Of the folds and of the subset.
    pub seed: u64,
    /// At most this many samples are used: of more, a stratified subset.
    pub most_samples: usize,
}

impl PenaltyChoice {
    /// Tries all penalties, whose order does not matter; of equal scores the largest wins. The penalty of the settings
    /// does not matter.
    ///
    /// # Errors
    /// For penalties that are not positive, folds that [`stratified`] refuses, and every error of a fit.
    pub fn choose<'a>(
        &self,
        penalties: &[f64],
        settings: &DualGlm,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Selected> {
        let rows = rows.into();
        rows.check_for_fit()?;
        let targets = probabilities(targets, rows.n_samples())?;
        let mut values = penalties.to_vec();
        values.iter().try_for_each(|&value| check_positive("the penalty", value).map(|_| ()))?;
        values.sort_by(|a, b| b.total_cmp(a));
        values.dedup();
        if values.is_empty() {
            return Err(setting("the list of penalties", "empty", "there must be one at least"));
        }
        let chosen = subset(&leading(targets.view()), targets.ncols(), self.most_samples, self.seed);
        let labels: Vec<usize> = leading(targets.select(Axis(0), &chosen).view());
        let fold_of = stratified(&Classes::new(labels, targets.ncols())?, self.folds, self.seed)?;
        let mut sums = vec![0.0; values.len()];
        for fold in 0..self.folds {
            context.report(fold, self.folds, "folds");
            let pick = |own: bool| {
                let rows = chosen.iter().zip(&fold_of).filter(|(_, of)| (**of == fold) == own);
                rows.map(|(row, _)| *row).collect::<Vec<usize>>()
            };
            let (kept, held) = (pick(false), pick(true));
            let split = Split {
                learnt: rows.select(&kept, &kept),
                judged: rows.select(&held, &kept),
                targets: targets.select(Axis(0), &kept),
                truth: targets.select(Axis(0), &held),
                share: kept.len() as f64 / rows.n_samples() as f64,
            };
            let losses = context.install(|| split.losses(&values, settings, context))?;
            sums.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        }
        let scored = |(&value, sum): (&f64, &f64)| Candidate { value, score: sum / chosen.len() as f64 };
        let candidates: Vec<Candidate> = values.iter().zip(&sums).map(scored).collect();
        Selected::least(&values, Strongest::Largest, |value| {
            let found = candidates.iter().find(|candidate| candidate.value == value);
            found.map(|candidate| candidate.score).ok_or(LearnError::Empty { what: "candidates" })
        })
    }
}

/// Samples to learn from, and samples to judge by.
struct Split {
    learnt: Owned,
    judged: Owned,
    targets: Array2<f64>,
    truth: Array2<f64>,
    /// The part of all samples that is learnt from.
    share: f64,
}

impl Split {
    /// The sum of the losses of the samples held out, for descending penalties.
    fn losses(&self, penalties: &[f64], settings: &DualGlm, context: &Context) -> Result<Vec<f64>> {
        let space = Space { rows: self.learnt.view(), norm: settings.norm };
        let scale = rescaled(settings.norm, self.share);
        let leading = Leading::new(&space, self.targets.ncols(), context)?;
        let mut from = None;
        let mut losses = Vec::new();
        for penalty in penalties {
            let settings = settings.with_penalty(penalty * scale)?;
            let ended = settings.solve(space, &self.targets, leading.as_ref(), from, context)?;
            from = Some(ended.place.clone());
            let machine = settings.machine(ended)?;
            let scores = machine.scores_of(&space.rows, &self.judged.view())?;
            // Where the truth excludes a class, its probability does not matter.
            let shares = log_softmax(scores.view());
            let loss = self.truth.iter().zip(&shares).filter(|(t, _)| **t > 0.0).map(|(t, log)| -t * log).sum();
            losses.push(loss);
        }
        Ok(losses)
    }
}

/// A stratified subset, ascending; two samples of every class at least, as long as it has them.
fn subset(labels: &[usize], n_classes: usize, most: usize, seed: u64) -> Vec<usize> {
    if labels.len() <= most {
        return (0..labels.len()).collect();
    }
    let mut chosen = Vec::new();
    for class in 0..n_classes {
        let mut members: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == class).collect();
        members.shuffle(&mut stream(seed, &format!("subset/class {class}")));
        let share = (members.len() as f64 * most as f64 / labels.len() as f64).round() as usize;
        chosen.extend(members.iter().take(share.max(2)));
    }
    chosen.sort_unstable();
    chosen
}

impl PenaltyChoice {
    /// The scores of every sample by a machine that was not fitted on it, with the penalty of the settings.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn held_out<'a>(
        &self,
        settings: &DualGlm,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Array2<f64>> {
        let rows = rows.into();
        rows.check_for_fit()?;
        let targets = probabilities(targets, rows.n_samples())?;
        let labels = leading(targets.view());
        let fold_of = stratified(&Classes::new(labels, targets.ncols())?, self.folds, self.seed)?;
        let mut scores = Array2::zeros(targets.dim());
        for fold in 0..self.folds {
            context.report(fold, self.folds, "folds");
            let (held, kept): (Vec<usize>, Vec<usize>) = (0..fold_of.len()).partition(|&row| fold_of[row] == fold);
            let (learnt, judged) = (rows.select(&kept, &kept), rows.select(&held, &kept));
            let scale = rescaled(settings.norm, kept.len() as f64 / rows.n_samples() as f64);
            let settings = settings.with_penalty(settings.penalty * scale)?;
            let machine = settings.fit(learnt.view(), targets.select(Axis(0), &kept).view(), context)?;
            let own = context.install(|| machine.scores_of(&learnt.view(), &judged.view()))?;
            held.iter().zip(own.outer_iter()).for_each(|(&row, own)| scores.row_mut(row).assign(&own));
        }
        Ok(scores)
    }
}

/// By how much a penalty changes for a share of the samples.
fn rescaled(norm: PenaltyNorm, share: f64) -> f64 {
    match norm {
        PenaltyNorm::Function => share,
        PenaltyNorm::Weights => share * share,
    }
}
