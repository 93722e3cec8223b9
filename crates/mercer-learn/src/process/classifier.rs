//! Gaussian process classification by Laplace's method.
//!
//! The posterior of latent functions is replaced by the Gaussian at its mode (Rasmussen and Williams 2006). Two classes
//! have one function and the logistic likelihood (algorithms 3.1 and 3.2); the class probability is the mean of the
//! sigmoid under the latent Gaussian, by Gauss–Hermite quadrature. Several classes have one function each and the
//! softmax (algorithms 3.3 and 3.4); their probabilities are means over draws.

use super::multinomial::Multinomial;
use crate::classes::ClassSet;
use crate::classification::{Mode, mode};
use crate::error::{Result, check_size};
use crate::laplace::PredictiveDraws;
use crate::repair::{self, Repair};
use crate::samples::{SampleKind, SampleRows};
use crate::traits::{Classify, Fit, Predict};
use mercer_data::Classes;
use mercer_linalg::{Cholesky, matmul, symmetric_eigen};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewD, Axis, CowArray, Ix2, aview0};

/// Nodes of the quadrature, which is accurate to six digits for latent deviations up to ten.
const NODES: usize = 64;

/// Draws of the latent functions of several classes: the standard error of a probability is at most 0.016.
const DRAWS: PredictiveDraws = PredictiveDraws { draws: 1000, seed: 0, scale: 1.0 };

/// Gaussian process classification. It has no settings beyond those of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessClassification;

/// The machine of [`ProcessClassification`]. Its scores are means of latent functions.
#[derive(Clone, Debug)]
pub struct ProcessClassifier {
    pub(crate) basis: SampleKind,
    /// Features of the training samples, if it was fitted on features.
    pub(crate) features: Array2<f64>,
    pub(crate) latent: Latent,
    pub(crate) classes: ClassSet,
    pub(crate) repairs: Vec<Repair>,
}

/// The latent functions.
#[derive(Clone, Debug)]
pub(crate) enum Latent {
    Binary(Binary),
    Several(Multinomial),
}

/// The second of two classes against the first.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) coefficients: Array1<f64>,
    pub(crate) roots: Array1<f64>,
    /// The factor of `I + √w·K·√w`.
    pub(crate) lower: Array2<f64>,
    pub(crate) log_likelihood: f64,
}

impl From<Mode> for Binary {
    fn from(mode: Mode) -> Self {
        let log_likelihood = -mode.objective - 0.5 * mode.factor.log_det();
        Self { coefficients: mode.coefficients, roots: mode.roots, lower: mode.factor.lower, log_likelihood }
    }
}

impl Fit<Classes> for ProcessClassification {
    type Machine = ProcessClassifier;

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, context: &Context) -> Result<ProcessClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        let kernel = samples.gram();
        let mut repairs = classes.repairs();
        let latent = if classes.present().len() == 2 {
            let positive: Vec<bool> = compact.iter().map(|&own| own == 1).collect();
            let found = mode(kernel.view(), &positive, context)?;
            repairs.extend(repair::jitter(&found.factor));
            Latent::Binary(found.into())
        } else {
            let (found, more) = Multinomial::fit(kernel.view(), &compact, classes.present().len(), context)?;
            repairs.extend(more);
            Latent::Several(found)
        };
        let features = match samples {
            SampleRows::Features(features) => features.to_owned(),
            SampleRows::Gram(_) => Array2::zeros((0, 0)),
        };
        Ok(ProcessClassifier { basis: samples.basis(), features, latent, classes, repairs })
    }
}

impl ProcessClassifier {
    /// Laplace's approximation of the log marginal likelihood.
    pub fn log_likelihood(&self) -> f64 {
        match &self.latent {
            Latent::Binary(latent) => latent.log_likelihood,
            Latent::Several(latent) => latent.log_likelihood,
        }
    }

    fn n_training(&self) -> usize {
        match &self.latent {
            Latent::Binary(latent) => latent.coefficients.len(),
            Latent::Several(latent) => latent.coefficients.nrows(),
        }
    }

    fn kernel<'a>(&self, samples: &SampleRows<'a>) -> Result<CowArray<'a, f64, Ix2>> {
        let width = if self.basis == SampleKind::Gram { self.n_training() } else { self.features.ncols() };
        samples.check_for_predict(self.basis, width)?;
        Ok(match samples {
            SampleRows::Gram(kernel) => CowArray::from(*kernel),
            SampleRows::Features(features) => CowArray::from(matmul(*features, self.features.t())),
        })
    }

    /// Probabilities of all classes at samples with these prior variances `κ(x, x)`.
    pub fn posterior_probabilities(&self, samples: &SampleRows<'_>, prior: ArrayView1<'_, f64>) -> Result<Array2<f64>> {
        check_size("the number of prior variances", samples.n_samples(), prior.len())?;
        let kernel = self.kernel(samples)?;
        let present = match &self.latent {
            Latent::Binary(latent) => latent.probabilities(kernel.view(), prior)?,
            Latent::Several(latent) => {
                latent.posterior(kernel.view(), prior)?.monte_carlo(&DRAWS, &mercer_run::Context::new())?
            }
        };
        Ok(self.classes.spread(present))
    }
}

impl Binary {
    fn probabilities(&self, kernel: ArrayView2<'_, f64>, prior: ArrayView1<'_, f64>) -> Result<Array2<f64>> {
        let quadrature = Quadrature::new(NODES)?;
        let means = kernel.dot(&self.coefficients);
        let factor = Cholesky { lower: self.lower.clone(), jitter: 0.0, relative_jitter: 0.0 };
        let explained = factor.solve_lower((&kernel * &self.roots).t())?;
        let explained = explained.mapv_into(|v| v * v).sum_axis(Axis(0));
        let mut both = Array2::zeros((kernel.nrows(), 2));
        for (at, mut row) in both.outer_iter_mut().enumerate() {
            let share = quadrature.sigmoid(means[at], (prior[at] - explained[at]).max(0.0).sqrt());
            (row[0], row[1]) = (1.0 - share, share);
        }
        Ok(both)
    }
}

impl Predict for ProcessClassifier {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        let kernel = self.kernel(samples)?;
        Ok(match &self.latent {
            Latent::Binary(latent) => {
                let mut scores = Array2::zeros((kernel.nrows(), 2));
                scores.column_mut(1).assign(&kernel.dot(&latent.coefficients));
                scores
            }
            Latent::Several(latent) => matmul(kernel.view(), latent.coefficients.view()),
        })
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        match &self.latent {
            Latent::Binary(latent) => vec![
                ("coefficients", latent.coefficients.view().into_dyn()),
                ("curvatures", latent.roots.view().into_dyn()),
                ("factor", latent.lower.view().into_dyn()),
                ("marginal likelihood", aview0(&latent.log_likelihood).into_dyn()),
            ],
            Latent::Several(latent) => {
                let information = latent.information.iter().map(|own| ("curvatures", own.view().into_dyn()));
                let mut numbers: Vec<_> = information.collect();
                numbers.push(("coefficients", latent.coefficients.view().into_dyn()));
                numbers.push(("factor", latent.lower.view().into_dyn()));
                numbers.push(("marginal likelihood", aview0(&latent.log_likelihood).into_dyn()));
                numbers
            }
        }
    }

    fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}

impl Classify for ProcessClassifier {
    fn classes(&self) -> &ClassSet {
        &self.classes
    }
}

/// Means under the standard Gaussian: nodes and weights from the Jacobi matrix (Golub and Welsch 1969).
struct Quadrature {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl Quadrature {
    fn new(n: usize) -> Result<Self> {
        let mut jacobi = Array2::zeros((n, n));
        for k in 1..n {
            jacobi[(k, k - 1)] = (k as f64).sqrt();
            jacobi[(k - 1, k)] = (k as f64).sqrt();
        }
        let eigen = symmetric_eigen(jacobi.view())?;
        Ok(Self { nodes: eigen.values.to_vec(), weights: eigen.vectors.row(0).iter().map(|v| v * v).collect() })
    }

    /// `∫ σ(mean + deviation·z) N(z) dz`.
    fn sigmoid(&self, mean: f64, deviation: f64) -> f64 {
        let value = |z: &f64| 1.0 / (1.0 + (-(mean + deviation * z)).exp());
        self.nodes.iter().zip(&self.weights).map(|(z, weight)| weight * value(z)).sum()
    }
}
