//! Binary kernel logistic regression by Newton's method.
//!
//! ```text
//! min Σᵢ ln(1 + exp(−ỹᵢ f(xᵢ))) + ½λ‖f‖²,    f(x) = κ(x, X)·α
//! ```
//!
//! Qadeer et al. 2023, arXiv 2310.18612, equations 15 and 16, which have no penalty: the samples there are separable in
//! feature space, so the coefficients diverge. We add the ridge penalty `½λ‖f‖²` in the norm of the kernel's space.
//! With the kernel `K/λ` this is the mode of a Gaussian process classifier, and is computed as such: Rasmussen and
//! Williams, Gaussian Processes for Machine Learning, 2006, algorithm 3.1, with steps halved until the objective
//! improves.

use super::sgd::softplus;
use crate::classes::ClassSet;
use crate::error::{LearnError, Result, check_positive};
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::repair;
use crate::samples::SampleRows;
use crate::traits::Fit;
use mercer_data::Classes;
use mercer_linalg::{Cholesky, cholesky, matmul};
use mercer_run::Context;
use ndarray::{Array, Array1, Array2, ArrayView2, Axis, Dimension, s};

/// The most Newton steps. Ten are already many.
const STEPS: usize = 100;
/// The tolerance: the objective improves by less than this times one plus its value.
const IMPROVEMENT: f64 = 1e-14;

/// Kernel logistic regression for two classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinaryLogistic {
    penalty: f64,
}

impl BinaryLogistic {
    /// With this positive penalty `λ`.
    pub fn new(penalty: f64) -> Result<Self> {
        Ok(Self { penalty: check_positive("the penalty", penalty)? })
    }
}

impl Fit<Classes> for BinaryLogistic {
    type Machine = LinearClassifier;

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, context: &Context) -> Result<LinearClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        if classes.present().len() != 2 {
            return Err(LearnError::NotBinary { found: classes.present().len() });
        }
        let positive: Vec<bool> = compact.iter().map(|&class| class == 1).collect();
        let kernel = samples.gram().mapv(|v| v / self.penalty);
        let mode = mode(kernel.view(), &positive, context)?;
        let coefficients = mode.coefficients.mapv(|a| a / self.penalty).insert_axis(Axis(1));
        let column = samples.weights(coefficients);
        let mut weights = Array2::zeros((column.nrows(), 2));
        weights.slice_mut(s![.., 1..]).assign(&column);
        let mut repairs = classes.repairs();
        repairs.extend(repair::jitter(&mode.factor));
        let (iterations, objective, converged) = (mode.iterations, mode.objective, mode.converged);
        let solved = Solved { iterations, objective, converged, support_vectors: None };
        let scores = Linear { basis: samples.basis(), weights, bias: Array1::zeros(2), repairs };
        Ok(LinearClassifier { scores, classes, link: ScoreLink::Softmax, solved })
    }
}

/// The mode of a latent function under the logistic likelihood.
#[derive(Clone, Debug)]
pub(crate) struct Mode {
    /// `a = K⁻¹·f`, the gradient of the likelihood at the mode.
    pub(crate) coefficients: Array1<f64>,
    /// `√w` with `w = σ(f)σ(−f)`.
    pub(crate) roots: Array1<f64>,
    /// The factor of `I + √w·K·√w`.
    pub(crate) factor: Cholesky<f64>,
    /// `Σ ln(1 + exp(−ỹf)) + ½aᵀf`.
    pub(crate) objective: f64,
    pub(crate) iterations: usize,
    pub(crate) converged: bool,
}

/// Newton's method for the mode.
pub(crate) fn mode(kernel: ArrayView2<'_, f64>, positive: &[bool], context: &Context) -> Result<Mode> {
    let signs: Array1<f64> = positive.iter().map(|&positive| if positive { 1.0 } else { -1.0 }).collect();
    let product = |a: &Array1<f64>| matmul(kernel, a.view().insert_axis(Axis(1))).remove_axis(Axis(1));
    let objective = |a: &Array1<f64>, f: &Array1<f64>| {
        f.iter().zip(&signs).map(|(f, sign)| softplus(-sign * f)).sum::<f64>() + 0.5 * a.dot(f)
    };
    let mut a = Array1::zeros(signs.len());
    let mut f: Array1<f64> = Array1::zeros(signs.len());
    let mut value = objective(&a, &f);
    let mut iterations = 0;
    loop {
        context.check()?;
        let share = f.mapv(|f| 1.0 / (1.0 + (-f).exp()));
        let roots = share.mapv(|p| (p * (1.0 - p)).sqrt());
        let mut inner = &kernel * &roots * roots.view().insert_axis(Axis(1));
        inner.diag_mut().mapv_inplace(|v| v + 1.0);
        let factor = cholesky(inner.view())?;
        let slope = positive.iter().zip(&share).map(|(&positive, p)| f64::from(u8::from(positive)) - p);
        let b: Array1<f64> =
            f.iter().zip(&roots).zip(slope).map(|((f, root), slope)| root * root * f + slope).collect();
        let solved = factor.solve_vector((&roots * &product(&b)).view())?;
        let newton = &b - &(&roots * &solved);
        let improved = improve(&a, &newton, value, product, objective);
        let converged = settled(value, improved.as_ref());
        if converged || iterations == STEPS {
            return Ok(Mode { coefficients: a, roots, factor, objective: value, iterations, converged });
        }
        if let Some((next_a, next_f, next)) = improved {
            (a, f, value) = (next_a, next_f, next);
        }
        iterations += 1;
    }
}

/// A point, the latent functions there, and the objective.
pub(crate) type Place<D> = (Array<f64, D>, Array<f64, D>, f64);

/// Newton's step, or a fraction of it that improves the objective; `None` if no fraction does.
pub(crate) fn improve<D: Dimension>(
    a: &Array<f64, D>,
    newton: &Array<f64, D>,
    value: f64,
    image: impl Fn(&Array<f64, D>) -> Array<f64, D>,
    objective: impl Fn(&Array<f64, D>, &Array<f64, D>) -> f64,
) -> Option<Place<D>> {
    let step = newton - a;
    let mut length = 1.0;
    while length > 1e-8 {
        let candidate = a + &(&step * length);
        let latent = image(&candidate);
        let next = objective(&candidate, &latent);
        if next < value {
            return Some((candidate, latent, next));
        }
        length *= 0.5;
    }
    None
}

/// Whether a step is negligible. If no step improves the objective, this is the minimum up to rounding.
pub(crate) fn settled<D: Dimension>(value: f64, next: Option<&Place<D>>) -> bool {
    next.is_none_or(|(_, _, next)| value - next <= IMPROVEMENT * (1.0 + next.abs()))
}
