//! The multinomial model without each of its training samples: one Newton step for all of them at once.
//!
//! The step starts at the full solution and uses the Hessian without the sample, exactly. With the covariance `Ω` of the
//! scores at the optimum (the inverse of the Hessian in the space of scores) and the loss of sample i removed,
//!
//! ```text
//! ρᵢ = (I − BᵢΩᵢᵢ)⁻¹·vᵢ(tᵢ − pᵢ)        s⁻ⁱ(x) − s(x) = −Ω(x, i)·ρᵢ
//! ```
//!
//! where all blocks are C × C. `Ω` has the structure of Rasmussen and Williams 2006, algorithm 3.3, with `K' = K̃/λ` and a
//! flat prior on the biases:
//!
//! ```text
//! E_c = (K' + diag(v∘p_c)⁻¹)⁻¹      ψ_c(x) = E_c k' + E_c1·u_c(x),   u_c(x) = (1 − 1ᵀE_c k')/(1ᵀE_c1)
//! Ω(x, x')_cd = δ_cd·(κ'(x, x') − ψ_c(x)ᵀk'(x') + u_c(x)) + ψ_c(x)ᵀ·M⁺·ψ_d(x')
//! M = Σ_c (E_c − E_c11ᵀE_c/(1ᵀE_c1))
//! ```
//!
//! A shift of all scores of a sample changes no probability, so it has no variance of its own: `M` is singular along
//! `1`, and effects are centred over the classes, as are the scores of the model. There are C + 1 factorisations of side
//! N, and 2C matrices of that side are held at the same time.
//!
//! With [`PenaltyNorm::Weights`] `K̃ = K²`: the loss of the sample goes, but the function `κ(·, xᵢ)` stays in the model.

use super::Influence;
use super::removal::prepare;
use crate::error::{Result, setting};
use crate::softmax::softmax;
use crate::surrogate::glm::DualGlm;
use crate::surrogate::machine::{DualMachine, PenaltyNorm, check_class};
use crate::surrogate::rows::DualRows;
use mercer_linalg::{Cholesky, cholesky, matmul, matmul_into, syrk};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rayon::prelude::*;

/// The effects of removing training samples from a multinomial model, by one Newton step.
pub struct GlmInfluence<'a> {
    rows: DualRows<'a>,
    norm: PenaltyNorm,
    penalty: f64,
    /// `K'` of the training samples.
    kernel: Array2<f64>,
    classes: Vec<Class>,
    /// `ρ`, a row per sample.
    pull: Array2<f64>,
    /// `M⁺·Σ_d ψ_d(i)ρ_id`, a column per sample.
    joint: Array2<f64>,
    own: Array2<f64>,
}

/// What belongs to one class.
struct Class {
    /// `E`.
    information: Array2<f64>,
    /// `E1`.
    ones: Array1<f64>,
    /// `1ᵀE1`.
    total: f64,
}

impl Class {
    fn new(kernel: ArrayView2<'_, f64>, weights: Array1<f64>) -> Result<Self> {
        let roots = weights.mapv_into(f64::sqrt);
        let mut inner = &kernel * &roots * roots.view().insert_axis(Axis(1));
        inner.diag_mut().mapv_inplace(|v| v + 1.0);
        let half = cholesky(inner.view())?.solve_lower(Array2::from_diag(&roots).view())?;
        drop(inner);
        let information = syrk(half.t());
        let ones = information.sum_axis(Axis(1));
        let total = ones.sum();
        Ok(Self { information, ones, total })
    }

    /// `ψ(x)` and `u(x)` of samples with these `k'`, a column each.
    fn explain(&self, kernel: ArrayView2<'_, f64>) -> (Array2<f64>, Array1<f64>) {
        let mut explained = matmul(self.information.view(), kernel);
        let shift = explained.sum_axis(Axis(0)).mapv(|sum| (1.0 - sum) / self.total);
        let (ones, row) = (self.ones.view().insert_axis(Axis(1)), shift.view().insert_axis(Axis(0)));
        matmul_into(1.0, ones, row, true, explained.view_mut());
        (explained, shift)
    }
}

impl<'a> GlmInfluence<'a> {
    /// For a machine and what it was fitted with. Features become a Gram matrix.
    ///
    /// # Errors
    /// For samples, targets or a machine that do not fit together, and if the matrices do not fit into the memory.
    pub fn new(
        settings: &DualGlm,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        machine: &DualMachine,
        context: &Context,
    ) -> Result<Self> {
        let rows = rows.into();
        let (n, n_classes) = (rows.n_samples(), targets.ncols());
        let needed = n.saturating_mul(n).saturating_mul(8 * (2 * n_classes + 5));
        if needed > context.memory() {
            let reason = "all of them at once do not fit into the memory; remove groups instead";
            return Err(setting("the number of samples", n, reason));
        }
        let (_, targets, importance) = prepare(settings, rows, targets, machine)?;
        let importance = Array1::from_vec(importance);
        context.install(|| {
            let gram = rows.gram();
            let shares = softmax((matmul(gram.view(), machine.weights().view()) + machine.bias()).view());
            let kernel = prior(gram.view(), settings);
            context.check()?;
            let of_class = |c: usize| {
                context.check()?;
                Class::new(kernel.view(), &importance * &shares.column(c))
            };
            let classes = (0..n_classes).into_par_iter().map(of_class).collect::<Result<Vec<_>>>()?;
            let sum = total(&classes)?;
            let halves = |class: &Class| {
                context.check()?;
                let (explained, shift) = class.explain(kernel.view());
                let alone = &kernel.diag() - &(&explained * &kernel).sum_axis(Axis(0)) + &shift;
                Ok((sum.solve_lower(explained.view())?, alone))
            };
            let halves = classes.par_iter().map(halves).collect::<Result<Vec<_>>>()?;
            let (mut pull, mut own) = (Array2::zeros((n, n_classes)), Array2::zeros((n, n_classes)));
            for i in 0..n {
                let covariance = Array2::from_shape_fn((n_classes, n_classes), |(c, d)| {
                    let alone = if c == d { halves[c].1[i] } else { 0.0 };
                    alone + halves[c].0.column(i).dot(&halves[d].0.column(i))
                });
                let residual = (&targets.row(i) - &shares.row(i)) * importance[i];
                let force = force(&covariance, shares.row(i), importance[i], residual)?;
                own.row_mut(i).assign(&centred(-covariance.dot(&force)));
                pull.row_mut(i).assign(&force);
            }
            let mut joint = Array2::zeros((n, n));
            for ((half, _), pull) in halves.iter().zip(pull.columns()) {
                joint += &(half * &pull.insert_axis(Axis(0)));
            }
            drop(halves);
            let joint = sum.solve_upper(joint.view())?;
            drop(gram);
            let (norm, penalty) = (settings.norm, settings.penalty);
            Ok(Self { rows, norm, penalty, kernel, classes, pull, joint, own })
        })
    }

    /// The effects on one output, apart from a part that all outputs share, and `ψ` of the queries.
    fn alone(&self, class: usize, prior: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
        let (explained, shift) = self.classes[class].explain(prior.view());
        let mut effects = matmul(explained.t(), self.kernel.view());
        effects -= &prior.t();
        effects -= &shift.insert_axis(Axis(1));
        effects *= &self.pull.column(class).insert_axis(Axis(0));
        (effects, explained)
    }
}

impl Influence for GlmInfluence<'_> {
    fn effects(&self, queries: &DualRows<'_>, class: usize, context: &Context) -> Result<Array2<f64>> {
        check_class(class, self.classes.len())?;
        let rows = self.rows.kernel_rows(queries)?;
        context.install(|| {
            let mut prior = rows.t().to_owned() / self.penalty;
            if self.norm == PenaltyNorm::Weights {
                prior = self.rows.times(prior.view());
            }
            // The requested output minus the mean of all.
            let share = 1.0 / self.classes.len() as f64;
            let mut effects = Array2::zeros(rows.dim());
            let mut explained = Array2::zeros(prior.dim());
            for at in 0..self.classes.len() {
                context.check()?;
                let factor = f64::from(u8::from(at == class)) - share;
                let (own, own_explained) = self.alone(at, &prior);
                effects.scaled_add(factor, &own);
                explained.scaled_add(factor, &own_explained);
            }
            matmul_into(-1.0, explained.t(), self.joint.view(), true, effects.view_mut());
            Ok(effects)
        })
    }

    fn own(&self) -> &Array2<f64> {
        &self.own
    }
}

/// `K'` of the training samples.
fn prior(gram: ArrayView2<'_, f64>, settings: &DualGlm) -> Array2<f64> {
    match settings.norm {
        PenaltyNorm::Function => gram.to_owned() / settings.penalty,
        PenaltyNorm::Weights => syrk(gram) / settings.penalty,
    }
}

/// `M`, made regular along `1`, where nothing reads it.
fn total(classes: &[Class]) -> Result<Cholesky<f64>> {
    let n = classes.first().map_or(0, |class| class.ones.len());
    let mut sum = Array2::zeros((n, n));
    for class in classes {
        sum += &class.information;
        let (column, row) = (class.ones.view().insert_axis(Axis(1)), class.ones.view().insert_axis(Axis(0)));
        matmul_into(-1.0 / class.total, column, row, true, sum.view_mut());
    }
    let level = sum.diag().sum() / (n * n).max(1) as f64;
    sum.mapv_inplace(|v| v + level);
    mercer_linalg::mirror_lower(sum.view_mut());
    Ok(cholesky(sum.view())?)
}

/// `ρ = r + S(I − SᵀΩS)⁻¹SᵀΩr`.
fn force(
    covariance: &Array2<f64>,
    shares: ArrayView1<'_, f64>,
    importance: f64,
    residual: Array1<f64>,
) -> Result<Array1<f64>> {
    let roots = shares.mapv(f64::sqrt);
    let mut root = Array2::from_shape_fn(covariance.dim(), |(c, d)| -shares[c] * roots[d]);
    root.diag_mut().zip_mut_with(&roots, |value, own| *value += own);
    root *= importance.sqrt();
    let inner = Array2::<f64>::eye(shares.len()) - root.t().dot(covariance).dot(&root);
    let inner = (&inner + &inner.t()) * 0.5;
    let image = root.t().dot(&covariance.dot(&residual));
    Ok(&residual + &root.dot(&cholesky(inner.view())?.solve_vector(image.view())?))
}

fn centred(values: Array1<f64>) -> Array1<f64> {
    let mean = values.sum() / values.len().max(1) as f64;
    values - mean
}
