//! Fitting a surrogate.

use super::rows::KernelRows;
use super::settings::{FitTo, SurrogateMachine, SurrogateSpec};
use crate::Error;
use crate::job::fit::SelectionFindings;
use mercer_data::Classes;
use mercer_kernel::Real;
use mercer_learn::classification::{By, NearestNeighbours, SgdGlm};
use mercer_learn::selection::{Criterion, CrossValidation, Strongest};
use mercer_learn::surrogate::{DualGlm, DualMachine, DualRidge, DualRows, PenaltyChoice, PenaltyNorm, one_hot};
use mercer_learn::{ClassSet, Fit, Machine, SampleRows, ScoreLink, softmax};
use mercer_lens::neighbours::{Neighbour, largest};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// Samples among which a penalty is chosen, if there are more. Five folds of eight penalties take seconds on this many,
/// and would take hours on a hundred thousand.
pub(crate) const CHOSEN_AMONG: usize = 2_000;

/// The tolerance and the steps with which penalties are compared. Their losses differ by far more.
pub(crate) const ROUGH: f64 = 1e-4;
pub(crate) const ROUGH_STEPS: usize = 30;

/// How a surrogate was fitted. Fields that do not apply to a machine are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fitted {
    pub(crate) penalty: Option<f64>,
    pub(crate) norm: Option<PenaltyNorm>,
    pub(crate) selection: Option<SelectionFindings>,
    pub(crate) iterations: Option<usize>,
    pub(crate) converged: Option<bool>,
}

/// A fitted surrogate.
#[derive(Clone, Debug)]
pub(crate) struct Surrogate {
    pub(crate) form: SurrogateForm,
    pub(crate) n_classes: usize,
    /// In the form that is saved and predicts from kernel rows.
    pub(crate) machine: Machine,
}

/// How a surrogate gets its scores from kernel values.
#[derive(Clone, Debug)]
pub(crate) enum SurrogateForm {
    /// `Σᵢ W_{ic} κ(x, xᵢ) + b_c`; the weights have a row per class.
    Dual { weights: Array2<f64>, bias: Array1<f64> },
    /// The share of each class among the samples with the largest `κ(x, xᵢ)`.
    Votes { count: usize, labels: Vec<usize> },
}

impl SurrogateForm {
    /// From a matrix with a row per training sample.
    pub(crate) fn dual(weights: ArrayView2<'_, f64>, bias: ArrayView1<'_, f64>) -> Self {
        Self::Dual { weights: weights.t().as_standard_layout().into_owned(), bias: bias.to_owned() }
    }
}

impl Surrogate {
    fn from_dual(machine: DualMachine, classes: &ClassSet) -> Result<Self, Error> {
        let form = SurrogateForm::dual(machine.weights().view(), machine.bias().view());
        let machine = machine.into_classifier(classes.clone(), ScoreLink::Softmax)?.into();
        Ok(Self { form, n_classes: classes.names().len(), machine })
    }
}

impl SurrogateSpec {
    /// Fits the machine to kernel rows of the training samples. `network` are the scores of the network on them.
    pub(crate) fn fit<T: Real>(
        &self,
        rows: &KernelRows<T>,
        labels: &Classes,
        network: Option<ArrayView2<'_, f64>>,
        seed: u64,
        context: &Context,
    ) -> Result<(Surrogate, Fitted), Error> {
        let _phase = context.phase("fitting");
        let (classes, one_hot) = one_hot(labels)?;
        let own = network.filter(|_| self.to == FitTo::Network);
        match self.machine {
            SurrogateMachine::Glm => {
                let targets = own.map_or(one_hot, softmax);
                let diagonal = rows.mean_diagonal()?;
                let fit = |rows: DualRows<'_>| self.glm(diagonal, rows, targets.view(), seed, context);
                let (machine, fitted) = rows.fitted_on(fit)?;
                Ok((Surrogate::from_dual(machine, &classes)?, fitted))
            }
            SurrogateMachine::Ridge => {
                let targets = own.map_or(one_hot, |scores| scores.to_owned());
                let diagonal = rows.mean_diagonal()?;
                let (machine, fitted) = rows.fitted_on(|rows| self.ridge(diagonal, rows, targets.view(), context))?;
                Ok((Surrogate::from_dual(machine, &classes)?, fitted))
            }
            SurrogateMachine::Sgd => {
                let (machine, fitted) = self.sgd(rows.gram()?.view(), &decided(labels, own)?, seed, context)?;
                Ok((machine, fitted))
            }
            SurrogateMachine::Neighbours => {
                let (gram, labels) = (rows.gram()?, decided(labels, own)?);
                let form = SurrogateForm::Votes { count: self.neighbours, labels: labels.indices().to_vec() };
                let machine = NearestNeighbours::new(self.neighbours)?.by(By::Kernel);
                let machine = machine.fit_within(&SampleRows::Gram(gram.view()), &labels, context)?.into();
                Ok((Surrogate { form, n_classes: labels.n_classes(), machine }, Fitted::default()))
            }
        }
    }

    fn glm(
        &self,
        diagonal: f64,
        rows: DualRows<'_>,
        targets: ArrayView2<'_, f64>,
        seed: u64,
        context: &Context,
    ) -> Result<(DualMachine, Fitted), Error> {
        let penalties = self.penalties(diagonal);
        let settings = |penalty: f64| DualGlm::new(penalty, self.norm);
        let mut fitted = Fitted { norm: Some(self.norm), ..Fitted::default() };
        let penalty = match penalties[..] {
            [penalty] => penalty,
            _ => {
                let choice = PenaltyChoice { folds: self.folds, seed, most_samples: CHOSEN_AMONG };
                let rough = settings(1.0)?.until(ROUGH, ROUGH_STEPS)?;
                let found = choice.choose(&penalties, &rough, rows, targets, context)?;
                let selection = SelectionFindings::cross_validation(self.folds, Criterion::LogLoss, found.candidates);
                fitted.selection = Some(selection);
                found.value
            }
        };
        let machine = settings(penalty)?.fit(rows, targets, context)?;
        let solved = machine.solved();
        fitted.penalty = Some(penalty);
        (fitted.iterations, fitted.converged) = (Some(solved.iterations), Some(solved.converged));
        Ok((machine, fitted))
    }

    fn ridge(
        &self,
        diagonal: f64,
        rows: DualRows<'_>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<(DualMachine, Fitted), Error> {
        let penalties = self.penalties(diagonal);
        let (penalty, selection) = match penalties[..] {
            [penalty] => (penalty, None),
            _ => {
                let found = DualRidge::new(1.0)?.centred().choose(&penalties, rows, targets, context)?;
                (found.value, Some(SelectionFindings::leave_one_out(found.candidates)))
            }
        };
        let machine = DualRidge::new(penalty)?.centred().fit(rows, targets, context)?;
        let norm = Some(PenaltyNorm::Function);
        Ok((machine, Fitted { penalty: Some(penalty), norm, selection, ..Fitted::default() }))
    }

    fn sgd(
        &self,
        gram: ArrayView2<'_, f64>,
        labels: &Classes,
        seed: u64,
        context: &Context,
    ) -> Result<(Surrogate, Fitted), Error> {
        let (samples, penalties) = (SampleRows::Gram(gram), self.penalties(1.0));
        let settings = |penalty: f64| Ok(SgdGlm::new(seed).with_alpha(penalty)?.softmax());
        let mut fitted = Fitted { norm: Some(PenaltyNorm::Weights), ..Fitted::default() };
        let penalty = match penalties[..] {
            [penalty] => penalty,
            _ => {
                let method = CrossValidation { folds: self.folds, criterion: Criterion::LogLoss, seed };
                let found = method.choose((&penalties, Strongest::Largest), settings, &samples, labels, context)?;
                let selection = SelectionFindings::cross_validation(self.folds, Criterion::LogLoss, found.candidates);
                fitted.selection = Some(selection);
                found.value
            }
        };
        let machine = settings(penalty)?.fit_within(&samples, labels, context)?;
        let solved = machine.solved();
        fitted.penalty = Some(penalty);
        (fitted.iterations, fitted.converged) = (Some(solved.iterations), Some(solved.converged));
        let form = SurrogateForm::dual(machine.scores().weights().view(), machine.scores().bias().view());
        Ok((Surrogate { form, n_classes: labels.n_classes(), machine: machine.into() }, fitted))
    }
}

/// The labels, or the network's decisions if its scores are given.
fn decided(labels: &Classes, network: Option<ArrayView2<'_, f64>>) -> Result<Classes, Error> {
    let Some(scores) = network else { return Ok(labels.clone()) };
    let decided = Classes::new(mercer_lens::decisions(scores), labels.n_classes())?;
    if let Some(never) = decided.counts().iter().position(|&count| count == 0) {
        let text = format!("‹to› network: the network never decides for class {}", labels.names()[never]);
        return Err(Error::new(text).hint("‹machine› glm or ridge use its scores; or ‹to› labels"));
    }
    Ok(decided)
}

/// The training samples with the largest kernel values.
fn voters(kernel: &[f64], count: usize) -> Result<Vec<Neighbour>, Error> {
    let row = ArrayView1::from(kernel).insert_axis(Axis(0));
    Ok(largest(row, count, None)?.pop().unwrap_or_default())
}

impl Surrogate {
    /// The scores of a sample from its kernel values. Sums have a fixed order.
    pub(crate) fn scores(&self, kernel: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(match &self.form {
            SurrogateForm::Dual { weights, bias } => {
                let kernel = ArrayView1::from(kernel);
                weights.outer_iter().zip(bias).map(|(own, bias)| own.dot(&kernel) + bias).collect()
            }
            SurrogateForm::Votes { count, labels } => {
                let mut scores = vec![0.0; self.n_classes];
                let voters = voters(kernel, *count)?;
                let share = 1.0 / voters.len().max(1) as f64;
                voters.iter().for_each(|voter| scores[labels[voter.index]] += share);
                scores
            }
        })
    }

    /// The attribution of the score of a class to every training sample; they sum to the score.
    pub(crate) fn attributions(&self, kernel: &[f64], class: usize) -> Result<Vec<f64>, Error> {
        Ok(match &self.form {
            SurrogateForm::Dual { weights, bias } => {
                let weights = weights.row(class);
                mercer_lens::attributions(kernel, weights.as_slice().unwrap_or(&[]), bias[class])
            }
            SurrogateForm::Votes { count, labels } => {
                let mut found = vec![0.0; kernel.len()];
                let voters = voters(kernel, *count)?;
                let share = 1.0 / voters.len().max(1) as f64;
                let own = voters.iter().filter(|voter| labels[voter.index] == class);
                own.for_each(|voter| found[voter.index] = share);
                found
            }
        })
    }
}
