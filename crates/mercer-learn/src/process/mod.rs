//! Gaussian processes: regression with its marginal likelihood, hyperparameter optimisation, classification.
//!
//! ```text
//! mean(x) = κ(x, X)·a,   a = (K + σ²I)⁻¹·y        cov(x, x') = κ(x, x') − κ(x, X)·(K + σ²I)⁻¹·κ(X, x')
//! ln p(y) = −½yᵀa − ½ln det(K + σ²I) − ½N ln 2π,   ∂/∂θ = ½tr((aaᵀ − (K + σ²I)⁻¹)·∂K/∂θ)
//! ```
//!
//! Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and equations 2.23 to 2.30,
//! 5.9. Several targets share kernel and noise; their log likelihoods add up.
//!
//! ```
//! use mercer_learn::process::ProcessRegression;
//! use mercer_learn::{Fit, SampleRows};
//! use ndarray::array;
//!
//! let (gram, targets) = (array![[1.0, 0.5], [0.5, 1.0]], array![[1.0], [-1.0]]);
//! let process = ProcessRegression::new(0.01)?.fit(&SampleRows::Gram(gram.view()), &targets)?;
//! // The first sample again, and one that has nothing to do with either.
//! let rows = array![[1.0, 0.5], [0.0, 0.0]];
//! let found = process.posterior(&SampleRows::Gram(rows.view()), array![1.0, 1.0].view())?;
//! assert!(found.means[[0, 0]] > 0.9 && found.variances[0] < 0.02);
//! assert_eq!((found.means[[1, 0]], found.variances[1]), (0.0, 1.0));
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

mod classifier;
mod multinomial;
mod tune;

pub(crate) use classifier::{Binary, Latent};
pub use classifier::{ProcessClassification, ProcessClassifier};
pub(crate) use multinomial::Multinomial;
pub use tune::{Covariance, Tune, Tuned};

use crate::error::{Result, check_not_negative, check_size};
use crate::regression::check;
use crate::repair::{self, Repair};
use crate::samples::{SampleKind, SampleRows};
use crate::traits::{Fit, Predict};
use mercer_linalg::{Cholesky, cholesky, cholesky_shifted, matmul, matmul_into};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewD, Axis, CowArray, Ix2, aview0};
use rand_distr::{Distribution, StandardNormal};

/// Gaussian process regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessRegression {
    noise: f64,
    centred: bool,
}

impl ProcessRegression {
    /// With this noise variance, zero or positive.
    pub fn new(noise: f64) -> Result<Self> {
        Ok(Self { noise: check_not_negative("the noise", noise)?, centred: false })
    }

    /// Around the mean of the targets instead of zero.
    pub fn centred(self) -> Self {
        Self { centred: true, ..self }
    }
}

/// The machine of [`ProcessRegression`].
#[derive(Clone, Debug)]
pub struct Process {
    pub(crate) basis: SampleKind,
    /// Features of the training samples, if it was fitted on features.
    pub(crate) features: Array2<f64>,
    pub(crate) factor: Cholesky<f64>,
    /// `a`, a column per target.
    pub(crate) coefficients: Array2<f64>,
    pub(crate) means: Array1<f64>,
    pub(crate) noise: f64,
    pub(crate) log_likelihood: f64,
    pub(crate) repairs: Vec<Repair>,
}

/// The predictions of a Gaussian process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessPosterior {
    /// A row per sample, a column per target.
    pub means: Array2<f64>,
    /// The variance of the function at each sample, without noise; the same for all targets.
    pub variances: Array1<f64>,
}

impl Fit<Array2<f64>> for ProcessRegression {
    type Machine = Process;

    fn learn(&self, samples: &SampleRows<'_>, targets: &Array2<f64>, _: &Context) -> Result<Process> {
        check(samples, targets.view())?;
        let (means, targets, mut repairs) = crate::regression::centre(targets.view(), self.centred);
        let factor = cholesky_shifted(samples.gram().view(), self.noise)?;
        repairs.extend(repair::jitter(&factor));
        let coefficients = factor.solve(targets.view())?;
        let log_likelihood = log_likelihood(&factor, targets.view(), coefficients.view());
        let features = match samples {
            SampleRows::Features(features) => features.to_owned(),
            SampleRows::Gram(_) => Array2::zeros((0, 0)),
        };
        let (basis, noise) = (samples.basis(), self.noise);
        Ok(Process { basis, features, factor, coefficients, means, noise, log_likelihood, repairs })
    }
}

/// `Σ ln p(y)` over the targets.
fn log_likelihood(factor: &Cholesky<f64>, targets: ArrayView2<'_, f64>, coefficients: ArrayView2<'_, f64>) -> f64 {
    let (n, m) = (targets.nrows() as f64, targets.ncols() as f64);
    let fit = (&targets * &coefficients).sum();
    -0.5 * (fit + m * (factor.log_det() + n * std::f64::consts::TAU.ln()))
}

impl Process {
    /// The logarithm of the marginal likelihood, summed over targets.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// The variance of the noise.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    fn kernel<'a>(&self, samples: &SampleRows<'a>) -> Result<CowArray<'a, f64, Ix2>> {
        let width = if self.basis == SampleKind::Gram { self.factor.dim() } else { self.features.ncols() };
        samples.check_for_predict(self.basis, width)?;
        Ok(match samples {
            SampleRows::Gram(kernel) => CowArray::from(*kernel),
            SampleRows::Features(features) => CowArray::from(matmul(*features, self.features.t())),
        })
    }

    /// Means and variances at samples with these prior variances `κ(x, x)`.
    pub fn posterior(&self, samples: &SampleRows<'_>, prior: ArrayView1<'_, f64>) -> Result<ProcessPosterior> {
        check_size("the number of prior variances", samples.n_samples(), prior.len())?;
        let kernel = self.kernel(samples)?;
        let explained = self.factor.solve_lower(kernel.t())?;
        let explained = explained.mapv_into(|v| v * v).sum_axis(Axis(0));
        // Rounding may make the explained variance slightly too large.
        let variances = prior.iter().zip(&explained).map(|(prior, explained)| (prior - explained).max(0.0)).collect();
        let means = matmul(kernel.view(), self.coefficients.view()) + &self.means;
        Ok(ProcessPosterior { means, variances })
    }

    /// Functions drawn from the posterior of one target, at samples with this prior covariance, with a column per draw.
    pub fn draw(
        &self,
        samples: &SampleRows<'_>,
        prior: ArrayView2<'_, f64>,
        target: usize,
        count: usize,
        seed: u64,
    ) -> Result<Array2<f64>> {
        check_size("the rows of the prior covariance", samples.n_samples(), prior.nrows())?;
        if target >= self.coefficients.ncols() {
            return Err(crate::error::setting("the target", target, "there are fewer targets"));
        }
        let kernel = self.kernel(samples)?;
        let explained = self.factor.solve_lower(kernel.t())?;
        let mut covariance = prior.to_owned();
        matmul_into(-1.0, explained.t(), explained.view(), true, covariance.view_mut());
        let covariance = (&covariance + &covariance.t()) * 0.5;
        let factor = cholesky(covariance.view())?;
        let mut random = mercer_data::random::stream(seed, "process/draws");
        let noise = Array2::from_shape_simple_fn((prior.nrows(), count), || StandardNormal.sample(&mut random));
        let mean = matmul(kernel.view(), self.coefficients.column(target).insert_axis(Axis(1))) + self.means[target];
        Ok(matmul(factor.lower.view(), noise.view()) + &mean)
    }
}

impl Predict for Process {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        Ok(matmul(self.kernel(samples)?.view(), self.coefficients.view()) + &self.means)
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        vec![
            ("coefficients", self.coefficients.view().into_dyn()),
            ("factor", self.factor.lower.view().into_dyn()),
            ("means", self.means.view().into_dyn()),
            ("marginal likelihood", aview0(&self.log_likelihood).into_dyn()),
        ]
    }

    fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}
