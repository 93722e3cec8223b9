//! Means and variances of the outputs: what most predictions need, at the size of the outputs themselves.
//!
//! The covariances between `C` outputs of a sample are `C²` numbers. [`Functional`](super::Functional) holds them for all
//! samples; with thousands of classes that does not fit into any memory.

use super::likelihood::Likelihood;
use super::predictive::probit;
use ndarray::Array2;

/// The posterior over every output by itself, at some samples.
#[derive(Clone, Debug)]
pub struct Marginals {
    /// The outputs of the network: a row per sample.
    pub mean: Array2<f64>,
    /// Their variances, without the observation noise.
    pub variance: Array2<f64>,
    /// The mean probabilities of the classes over draws from the joint posterior, if they were asked for.
    pub drawn: Option<Array2<f64>>,
    /// The number of samples whose residual had a negative part, which was clipped.
    pub clipped: usize,
    pub(super) likelihood: Likelihood,
}

impl Marginals {
    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.mean.nrows()
    }

    /// The standard deviation of the observation noise of a regression.
    pub fn noise(&self) -> Option<f64> {
        self.likelihood.noise()
    }

    /// The probabilities of the network itself, without uncertainty.
    pub fn map(&self) -> Array2<f64> {
        self.likelihood.probabilities(self.mean.view())
    }

    /// The probabilities of the classes, in closed form.
    pub fn probit(&self) -> Array2<f64> {
        probit(self.likelihood, &self.mean, &self.variance)
    }
}
