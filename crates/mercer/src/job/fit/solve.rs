//! The solver of every machine.

use super::findings::{SelectionFindings, SolutionFindings};
use super::machine::{Link, MachineSpec};
use crate::Error;
use crate::spec::Known;
use mercer_data::Classes;
use mercer_learn::classification::{BinaryLogistic, Glm, NearestCentre, NearestNeighbours, SgdGlm, Svm};
use mercer_learn::process::{ProcessClassification, ProcessRegression};
use mercer_learn::regression::{Decomposition, Filter, IterativeRidge, LeastSquares, Ridge};
use mercer_learn::selection::{Criterion, CrossValidation, Strongest};
use mercer_learn::{Classify, Fit, LearnError, LinearClassifier, Machine, SampleRows};
use mercer_run::Context;
use ndarray::{Array2, Axis};

/// A machine and its findings.
pub(super) struct Fitted {
    pub(super) machine: Machine,
    pub(super) solution: SolutionFindings,
}

/// The samples and labels of a fit.
pub(super) struct Lesson<'a> {
    pub(super) samples: SampleRows<'a>,
    pub(super) known: &'a Known,
    pub(super) seed: u64,
}

impl MachineSpec {
    /// Fits the machine.
    pub(super) fn fit(&self, lesson: &Lesson<'_>, context: &Context) -> Result<Fitted, Error> {
        let mut solution = SolutionFindings::default();
        let machine = match lesson.known {
            Known::Numbers(targets) => self.regression(lesson, targets, &mut solution, context)?,
            Known::Classes(classes) => self.classifier(lesson, classes, &mut solution, context)?,
        };
        let Some(machine) = machine else {
            let wanted = if self.name().is_classifier() { "classes" } else { "numbers" };
            return Err(Error::new(format!("{}: the labels must be {wanted}", self.name())));
        };
        Ok(Fitted { machine, solution })
    }

    /// Fits a regression; none for other machines.
    fn regression(
        &self,
        lesson: &Lesson<'_>,
        targets: &Array2<f64>,
        solution: &mut SolutionFindings,
        context: &Context,
    ) -> Result<Option<Machine>, LearnError> {
        let samples = &lesson.samples;
        Ok(Some(match self {
            Self::LeastSquares { cutoff } => {
                let method = LeastSquares::new();
                let method = cutoff.map_or(Ok(method.clone()), |cutoff| method.with_cutoff(cutoff))?;
                method.fit_within(samples, targets, context)?.into()
            }
            Self::Flow { time } => {
                let filter = Filter::Flow { time: time.unwrap_or(0.0) };
                Decomposition::new(samples)?.fit(&filter, targets.view())?.into()
            }
            Self::Process { noise_variance, centred, .. } => {
                let process = ProcessRegression::new(*noise_variance)?;
                let process = if *centred { process.centred() } else { process };
                let found = process.fit_within(samples, targets, context)?;
                solution.noise_variance = Some(found.noise());
                solution.log_marginal_likelihood = Some(found.log_likelihood());
                found.into()
            }
            Self::Ridge { penalty, rank, centred } => {
                let penalty = match penalty[..] {
                    [penalty] => penalty,
                    _ => {
                        let means = targets.mean_axis(Axis(0)).filter(|_| *centred);
                        let around = means.map_or_else(|| targets.clone(), |means| targets - &means);
                        let found = Decomposition::new(samples)?.best_penalty(penalty, around.view())?;
                        solution.selection = Some(SelectionFindings::leave_one_out(found.candidates));
                        found.value
                    }
                };
                solution.penalty = Some(penalty);
                if let Some(rank) = *rank {
                    let method = IterativeRidge::new(penalty, 1e-10)?.precondition(rank, lesson.seed);
                    let method = if *centred { method.centred() } else { method };
                    let found = method.fit_within(samples, targets, context)?;
                    (solution.iterations, solution.residual) = (Some(found.iterations), Some(found.residual));
                    return Ok(Some(found.machine.into()));
                }
                let ridge = Ridge::new(penalty)?;
                (if *centred { ridge.centred() } else { ridge }).fit_within(samples, targets, context)?.into()
            }
            _ => return Ok(None),
        }))
    }

    /// Fits a classifier; none for other machines.
    fn classifier(
        &self,
        lesson: &Lesson<'_>,
        classes: &Classes,
        solution: &mut SolutionFindings,
        context: &Context,
    ) -> Result<Option<Machine>, LearnError> {
        let samples = &lesson.samples;
        let choice = |values, folds, strongest| {
            let (samples, seed) = (&lesson.samples, lesson.seed);
            Choice { values, folds, strongest, samples, seed, classes, context }
        };
        let linear = match self {
            Self::Sgd { penalty, folds, link } => {
                let settings = |penalty: f64| {
                    let sgd = SgdGlm::new(lesson.seed).with_alpha(penalty)?;
                    Ok(if *link == Link::Softmax { sgd.softmax() } else { sgd })
                };
                choice(penalty, *folds, Strongest::Largest).fit(Criterion::LogLoss, settings, solution)?
            }
            Self::Logistic { penalty, folds } => {
                choice(penalty, *folds, Strongest::Largest).fit(Criterion::LogLoss, BinaryLogistic::new, solution)?
            }
            Self::Glm { penalty, folds, balanced } => {
                let settings = |penalty: f64| Glm::new(penalty).map(|glm| if *balanced { glm.balanced() } else { glm });
                choice(penalty, *folds, Strongest::Largest).fit(Criterion::LogLoss, settings, solution)?
            }
            Self::Svm { cost, folds } => {
                choice(cost, *folds, Strongest::Smallest).fit(Criterion::Accuracy, Svm::new, solution)?
            }
            Self::ProcessClassifier {} => {
                let found = ProcessClassification.fit_within(samples, classes, context)?;
                solution.log_marginal_likelihood = Some(found.log_likelihood());
                return Ok(Some(found.into()));
            }
            Self::Neighbours { neighbours, by } => {
                let method = NearestNeighbours::new(*neighbours)?.by(*by);
                solution.neighbours_by = Some(*by);
                return Ok(Some(method.fit_within(samples, classes, context)?.into()));
            }
            Self::Centres {} => return Ok(Some(NearestCentre.fit_within(samples, classes, context)?.into())),
            _ => return Ok(None),
        };
        let solved = linear.solved();
        (solution.objective, solution.iterations) = (Some(solved.objective), Some(solved.iterations));
        (solution.converged, solution.support_vectors) = (Some(solved.converged), solved.support_vectors);
        Ok(Some(linear.into()))
    }
}

/// A classifier whose strength is one value, or the best of several.
struct Choice<'a, 's> {
    values: &'a [f64],
    folds: usize,
    strongest: Strongest,
    samples: &'a SampleRows<'s>,
    seed: u64,
    classes: &'a Classes,
    context: &'a Context,
}

impl Choice<'_, '_> {
    fn fit<F>(
        self,
        criterion: Criterion,
        settings: impl Fn(f64) -> Result<F, LearnError>,
        solution: &mut SolutionFindings,
    ) -> Result<LinearClassifier, LearnError>
    where
        F: Fit<Classes, Machine = LinearClassifier>,
        F::Machine: Classify,
    {
        let Self { values, folds, strongest, samples, seed, classes, context } = self;
        let value = match values[..] {
            [value] => value,
            _ => {
                let method = CrossValidation { folds, criterion, seed };
                let found = method.choose((values, strongest), &settings, samples, classes, context)?;
                solution.selection = Some(SelectionFindings::cross_validation(folds, criterion, found.candidates));
                found.value
            }
        };
        match strongest {
            Strongest::Largest => solution.penalty = Some(value),
            Strongest::Smallest => solution.cost = Some(value),
        }
        settings(value)?.fit_within(samples, classes, context)
    }
}
