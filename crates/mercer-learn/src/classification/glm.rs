//! The kernel generalised linear model: multinomial logistic regression on rows.
//!
//! ```text
//! s(x) = W·r(x) + b       min Σᵢ vᵢ·(−ln softmax(s(xᵢ))_yᵢ) + ½λ‖W‖²
//! ```
//!
//! Engel et al. 2023, arXiv 2305.14585, equation 1, with `r(x) = κ(x, X)`: as in the paper, the penalty is on the
//! coefficients, not on the norm in the kernel's space. With features it is a linear probe. Solved by preconditioned
//! L-BFGS; `λ` is scikit-learn's `1/C`.

use super::loss::log_loss;
use crate::classes::ClassSet;
use crate::error::{Result, check_positive};
use crate::linear::{Linear, LinearClassifier, ScoreLink, Solved};
use crate::minimise::Minimise;
use crate::normal::Normal;
use crate::samples::{SampleKind, SampleRows};
use crate::traits::Fit;
use mercer_data::Classes;
use mercer_linalg::{Randomised, Strided, gemm, matmul, matmul_into};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};

/// The number of directions in which the preconditioner is exact.
const DIRECTIONS: usize = 64;

/// Multinomial logistic regression on kernel rows or features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glm {
    penalty: f64,
    bias: bool,
    balanced: bool,
    tolerance: f64,
    max_iterations: usize,
}

impl Glm {
    /// With this positive penalty `λ`. Without a penalty, separable samples have no optimal weights.
    pub fn new(penalty: f64) -> Result<Self> {
        let penalty = check_positive("the penalty", penalty)?;
        Ok(Self { penalty, bias: true, balanced: false, tolerance: 1e-4, max_iterations: 1000 })
    }

    /// Without a bias.
    pub fn without_bias(self) -> Self {
        Self { bias: false, ..self }
    }

    /// With weights that balance the classes.
    pub fn balanced(self) -> Self {
        Self { balanced: true, ..self }
    }

    /// Stops when no component of the gradient, divided by the number of samples, exceeds this tolerance (default
    /// `1e-4`), or after this many steps (default 1000).
    pub fn until(self, tolerance: f64, max_iterations: usize) -> Result<Self> {
        Ok(Self { tolerance: check_positive("the tolerance", tolerance)?, max_iterations, ..self })
    }
}

/// The Hessian where all classes are equally likely, `(c·XᵀX + λI)/N` with `c = (1 − 1/C)/C`: exact in the leading
/// directions of the rows, a multiple of the identity in the others. Kernel rows span many orders of magnitude, and
/// plain L-BFGS takes hundreds of steps to learn them.
struct Curvature {
    /// Leading eigenvectors of `XᵀX`, as columns.
    directions: Array2<f64>,
    /// The inverse along them, minus its value everywhere else.
    along: Array1<f64>,
    elsewhere: f64,
    bias: f64,
    n_classes: usize,
}

impl Curvature {
    fn new(rows: ArrayView2<'_, f64>, n_classes: usize, penalty: f64) -> Result<Self> {
        let (n, share) = (rows.nrows() as f64, 1.0 / n_classes as f64);
        let weight = share * (1.0 - share);
        let top = Randomised::new(rows.ncols().min(DIRECTIONS)).products(1).run(&Normal(rows))?;
        let inverse = |value: f64| n / (weight * value.max(0.0) + penalty);
        let elsewhere = inverse(top.values.last().copied().unwrap_or(0.0));
        let along = top.values.mapv(|value| inverse(value) - elsewhere);
        Ok(Self { directions: top.vectors, along, elsewhere, bias: 1.0 / weight, n_classes })
    }

    fn divide(&self, vector: &mut [f64]) {
        let width = self.directions.nrows();
        let (weights, bias) = vector.split_at_mut(width * self.n_classes);
        bias.iter_mut().for_each(|b| *b *= self.bias);
        let Ok(mut weights) = ArrayViewMut2::from_shape((width, self.n_classes), weights) else { return };
        let mut coordinates = matmul(self.directions.t(), weights.view());
        coordinates.outer_iter_mut().zip(&self.along).for_each(|(mut row, &factor)| row.mapv_inplace(|v| v * factor));
        weights.mapv_inplace(|v| v * self.elsewhere);
        matmul_into(1.0, self.directions.view(), coordinates.view(), true, weights);
    }
}

impl Fit<Classes> for Glm {
    type Machine = LinearClassifier;

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, context: &Context) -> Result<LinearClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        let n_classes = classes.present().len();
        let importance = if self.balanced { super::balanced(&compact, n_classes) } else { vec![1.0; compact.len()] };
        let rows = samples.rows();
        let rows = rows.as_standard_layout();
        let (n, width) = rows.dim();
        let values = rows.as_slice().unwrap_or(&[]);
        // A symmetric matrix is its own transpose, so rows can be read in memory order.
        let transposed: Strided<'_, f64> =
            if samples.basis() == SampleKind::Gram { (values, width, 1) } else { (values, 1, width) };
        let mut targets = vec![0.0; n * n_classes];
        compact.iter().enumerate().for_each(|(row, class)| targets[row * n_classes + class] = 1.0);
        let mut scores = vec![0.0; n * n_classes];
        let mut shares = vec![0.0; n * n_classes];
        let scale = 1.0 / n as f64;
        let objective = |place: &[f64], gradient: &mut [f64]| -> f64 {
            // NaN is never lower, so the search stops where it is.
            if context.cancelled() {
                return f64::NAN;
            }
            let (weights, bias) = place.split_at(width * n_classes);
            gemm([n, n_classes, width], (values, width, 1), (weights, n_classes, 1), false, &mut scores);
            for row in scores.chunks_exact_mut(n_classes) {
                row.iter_mut().zip(bias).for_each(|(score, b)| *score += b);
            }
            let loss = log_loss(&mut scores, &targets, &importance, n_classes, &mut shares);
            let (weight_gradient, bias_gradient) = gradient.split_at_mut(width * n_classes);
            gemm([width, n_classes, n], transposed, (&shares, n_classes, 1), false, weight_gradient);
            let mut square = 0.0;
            for (g, w) in weight_gradient.iter_mut().zip(weights) {
                *g = (*g + self.penalty * w) * scale;
                square += w * w;
            }
            bias_gradient.fill(0.0);
            if self.bias {
                for row in shares.chunks_exact(n_classes) {
                    bias_gradient.iter_mut().zip(row).for_each(|(g, s)| *g += s * scale);
                }
            }
            (loss + 0.5 * self.penalty * square) * scale
        };
        // If it cannot be computed (squares overflow), the plain method gives the same result more slowly.
        let curvature = Curvature::new(rows.view(), n_classes, self.penalty).ok();
        let precondition = curvature.as_ref().map(|curvature| |vector: &mut [f64]| curvature.divide(vector));
        let precondition = precondition.as_ref().map(|divide| divide as &dyn Fn(&mut [f64]));
        let search = Minimise { tolerance: self.tolerance, max_iterations: self.max_iterations };
        let mut found = search.run_preconditioned(vec![0.0; (width + 1) * n_classes], precondition, objective);
        context.check()?;
        let bias = Array1::from_vec(found.place.split_off(width * n_classes));
        let weights = Array2::from_shape_vec((width, n_classes), found.place)
            .map_err(|_| crate::error::setting("the weights", width, "there are too many"))?;
        let (iterations, objective, converged) = (found.iterations, found.value * n as f64, found.converged);
        let solved = Solved { iterations, objective, converged, support_vectors: None };
        let scores = Linear { basis: samples.basis(), weights, bias, repairs: classes.repairs() };
        Ok(LinearClassifier { scores, classes, link: ScoreLink::Softmax, solved })
    }
}
