//! Ridge regression without some of its training samples, in closed form.
//!
//! ```text
//! G = (K + λI)⁻¹,  α = G(y − m1),  γ = G1
//! f⁻ˢ(x) − f(x) = δ·(1 − k_xᵀγ) − k_xᵀG_{:,S}·G_SS⁻¹·(α_S − δγ_S),    δ = m⁻ˢ − m
//! ```
//!
//! With centred targets the mean is taken again without the samples, exactly: `δ` is its change. Otherwise `δ = 0`. For a
//! single sample this is the classic identity `yᵢ − f⁻ⁱ(xᵢ) = αᵢ/G_ii` (Cook and Weisberg 1982; Rifkin and Lippert 2007).

use super::{Influence, checked_group};
use crate::error::{Result, setting};
use crate::linear::Solved;
use crate::regression::centre;
use crate::surrogate::factor::{Factor, unit};
use crate::surrogate::machine::{DualMachine, PenaltyNorm, check_class};
use crate::surrogate::ridge::{DualRidge, check};
use crate::surrogate::rows::DualRows;
use mercer_linalg::{cholesky, matmul};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// The effects of removing training samples from a ridge regression.
pub struct RidgeInfluence<'a> {
    factor: Factor<'a>,
    settings: DualRidge,
    targets: Array2<f64>,
    bias: Array1<f64>,
    /// `α`.
    weights: Array2<f64>,
    /// `γ`, zero without centring.
    ones: Array1<f64>,
    /// `G_ii`.
    diagonal: Array1<f64>,
    own: Array2<f64>,
}

impl<'a> RidgeInfluence<'a> {
    /// For the machine of these settings.
    ///
    /// # Errors
    /// As [`DualRidge::fit`], and for a single centred sample, without which there is no mean.
    pub fn new(
        settings: &DualRidge,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Self> {
        let rows = rows.into();
        check(&rows, targets)?;
        context.install(|| Self::from_factor(settings, Factor::new(rows, None, settings.penalty)?, targets, context))
    }

    pub(in crate::surrogate) fn from_factor(
        settings: &DualRidge,
        factor: Factor<'a>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Self> {
        let n = factor.rows.n_samples();
        if settings.centred && n == 1 {
            return Err(setting("the number of samples", n, "without this sample there is no mean"));
        }
        let (bias, centred, _) = centre(targets, settings.centred);
        let weights = factor.solve(centred.view())?;
        let ones = match settings.centred {
            true => factor.solve(Array2::ones((n, 1)).view())?.remove_axis(Axis(1)),
            false => Array1::zeros(n),
        };
        let diagonal = factor.diagonal(context)?;
        let (targets, own) = (targets.to_owned(), Array2::zeros((0, 0)));
        let mut influence = Self { factor, settings: *settings, targets, bias, weights, ones, diagonal, own };
        influence.own = &influence.weights * influence.factor.penalty - influence.errors();
        Ok(influence)
    }

    /// `δ` of every sample.
    fn shifts(&self) -> Array2<f64> {
        match self.settings.centred {
            true => (&self.bias - &self.targets) / (self.targets.nrows() as f64 - 1.0),
            false => Array2::zeros(self.targets.dim()),
        }
    }

    /// `y − f⁻ⁱ(xᵢ)`: the error of every training sample if it is left out, a column per target.
    pub fn errors(&self) -> Array2<f64> {
        let ones = self.ones.view().insert_axis(Axis(1));
        (&self.weights - &(self.shifts() * ones)) / self.diagonal.view().insert_axis(Axis(1))
    }

    /// The predictions of the training samples if each is left out.
    pub fn predictions(&self) -> Array2<f64> {
        &self.targets - &self.errors()
    }

    /// The machine without a group of samples, exactly. Their weights are zero.
    ///
    /// # Errors
    /// For samples that do not exist, and a group of all samples if targets are centred.
    pub fn leave_out(&self, group: &[usize]) -> Result<DualMachine> {
        let n = self.targets.nrows();
        let group = checked_group(group, n)?;
        let others = (n - group.len()) as f64;
        let mut bias = self.bias.clone();
        if self.settings.centred {
            if group.len() == n {
                return Err(setting("the group", "all samples", "without them there is no mean"));
            }
            bias = (&self.bias * n as f64 - self.targets.select(Axis(0), &group).sum_axis(Axis(0))) / others;
        }
        let change = (&bias - &self.bias).insert_axis(Axis(0));
        let mut weights = &self.weights - &matmul(self.ones.view().insert_axis(Axis(1)), change.view());
        let columns = self.factor.solve(unit(n, &group).view())?;
        let block = columns.select(Axis(0), &group);
        let block = (&block + &block.t()) * 0.5;
        let removed = cholesky(block.view())?.solve(weights.select(Axis(0), &group).view())?;
        weights -= &matmul(columns.view(), removed.view());
        group.iter().for_each(|&row| weights.row_mut(row).fill(0.0));
        let mut centred = &self.targets - &bias;
        group.iter().for_each(|&row| centred.row_mut(row).fill(0.0));
        let objective = self.factor.penalty * (&weights * &centred).sum();
        let solved = Solved { iterations: 1, objective, converged: true, support_vectors: None };
        let machine = DualMachine::new(weights, bias, solved, self.settings.penalty, PenaltyNorm::Function)?;
        Ok(machine.with_repairs(self.factor.repairs()))
    }
}

impl Influence for RidgeInfluence<'_> {
    fn effects(&self, queries: &DualRows<'_>, class: usize, context: &Context) -> Result<Array2<f64>> {
        check_class(class, self.targets.ncols())?;
        self.factor.rows.check_queries(queries)?;
        context.check()?;
        let mut effects = context.install(|| self.factor.explain(queries))?;
        // k_xᵀγ = (k_xᵀG)·1.
        let away = effects.sum_axis(Axis(1)).mapv(|sum| 1.0 - sum);
        let (shift, errors) = (self.shifts(), self.errors());
        for (mut row, away) in effects.outer_iter_mut().zip(&away) {
            let samples = row.iter_mut().zip(shift.column(class)).zip(errors.column(class));
            samples.for_each(|((value, shift), error)| *value = shift * away - *value * error);
        }
        Ok(effects)
    }

    fn own(&self) -> &Array2<f64> {
        &self.own
    }
}
