//! The multinomial model without a group of its training samples, at any number of samples.
//!
//! The loss of the samples is removed and the model is solved again from where it was, by Newton's method with
//! conjugate gradients. Weights that balance classes stay as they were with all samples.
//!
//! With [`PenaltyNorm::Function`](crate::surrogate::PenaltyNorm::Function) this is the model of the other samples, and the weights of the group become zero. With
//! [`PenaltyNorm::Weights`](crate::surrogate::PenaltyNorm::Weights) the loss terms go, but the functions `κ(·, xᵢ)` stay in the model, and their weights are
//! fitted to the other samples.

use super::checked_group;
use crate::error::{Result, check_size};
use crate::surrogate::glm::DualGlm;
use crate::surrogate::machine::DualMachine;
use crate::surrogate::newton::{Ended, Leading, Place, Problem, Space};
use crate::surrogate::rows::DualRows;
use crate::surrogate::targets::{check_boundary, importance, probabilities};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2};

/// A fitted multinomial model, ready to lose samples.
pub struct Removal<'a> {
    settings: DualGlm,
    space: Space<'a>,
    targets: Array2<f64>,
    importance: Vec<f64>,
    place: Place,
    leading: Option<Leading>,
}

impl<'a> Removal<'a> {
    /// For a machine and what it was fitted with.
    ///
    /// # Errors
    /// For samples, targets or a machine that do not fit together.
    pub fn new(
        settings: &DualGlm,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        machine: &DualMachine,
        context: &Context,
    ) -> Result<Self> {
        let rows = rows.into();
        let (space, targets, importance) = prepare(settings, rows, targets, machine)?;
        context.install(|| {
            let leading = Leading::new(&space, targets.ncols(), context)?;
            let place = Place { vector: space.vector(machine.weights().clone()), bias: machine.bias().clone() };
            Ok(Self { settings: *settings, space, targets, importance, place, leading })
        })
    }

    /// The machine after one Newton step from the full model.
    ///
    /// # Errors
    /// For samples that do not exist, and if a class is left without samples.
    pub fn one_step(&self, group: &[usize], context: &Context) -> Result<DualMachine> {
        self.without(group, context, |problem| problem.one_step(&self.place, context))
    }

    /// The machine that is fitted without the group, to the tolerance of the settings.
    ///
    /// # Errors
    /// As [`one_step`](Self::one_step).
    pub fn leave_out(&self, group: &[usize], context: &Context) -> Result<DualMachine> {
        self.without(group, context, |problem| problem.minimise(self.place.clone(), self.settings.stop, context))
    }

    fn without(
        &self,
        group: &[usize],
        context: &Context,
        solve: impl FnOnce(&Problem<'_, '_>) -> Result<Ended> + Send,
    ) -> Result<DualMachine> {
        let mut importance = self.importance.clone();
        checked_group(group, importance.len())?.into_iter().for_each(|row| importance[row] = 0.0);
        check_boundary(&self.targets, &importance)?;
        let (space, penalty, leading) = (self.space, self.settings.penalty, self.leading.as_ref());
        let problem = Problem { space, targets: &self.targets, importance: &importance, penalty, leading };
        context.install(|| self.settings.machine(solve(&problem)?))
    }
}

/// Checked samples, targets and importance of a machine.
pub(super) fn prepare<'a>(
    settings: &DualGlm,
    rows: DualRows<'a>,
    targets: ArrayView2<'_, f64>,
    machine: &DualMachine,
) -> Result<(Space<'a>, Array2<f64>, Vec<f64>)> {
    rows.check_for_fit()?;
    let targets = probabilities(targets, rows.n_samples())?;
    check_size("the number of training samples", rows.n_samples(), machine.n_samples())?;
    check_size("the number of outputs", targets.ncols(), machine.n_outputs())?;
    let importance = importance(&targets, settings.balanced);
    check_boundary(&targets, &importance)?;
    Ok((Space { rows, norm: settings.norm }, targets, importance))
}
