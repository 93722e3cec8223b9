//! From a Gaussian over outputs to predictions.
//!
//! ```text
//! probit        softmax( f_c / √(1 + π/8 Σ_cc) )                                  MacKay 1992
//! Monte Carlo   mean of softmax(f + s·Σ^½ z),  z ~ N(0, I)                         256 draws
//! ```
//!
//! `s` is one by default. Deng et al. 2022 (arXiv 2205.00165, appendix B) multiply their noise by 20 because it is
//! "pretty tiny": their covariance lacks the part that a few eigenfunctions miss, for which the residual correction is
//! the principled solution.

use super::likelihood::Likelihood;
use super::marginals::Marginals;
use crate::error::{Result, check_positive, check_size, setting};
use mercer_data::random::{ChaCha8Rng, stream};
use mercer_linalg::symmetric_eigen;
use mercer_run::Context;
use ndarray::{Array1, Array2, Array3, Axis};
use rand_distr::{Distribution, StandardNormal};

/// The posterior over the outputs at some samples.
#[derive(Clone, Debug)]
pub struct Functional {
    /// The outputs of the network: a row per sample.
    pub mean: Array2<f64>,
    /// The covariance of a sample's outputs, `[samples, outputs, outputs]`.
    pub covariance: Array3<f64>,
    /// The number of samples whose residual had a negative part, which was clipped.
    pub clipped: usize,
    pub(crate) likelihood: Likelihood,
}

/// How outputs are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictiveDraws {
    /// Draws per sample.
    pub draws: usize,
    /// The random seed.
    pub seed: u64,
    /// The factor on the noise: one, or the paper's 20.
    pub scale: f64,
}

impl Default for PredictiveDraws {
    fn default() -> Self {
        Self { draws: 256, seed: 0, scale: 1.0 }
    }
}

impl Functional {
    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.mean.nrows()
    }

    /// The standard deviation of the observation noise of a regression.
    pub fn noise(&self) -> Option<f64> {
        self.likelihood.noise()
    }

    /// The variance of every output, without the observation noise.
    pub fn variances(&self) -> Array2<f64> {
        let mut variances = Array2::zeros(self.mean.dim());
        for (mut row, covariance) in variances.outer_iter_mut().zip(self.covariance.axis_iter(Axis(0))) {
            row.assign(&covariance.diag());
        }
        variances
    }

    /// The means and variances, without the covariances between outputs.
    pub fn marginals(&self) -> Marginals {
        Marginals {
            mean: self.mean.clone(),
            variance: self.variances(),
            drawn: None,
            clipped: self.clipped,
            likelihood: self.likelihood,
        }
    }

    /// The probabilities of the network itself, without uncertainty.
    pub fn map(&self) -> Array2<f64> {
        self.likelihood.probabilities(self.mean.view())
    }

    /// The probabilities of the classes, in closed form.
    pub fn probit(&self) -> Array2<f64> {
        probit(self.likelihood, &self.mean, &self.variances())
    }

    /// The probabilities of the classes, as a mean over draws from the posterior.
    pub fn monte_carlo(&self, settings: &PredictiveDraws, context: &Context) -> Result<Array2<f64>> {
        Draws::new(settings)?.next(self, context)
    }
}

/// The probabilities of the classes in closed form.
pub(super) fn probit(likelihood: Likelihood, mean: &Array2<f64>, variance: &Array2<f64>) -> Array2<f64> {
    let shrink = variance.mapv(|variance| (1.0 + std::f64::consts::FRAC_PI_8 * variance).sqrt());
    likelihood.probabilities((mean / &shrink).view())
}

/// Draws for samples that come in several parts: the same as if they came in one.
pub(super) struct Draws {
    settings: PredictiveDraws,
    random: ChaCha8Rng,
}

impl Draws {
    pub(super) fn new(settings: &PredictiveDraws) -> Result<Self> {
        check_positive("the scale of the noise", settings.scale)?;
        if settings.draws == 0 {
            return Err(setting("the number of draws", 0, "there must be at least one"));
        }
        Ok(Self { settings: *settings, random: stream(settings.seed, "laplace/predictive") })
    }

    /// The mean probabilities of the next samples.
    pub(super) fn next(&mut self, functional: &Functional, context: &Context) -> Result<Array2<f64>> {
        let (mean, covariance) = (&functional.mean, &functional.covariance);
        check_size("the number of covariances", mean.nrows(), covariance.dim().0)?;
        let mut probabilities = functional.map();
        for ((mut row, mean), covariance) in
            probabilities.outer_iter_mut().zip(mean.outer_iter()).zip(covariance.axis_iter(Axis(0)))
        {
            context.check()?;
            let eigen = symmetric_eigen(covariance)?;
            let roots: Array1<f64> = eigen.values.mapv(|value| self.settings.scale * value.max(0.0).sqrt());
            let half = &eigen.vectors * &roots;
            let noise = Array2::from_shape_simple_fn((self.settings.draws, mean.len()), || {
                let number: f64 = StandardNormal.sample(&mut self.random);
                number
            });
            let outputs = noise.dot(&half.t()) + mean;
            let drawn = functional.likelihood.probabilities(outputs.view());
            row.assign(&drawn.mean_axis(Axis(0)).unwrap_or_default());
        }
        Ok(probabilities)
    }
}
