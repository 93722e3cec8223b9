//! Gaussian process classification by Laplace's method.
//!
//! The latent function has the logistic likelihood; its posterior is replaced by the Gaussian at its mode (Rasmussen and
//! Williams 2006, algorithms 3.1 and 3.2). The class probability is the mean of the sigmoid under the latent Gaussian, by
//! Gauss–Hermite quadrature. Several classes are one against the others, with probabilities made to sum to one.

use crate::classes::ClassSet;
use crate::classification::{Mode, mode};
use crate::error::{Result, check_size};
use crate::repair::{self, Repair};
use crate::samples::{Basis, Samples};
use crate::traits::{Classify, Fit, Predict};
use mercer_data::Classes;
use mercer_linalg::{Cholesky, matmul, symmetric_eigen};
use ndarray::{Array1, Array2, ArrayView1, Axis, CowArray, Ix2};

/// Nodes of the quadrature: sigmoids of latent deviations up to ten are exact to six digits.
const NODES: usize = 64;

/// Gaussian process classification: no settings, the kernel has them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessClassification;

/// The machine of [`ProcessClassification`]. Its scores are means of latent functions.
#[derive(Clone, Debug)]
pub struct ProcessClassifier {
    pub(crate) basis: Basis,
    /// Features of the training samples, if it was fitted on features.
    pub(crate) features: Array2<f64>,
    pub(crate) latent: Vec<Latent>,
    pub(crate) classes: ClassSet,
    pub(crate) repairs: Vec<Repair>,
}

/// One class against the others.
#[derive(Clone, Debug)]
pub(crate) struct Latent {
    pub(crate) coefficients: Array1<f64>,
    pub(crate) roots: Array1<f64>,
    /// The factor of `I + √w·K·√w`.
    pub(crate) lower: Array2<f64>,
    pub(crate) log_likelihood: f64,
}

impl From<Mode> for Latent {
    fn from(mode: Mode) -> Self {
        let log_likelihood = -mode.objective - 0.5 * mode.factor.log_det();
        Self { coefficients: mode.coefficients, roots: mode.roots, lower: mode.factor.lower, log_likelihood }
    }
}

impl Fit<Classes> for ProcessClassification {
    type Machine = ProcessClassifier;

    fn fit(&self, samples: &Samples<'_>, labels: &Classes) -> Result<ProcessClassifier> {
        samples.check_for_fit()?;
        let (classes, compact) = ClassSet::for_boundary(labels, samples.n_samples())?;
        let kernel = samples.gram();
        let mut repairs = classes.repairs();
        let problems = if classes.present().len() == 2 { 1..2 } else { 0..classes.present().len() };
        let mut latent = Vec::new();
        for class in problems {
            let positive: Vec<bool> = compact.iter().map(|&own| own == class).collect();
            let found = mode(kernel.view(), &positive)?;
            repairs.extend(repair::jitter(&found.factor));
            latent.push(Latent::from(found));
        }
        let features = match samples {
            Samples::Features(features) => features.to_owned(),
            Samples::Gram(_) => Array2::zeros((0, 0)),
        };
        Ok(ProcessClassifier { basis: samples.basis(), features, latent, classes, repairs })
    }
}

impl ProcessClassifier {
    /// Laplace's approximation of the log marginal likelihood, summed over the problems of one class against the others.
    pub fn log_likelihood(&self) -> f64 {
        self.latent.iter().map(|latent| latent.log_likelihood).sum()
    }

    fn n_training(&self) -> usize {
        self.latent.first().map_or(0, |latent| latent.coefficients.len())
    }

    fn kernel<'a>(&self, samples: &Samples<'a>) -> Result<CowArray<'a, f64, Ix2>> {
        let width = if self.basis == Basis::Gram { self.n_training() } else { self.features.ncols() };
        samples.check_for_predict(self.basis, width)?;
        Ok(match samples {
            Samples::Gram(kernel) => CowArray::from(*kernel),
            Samples::Features(features) => CowArray::from(matmul(*features, self.features.t())),
        })
    }

    /// Probabilities of all classes at samples with these prior variances `κ(x, x)`.
    pub fn posterior_probabilities(&self, samples: &Samples<'_>, prior: ArrayView1<'_, f64>) -> Result<Array2<f64>> {
        check_size("the number of prior variances", samples.n_samples(), prior.len())?;
        let kernel = self.kernel(samples)?;
        let quadrature = Quadrature::new(NODES)?;
        let mut shares = Array2::zeros((samples.n_samples(), self.latent.len()));
        for (latent, mut column) in self.latent.iter().zip(shares.columns_mut()) {
            let means = kernel.dot(&latent.coefficients);
            let factor = Cholesky { lower: latent.lower.clone(), jitter: 0.0, relative_jitter: 0.0 };
            let explained = factor.solve_lower((&kernel * &latent.roots).t())?;
            let explained = explained.mapv_into(|v| v * v).sum_axis(Axis(0));
            for (at, share) in column.iter_mut().enumerate() {
                *share = quadrature.sigmoid(means[at], (prior[at] - explained[at]).max(0.0).sqrt());
            }
        }
        let present = if self.latent.len() == 1 {
            let mut both = Array2::zeros((shares.nrows(), 2));
            both.column_mut(1).assign(&shares.column(0));
            both.column_mut(0).assign(&shares.column(0).mapv(|p| 1.0 - p));
            both
        } else {
            let sums = shares.sum_axis(Axis(1)).insert_axis(Axis(1));
            shares / &sums
        };
        Ok(self.classes.spread(present))
    }
}

impl Predict for ProcessClassifier {
    fn predict(&self, samples: &Samples<'_>) -> Result<Array2<f64>> {
        let kernel = self.kernel(samples)?;
        let n_classes = self.classes.present().len();
        let mut scores = Array2::zeros((kernel.nrows(), n_classes));
        let offset = n_classes - self.latent.len();
        for (at, latent) in self.latent.iter().enumerate() {
            scores.column_mut(at + offset).assign(&kernel.dot(&latent.coefficients));
        }
        Ok(scores)
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
