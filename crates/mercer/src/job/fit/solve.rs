//! The solver of every machine.

use super::machine::{Link, MachineSpec};
use crate::Error;
use crate::spec::Known;
use mercer_data::Classes;
use mercer_learn::classification::{BinaryLogistic, Glm, NearestCentre, NearestNeighbours, SgdGlm, Svm};
use mercer_learn::process::{ProcessClassification, ProcessRegression};
use mercer_learn::regression::{Decomposition, Filter, IterativeRidge, LeastSquares, Ridge};
use mercer_learn::{Fit, LearnError, Machine, Samples};
use mercer_run::Context;
use ndarray::Array2;

/// A machine, and what is good to know of how it was found.
pub(super) struct Fitted {
    pub(super) machine: Machine,
    /// Such as `alpha 0.1 by leave-one-out`.
    pub(super) details: Vec<String>,
}

/// What a machine learns from.
pub(super) struct Lesson<'a> {
    pub(super) samples: Samples<'a>,
    pub(super) known: &'a Known,
    pub(super) seed: u64,
}

impl MachineSpec {
    /// Learns.
    pub(super) fn fit(&self, lesson: &Lesson<'_>, context: &Context) -> Result<Fitted, Error> {
        let mut details = Vec::new();
        let machine = match lesson.known {
            Known::Numbers(targets) => self.regression(lesson, targets, &mut details, context)?,
            Known::Classes(classes) => self.classifier(lesson, classes, &mut details, context)?,
        };
        let Some(machine) = machine else {
            let wanted = if self.name().is_classifier() { "classes" } else { "numbers" };
            return Err(Error::new(format!("{}: the labels must be {wanted}", self.name())));
        };
        Ok(Fitted { machine, details })
    }

    /// Nothing for a machine that is no regression.
    fn regression(
        &self,
        lesson: &Lesson<'_>,
        targets: &Array2<f64>,
        details: &mut Vec<String>,
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
            Self::Process { noise, centred, .. } => {
                let process = ProcessRegression::new(*noise)?;
                let process = if *centred { process.centred() } else { process };
                let found = process.fit_within(samples, targets, context)?;
                details.push(format!("log marginal likelihood {:.6}", found.log_likelihood()));
                found.into()
            }
            Self::Ridge { alpha, rank, centred } => {
                let alpha = match alpha[..] {
                    [alpha] => alpha,
                    _ => {
                        let (best, error) = Decomposition::new(samples)?.best_alpha(alpha, targets.view())?;
                        details.push(format!("alpha {best} by leave-one-out, mean squared error {error:.6e}"));
                        best
                    }
                };
                if let Some(rank) = *rank {
                    let method = IterativeRidge::new(alpha, 1e-10)?.precondition(rank, lesson.seed);
                    let method = if *centred { method.centred() } else { method };
                    let found = method.fit_within(samples, targets, context)?;
                    details.push(format!("{} products, relative residual {:.1e}", found.iterations, found.residual));
                    return Ok(Some(found.machine.into()));
                }
                let ridge = Ridge::new(alpha)?;
                (if *centred { ridge.centred() } else { ridge }).fit_within(samples, targets, context)?.into()
            }
            _ => return Ok(None),
        }))
    }

    /// Nothing for a machine that is no classifier.
    fn classifier(
        &self,
        lesson: &Lesson<'_>,
        classes: &Classes,
        details: &mut Vec<String>,
        context: &Context,
    ) -> Result<Option<Machine>, LearnError> {
        let samples = &lesson.samples;
        let linear = match *self {
            Self::Sgd { alpha, link } => {
                let sgd = SgdGlm::new(lesson.seed).with_alpha(alpha)?;
                let sgd = if link == Link::Softmax { sgd.softmax() } else { sgd };
                sgd.fit_within(samples, classes, context)?
            }
            Self::Logistic { penalty } => BinaryLogistic::new(penalty)?.fit_within(samples, classes, context)?,
            Self::Svm { cost } => Svm::new(cost)?.fit_within(samples, classes, context)?,
            Self::Glm { penalty, balanced } => {
                let glm = Glm::new(penalty)?;
                (if balanced { glm.balanced() } else { glm }).fit_within(samples, classes, context)?
            }
            Self::ProcessClassifier {} => {
                let found = ProcessClassification.fit_within(samples, classes, context)?;
                details.push(format!("log marginal likelihood {:.6}", found.log_likelihood()));
                return Ok(Some(found.into()));
            }
            Self::Neighbours { neighbours, by } => {
                let method = NearestNeighbours::new(neighbours)?.by(by);
                details.push(format!("neighbours by {by}"));
                return Ok(Some(method.fit_within(samples, classes, context)?.into()));
            }
            Self::Centres {} => return Ok(Some(NearestCentre.fit_within(samples, classes, context)?.into())),
            _ => return Ok(None),
        };
        let solved = linear.solved();
        details.push(format!("objective {:.6} after {} iterations", solved.objective, solved.iterations));
        if !solved.converged {
            details.push("the solver stopped before its tolerance: this is the best it found".to_owned());
        }
        Ok(Some(linear.into()))
    }
}
