//! Support vector machines, one class against the others.
//!
//! ```text
//! min ½αᵀQα − Σα,   0 ≤ αᵢ ≤ C,  yᵀα = 0,   Q_ij = yᵢyⱼκ(xᵢ, xⱼ)        f(x) = Σ yᵢαᵢκ(x, xᵢ) + b
//! ```
//!
//! Sequential minimal optimisation with second-order working set selection: Fan, Chen and Lin, Working set selection
//! using second order information, JMLR 6, 2005, as in LIBSVM. With two classes there is one problem, and the scores
//! are `−f, f`.

use crate::classes::ClassSet;
use crate::error::{LearnError, Result, check_positive};
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::samples::SampleRows;
use crate::traits::Fit;
use mercer_data::Classes;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2};

/// The curvature that replaces one that is not positive.
const LEAST_CURVATURE: f64 = 1e-12;

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

    /// `yᵢαᵢ`, the bias, the steps and the dual objective of a two-class problem.
    fn separate(
        &self,
        kernel: ArrayView2<'_, f64>,
        signs: &[f64],
        context: &Context,
    ) -> Result<(Vec<f64>, f64, usize, f64)> {
        let (n, cost) = (signs.len(), self.cost);
        let diagonal: Vec<f64> = kernel.diag().to_vec();
        let mut alpha = vec![0.0; n];
        let mut gradient = vec![-1.0; n];
        for step in 0..self.max_steps {
            context.check()?;
            let up = |t: usize| if signs[t] > 0.0 { alpha[t] < cost } else { alpha[t] > 0.0 };
            let low = |t: usize| if signs[t] > 0.0 { alpha[t] > 0.0 } else { alpha[t] < cost };
            let mut first: Option<(usize, f64)> = None;
            for t in (0..n).filter(|&t| up(t)) {
                let violation = -signs[t] * gradient[t];
                if first.is_none_or(|(_, most)| violation >= most) {
                    first = Some((t, violation));
                }
            }
            let Some((i, most)) = first else { return Ok(self.finish(signs, &alpha, &gradient, step)) };
            let row = kernel.row(i);
            let (mut least, mut second, mut gain) = (f64::INFINITY, None, f64::INFINITY);
            for t in (0..n).filter(|&t| low(t)) {
                let violation = -signs[t] * gradient[t];
                least = least.min(violation);
                let difference = most - violation;
                if difference > 0.0 {
                    let curvature = (diagonal[i] + diagonal[t] - 2.0 * row[t]).max(LEAST_CURVATURE);
                    let value = -difference * difference / curvature;
                    if value <= gain {
                        (second, gain) = (Some(t), value);
                    }
                }
            }
            let Some(j) = second.filter(|_| most - least >= self.tolerance) else {
                return Ok(self.finish(signs, &alpha, &gradient, step));
            };
            let curvature = (diagonal[i] + diagonal[j] - 2.0 * row[j]).max(LEAST_CURVATURE);
            // Along yᵢΔαᵢ = −yⱼΔαⱼ = length, within the box of both.
            let length = (most + signs[j] * gradient[j]) / curvature;
            let room = |t: usize, grows: bool| if grows { cost - alpha[t] } else { alpha[t] };
            let length = length.min(room(i, signs[i] > 0.0)).min(room(j, signs[j] < 0.0));
            for (t, change) in [(i, signs[i] * length), (j, -signs[j] * length)] {
                alpha[t] = (alpha[t] + change).clamp(0.0, cost);
            }
            let other = kernel.row(j);
            for ((g, sign), (a, b)) in gradient.iter_mut().zip(signs).zip(row.iter().zip(other)) {
                *g += sign * length * (a - b);
            }
        }
        let (measure, goal) = ("violation of optimality", self.tolerance);
        let (solver, reached) = ("support vector machine", f64::INFINITY);
        Err(LearnError::NotConverged { solver, measure, reached, goal, iterations: self.max_steps })
    }

    /// The bias from free support vectors, or the middle of the interval that the others allow.
    fn finish(&self, signs: &[f64], alpha: &[f64], gradient: &[f64], steps: usize) -> (Vec<f64>, f64, usize, f64) {
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
        (signs.iter().zip(alpha).map(|(sign, a)| sign * a).collect(), -offset, steps, objective)
    }
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
            let (found, offset, steps, objective) = self.separate(kernel.view(), &signs, context)?;
            coefficients.column_mut(class).assign(&Array1::from_vec(found));
            bias[class] = offset;
            solved.iterations += steps;
            solved.objective += objective;
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
