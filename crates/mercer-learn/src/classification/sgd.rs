//! The kernel generalised linear model as the surrogates' paper fitted it: one class against the others, stochastic
//! gradient descent on the log loss, L2 penalty `α = 10⁻²`, balanced classes.
//!
//! ```text
//! w ← (1 − ηα)·w − η·v·(σ(s) − χ)·r,    b ← b − η·v·(σ(s) − χ),    η = 1/(α(t₀ + t))
//! ```
//!
//! Engel et al. 2023, arXiv 2305.14585, appendix; the schedule and the stopping rule (five passes without an improvement of
//! `10⁻³` in the mean loss) are those of scikit-learn's `SGDClassifier`, after Bottou. Orders of samples are our own.

use crate::classes::ClassSet;
use crate::error::{Result, check_positive};
use crate::linear::{Linear, LinearClassifier, Link, Solved};
use crate::samples::Samples;
use crate::traits::Fit;
use mercer_data::Classes;
use ndarray::{Array1, Array2, ArrayView2};
use rand::seq::SliceRandom;

/// One-vs-rest logistic regression by stochastic gradient descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdGlm {
    alpha: f64,
    balanced: bool,
    max_passes: usize,
    tolerance: f64,
    seed: u64,
}

impl SgdGlm {
    /// The paper's setting.
    pub fn new(seed: u64) -> Self {
        Self { alpha: 1e-2, balanced: true, max_passes: 1000, tolerance: 1e-3, seed }
    }

    /// With this penalty.
    pub fn with_alpha(self, alpha: f64) -> Result<Self> {
        Ok(Self { alpha: check_positive("alpha", alpha)?, ..self })
    }

    /// Without weights for rare classes.
    pub fn unbalanced(self) -> Self {
        Self { balanced: false, ..self }
    }

    /// With at most so many passes over the samples.
    pub fn max_passes(self, max_passes: usize) -> Self {
        Self { max_passes, ..self }
    }

    /// One class against the others: weights, bias, passes, whether it settled, mean loss.
    fn descend(&self, rows: ArrayView2<'_, f64>, positive: &[bool], class: usize) -> Descent {
        let (n, width) = rows.dim();
        let count = positive.iter().filter(|positive| **positive).count();
        let importance = |positive: bool| {
            let own = if positive { count } else { n - count };
            if self.balanced { n as f64 / (2 * own) as f64 } else { 1.0 }
        };
        let typical = (1.0 / self.alpha.sqrt()).sqrt();
        let first = typical / f64::max(1.0, 1.0 / (1.0 + (-typical).exp()));
        let offset = 1.0 / (first * self.alpha);
        // The weights are `scale · direction`, so that decay costs nothing.
        let (mut direction, mut scale, mut bias) = (vec![0.0; width], 1.0_f64, 0.0);
        let mut order: Vec<usize> = (0..n).collect();
        let mut random = mercer_data::random::stream(self.seed, &format!("sgd/class {class}"));
        let (mut best, mut idle, mut t) = (f64::INFINITY, 0, 0.0);
        let mut descent =
            Descent { weights: Vec::new(), bias: 0.0, passes: self.max_passes, settled: false, loss: 0.0 };
        for pass in 0..self.max_passes {
            order.shuffle(&mut random);
            let mut sum = 0.0;
            for &at in &order {
                let row = rows.row(at);
                let row = row.as_slice().unwrap_or(&[]);
                let rate = 1.0 / (self.alpha * (offset + t));
                let score = scale * dot(row, &direction) + bias;
                let sign = if positive[at] { 1.0 } else { -1.0 };
                sum += softplus(-sign * score);
                let slope = -sign / (1.0 + (sign * score).exp());
                scale *= f64::max(0.0, 1.0 - rate * self.alpha);
                if scale < 1e-9 {
                    direction.iter_mut().for_each(|w| *w *= scale);
                    scale = 1.0;
                }
                let step = -rate * slope * importance(positive[at]);
                let share = step / scale;
                direction.iter_mut().zip(row).for_each(|(w, r)| *w += share * r);
                bias += step;
                t += 1.0;
            }
            descent.loss = sum / n as f64;
            idle = if sum > best - self.tolerance * n as f64 { idle + 1 } else { 0 };
            best = best.min(sum);
            if idle >= 5 {
                (descent.passes, descent.settled) = (pass + 1, true);
                break;
            }
        }
        direction.iter_mut().for_each(|w| *w *= scale);
        Descent { weights: direction, bias, ..descent }
    }
}

struct Descent {
    weights: Vec<f64>,
    bias: f64,
    passes: usize,
    settled: bool,
    loss: f64,
}

/// `ln(1 + eˣ)`.
pub(super) fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    mercer_linalg::simd::dispatch(
        #[inline(always)]
        || {
            let mut sums = [0.0; 8];
            let (quads, others) = (a.chunks_exact(8), b.chunks_exact(8));
            let tail: f64 = quads.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
            for (a, b) in quads.zip(others) {
                for i in 0..8 {
                    sums[i] += a[i] * b[i];
                }
            }
            sums.iter().sum::<f64>() + tail
        },
    )
}

impl Fit<Classes> for SgdGlm {
    type Machine = LinearClassifier;

    fn fit(&self, samples: &Samples<'_>, labels: &Classes) -> Result<LinearClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        let rows = samples.rows();
        let rows = rows.as_standard_layout();
        let n_classes = classes.present().len();
        let mut weights = Array2::zeros((rows.ncols(), n_classes));
        let mut bias = Array1::zeros(n_classes);
        let mut solved = Solved { iterations: 0, objective: 0.0, converged: true };
        for class in 0..n_classes {
            let positive: Vec<bool> = compact.iter().map(|&own| own == class).collect();
            let found = self.descend(rows.view(), &positive, class);
            weights.column_mut(class).assign(&Array1::from_vec(found.weights));
            bias[class] = found.bias;
            solved.iterations = solved.iterations.max(found.passes);
            solved.objective += found.loss;
            solved.converged &= found.settled;
        }
        mercer_linalg::check_finite("stochastic gradient descent, weights", weights.view())?;
        let scores = Linear { basis: samples.basis(), weights, bias, repairs: classes.repairs() };
        Ok(LinearClassifier { scores, classes, link: Link::OneVsRest, solved })
    }
}
