//! Support vector machines, one class against the others.
//!
//! ```text
//! min ½αᵀQα − Σα,   0 ≤ αᵢ ≤ C,  yᵀα = 0,   Q_ij = yᵢyⱼκ(xᵢ, xⱼ)        f(x) = Σ yᵢαᵢκ(x, xᵢ) + b
//! ```
//!
//! Sequential minimal optimisation with second-order working set selection: Fan, Chen and Lin, Working set selection
//! using second order information, JMLR 6, 2005, as in LIBSVM. With two classes there is one problem, and the scores
//! are `−f, f`.

mod working_set;

use crate::classes::ClassSet;
use crate::error::{LearnError, Result, check_positive, check_size};
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::samples::SampleRows;
use crate::traits::Fit;
use mercer_data::Classes;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use working_set::{Pair, WorkingSet};

/// Support vector machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Svm {
    cost: f64,
    tolerance: f64,
    max_steps: usize,
}

impl Svm {
    /// With this positive `C`, to a tolerance of `10⁻³` in the optimality conditions.
    pub fn new(cost: f64) -> Result<Self> {
        Ok(Self { cost: check_positive("the cost", cost)?, tolerance: 1e-3, max_steps: 10_000_000 })
    }

    /// With another tolerance.
    pub fn with_tolerance(self, tolerance: f64) -> Result<Self> {
        Ok(Self { tolerance: check_positive("the tolerance", tolerance)?, ..self })
    }

    /// With at most this many steps per two-class problem.
    pub fn max_steps(self, max_steps: usize) -> Self {
        Self { max_steps, ..self }
    }

    /// Solves a two-class problem: a sign per sample, from the coefficients of a similar problem if there are any.
    ///
    /// # Errors
    /// For sizes that do not agree, and if the run is cancelled. A solution that was not reached is not an error: it says so.
    pub fn separate(
        &self,
        kernel: ArrayView2<'_, f64>,
        signs: &[f64],
        start: Option<WarmStart<'_>>,
        context: &Context,
    ) -> Result<Separation> {
        let (n, cost) = (signs.len(), self.cost);
        check_size("the rows of the Gram matrix", n, kernel.nrows())?;
        check_size("the columns of the Gram matrix", n, kernel.ncols())?;
        let kernel = kernel.as_standard_layout();
        let diagonal: Vec<f64> = kernel.diag().to_vec();
        let mut alpha = vec![0.0; n];
        let mut gradient = vec![-1.0; n];
        if let Some(WarmStart { coefficients, scores }) = start {
            check_size("the coefficients to start from", n, coefficients.len())?;
            check_size("the scores to start from", n, scores.len())?;
            alpha = coefficients.iter().zip(signs).map(|(own, sign)| (own * sign).clamp(0.0, cost)).collect();
            gradient = scores.iter().zip(signs).map(|(score, sign)| sign * score - 1.0).collect();
        }
        let mut working = WorkingSet::new(&diagonal, signs, &gradient);
        (0..n).for_each(|t| working.set(t, signs[t], alpha[t], cost));
        for step in 0..self.max_steps {
            context.check()?;
            let Some(Pair { i, j, length }) = working.select(kernel.view(), self.tolerance) else {
                return Ok(self.finish(signs, &alpha, &working.gradient(signs), (step, true)));
            };
            // Along yᵢΔαᵢ = −yⱼΔαⱼ = length, within the box of both.
            let room = |t: usize, grows: bool| if grows { cost - alpha[t] } else { alpha[t] };
            let length = length.min(room(i, signs[i] > 0.0)).min(room(j, signs[j] < 0.0));
            for (t, change) in [(i, signs[i] * length), (j, -signs[j] * length)] {
                alpha[t] = (alpha[t] + change).clamp(0.0, cost);
                working.set(t, signs[t], alpha[t], cost);
            }
            working.step(length, kernel.row(i), kernel.row(j));
        }
        Ok(self.finish(signs, &alpha, &working.gradient(signs), (self.max_steps, false)))
    }

    /// The bias from free support vectors, or the middle of the interval that the others allow.
    fn finish(&self, signs: &[f64], alpha: &[f64], gradient: &[f64], (steps, converged): (usize, bool)) -> Separation {
        let (mut sum, mut free) = (0.0, 0_usize);
        let (mut above, mut below) = (f64::INFINITY, f64::NEG_INFINITY);
        for ((&sign, &a), &g) in signs.iter().zip(alpha).zip(gradient) {
            let value = sign * g;
            if a > 0.0 && a < self.cost {
                (sum, free) = (sum + value, free + 1);
            } else if (a == 0.0) == (sign > 0.0) {
                above = above.min(value);
            } else {
                below = below.max(value);
            }
        }
        let offset = if free > 0 { sum / free as f64 } else { 0.5 * (above + below) };
        let objective = 0.5 * alpha.iter().zip(gradient).map(|(a, g)| a * (g - 1.0)).sum::<f64>();
        let coefficients = signs.iter().zip(alpha).map(|(sign, a)| sign * a).collect();
        Separation { coefficients, bias: -offset, steps, objective, converged }
    }
}

/// The solution of a similar problem, to start from.
#[derive(Clone, Copy, Debug)]
pub struct WarmStart<'a> {
    /// `yᵢαᵢ`.
    pub coefficients: ArrayView1<'a, f64>,
    /// The product of the kernel with them.
    pub scores: ArrayView1<'a, f64>,
}

/// The solution of a two-class problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Separation {
    /// `yᵢαᵢ`.
    pub coefficients: Vec<f64>,
    /// `b`.
    pub bias: f64,
    /// The steps that were taken.
    pub steps: usize,
    /// The dual objective.
    pub objective: f64,
    /// Whether the optimality conditions hold to the tolerance.
    pub converged: bool,
}

impl Fit<Classes> for Svm {
    type Machine = LinearClassifier;

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, context: &Context) -> Result<LinearClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        let kernel = samples.gram();
        let n_classes = classes.present().len();
        let problems = if n_classes == 2 { 1..2 } else { 0..n_classes };
        let mut coefficients = Array2::zeros((samples.n_samples(), n_classes));
        let mut bias = Array1::zeros(n_classes);
        let mut solved = Solved { converged: true, ..Solved::default() };
        for class in problems {
            let signs: Vec<f64> = compact.iter().map(|&own| if own == class { 1.0 } else { -1.0 }).collect();
            let found = self.separate(kernel.view(), &signs, None, context)?;
            if !found.converged {
                let (measure, goal) = ("violation of optimality", self.tolerance);
                let (solver, reached) = ("support vector machine", f64::INFINITY);
                return Err(LearnError::NotConverged { solver, measure, reached, goal, iterations: found.steps });
            }
            coefficients.column_mut(class).assign(&Array1::from_vec(found.coefficients));
            bias[class] = found.bias;
            solved.iterations += found.steps;
            solved.objective += found.objective;
        }
        if n_classes == 2 {
            let opposite = coefficients.column(1).mapv(|v: f64| -v);
            coefficients.column_mut(0).assign(&opposite);
            bias[0] = -bias[1];
        }
        let supports = |row: &ndarray::ArrayView1<'_, f64>| row.iter().any(|v| *v != 0.0);
        solved.support_vectors = Some(coefficients.outer_iter().filter(supports).count());
        let weights = samples.weights(coefficients);
        let scores = Linear { basis: samples.basis(), weights, bias, repairs: classes.repairs() };
        Ok(LinearClassifier { scores, classes, link: ScoreLink::Margin, solved })
    }
}
