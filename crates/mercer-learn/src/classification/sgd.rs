//! The kernel generalised linear model as fitted in the paper on surrogates: stochastic gradient descent on the log
//! loss, L2 penalty `α = 10⁻²`, balanced classes.
//!
//! ```text
//! w ← (1 − ηα)·w − η·v·(σ(s) − χ)·r,    b ← b − η·v·(σ(s) − χ),    η = 1/(α(t₀ + t))
//! ```
//!
//! Engel et al. 2023, arXiv 2305.14585, appendix, who use scikit-learn's `SGDClassifier`. The problems, their weights,
//! the schedule and the stopping rule are those of scikit-learn (version 1.9), after Bottou. It stops after five passes
//! in which the mean of `loss + ½α‖w‖²`, evaluated at each step without class weights, has not fallen by `10⁻³`.
//! Earlier versions used only the loss.
//!
//! - with more than two classes there is one problem per class, one against the others. Balanced, the class itself has
//!   weight `v = n/(C·n_c)` and the others **one**;
//! - with two classes there is one problem, the second against the first, and both have weight `v = n/(2·n_c)`. The
//!   score of the first is zero.
//!
//! The random orders of samples are our own. With [`in_order`](SgdGlm::in_order) samples are not shuffled, and both
//! implementations agree to rounding.

use crate::classes::ClassSet;
use crate::error::{Result, check_positive};
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::samples::SampleRows;
use crate::traits::Fit;
use mercer_data::Classes;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2};
use rand::seq::SliceRandom;

/// Steps between two checks for cancellation. The cost of a step is proportional to the length of a row.
const POLLED: usize = 64;

/// Logistic regression by stochastic gradient descent, with one problem per class, or one for two classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdGlm {
    alpha: f64,
    balanced: bool,
    max_passes: usize,
    tolerance: f64,
    shuffled: bool,
    link: ScoreLink,
    seed: u64,
}

impl SgdGlm {
    /// The settings of the paper.
    pub fn new(seed: u64) -> Self {
        let (shuffled, link) = (true, ScoreLink::OneVsRest);
        Self { alpha: 1e-2, balanced: true, max_passes: 1000, tolerance: 1e-3, shuffled, link, seed }
    }

    /// With this penalty.
    pub fn with_alpha(self, alpha: f64) -> Result<Self> {
        Ok(Self { alpha: check_positive("alpha", alpha)?, ..self })
    }

    /// Without class weights.
    pub fn unbalanced(self) -> Self {
        Self { balanced: false, ..self }
    }

    /// With at most this many passes over the samples.
    pub fn max_passes(self, max_passes: usize) -> Self {
        Self { max_passes, ..self }
    }

    /// With the samples in the given order in every pass.
    pub fn in_order(self) -> Self {
        Self { shuffled: false, ..self }
    }

    /// Gives probabilities by the softmax of the scores, with which the paper measures faithfulness, instead of
    /// normalised sigmoids. For two classes they are the same.
    pub fn softmax(self) -> Self {
        Self { link: ScoreLink::Softmax, ..self }
    }

    /// One class against the others: weights, bias, passes, whether it converged, mean objective.
    fn descend(
        &self,
        rows: ArrayView2<'_, f64>,
        positive: &[bool],
        (class, n_classes): (usize, usize),
        context: &Context,
    ) -> Result<Descent> {
        let (n, width) = rows.dim();
        let count = positive.iter().filter(|positive| **positive).count();
        let importance = |positive: bool| match (self.balanced, positive) {
            (true, true) => n as f64 / (n_classes * count) as f64,
            (true, false) if n_classes == 2 => n as f64 / (2 * (n - count)) as f64,
            _ => 1.0,
        };
        let typical = (1.0 / self.alpha.sqrt()).sqrt();
        let first = typical / f64::max(1.0, 1.0 / (1.0 + (-typical).exp()));
        let offset = 1.0 / (first * self.alpha);
        // The weights are `scale · direction`, so that decay costs nothing.
        let (mut direction, mut scale, mut bias) = (vec![0.0; width], 1.0_f64, 0.0);
        let mut order: Vec<usize> = (0..n).collect();
        let mut random = mercer_data::random::stream(self.seed, &format!("sgd/class {class}"));
        let (mut best, mut idle, mut t) = (f64::INFINITY, 0, 0.0);
        // `‖w‖²` is carried along, so that the objective costs nothing either.
        let lengths: Vec<f64> = rows.outer_iter().map(|row| row.dot(&row)).collect();
        let mut norm = 0.0_f64;
        let mut descent =
            Descent { weights: Vec::new(), bias: 0.0, passes: self.max_passes, settled: false, objective: 0.0 };
        for pass in 0..self.max_passes {
            if self.shuffled {
                order.shuffle(&mut random);
            }
            let mut sum = 0.0;
            for (step, &at) in order.iter().enumerate() {
                if step % POLLED == 0 {
                    context.check()?;
                }
                let row = rows.row(at);
                let row = row.as_slice().unwrap_or(&[]);
                let rate = 1.0 / (self.alpha * (offset + t));
                let inner = scale * dot(row, &direction);
                let score = inner + bias;
                let sign = if positive[at] { 1.0 } else { -1.0 };
                sum += softplus(-sign * score) + 0.5 * self.alpha * norm;
                let slope = -sign / (1.0 + (sign * score).exp());
                let decay = f64::max(0.0, 1.0 - rate * self.alpha);
                scale *= decay;
                if scale < 1e-9 {
                    direction.iter_mut().for_each(|w| *w *= scale);
                    scale = 1.0;
                }
                let step = -rate * slope * importance(positive[at]);
                let share = step / scale;
                direction.iter_mut().zip(row).for_each(|(w, r)| *w += share * r);
                norm = (decay * decay * norm + step * (2.0 * decay * inner + step * lengths[at])).max(0.0);
                bias += step;
                t += 1.0;
            }
            descent.objective = sum / n as f64;
            idle = if descent.objective > best - self.tolerance { idle + 1 } else { 0 };
            best = best.min(descent.objective);
            if idle >= 5 {
                (descent.passes, descent.settled) = (pass + 1, true);
                break;
            }
        }
        direction.iter_mut().for_each(|w| *w *= scale);
        Ok(Descent { weights: direction, bias, ..descent })
    }
}

struct Descent {
    weights: Vec<f64>,
    bias: f64,
    passes: usize,
    settled: bool,
    objective: f64,
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

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, context: &Context) -> Result<LinearClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        let rows = samples.rows();
        let rows = rows.as_standard_layout();
        let n_classes = classes.present().len();
        let mut weights = Array2::zeros((rows.ncols(), n_classes));
        let mut bias = Array1::zeros(n_classes);
        let mut solved = Solved { converged: true, ..Solved::default() };
        let problems = if n_classes == 2 { 1..2 } else { 0..n_classes };
        for class in problems {
            let positive: Vec<bool> = compact.iter().map(|&own| own == class).collect();
            let found = self.descend(rows.view(), &positive, (class, n_classes), context)?;
            weights.column_mut(class).assign(&Array1::from_vec(found.weights));
            bias[class] = found.bias;
            solved.iterations = solved.iterations.max(found.passes);
            solved.objective += found.objective;
            solved.converged &= found.settled;
        }
        let scores = Linear { basis: samples.basis(), weights, bias, repairs: classes.repairs() };
        // The log-odds of one problem, next to zero: their softmax is its sigmoid.
        let link = if n_classes == 2 { ScoreLink::Softmax } else { self.link };
        Ok(LinearClassifier { scores, classes, link, solved })
    }
}
