//! The findings for a posterior.

use super::UncertaintyJob;
use crate::spec::Precision;
use mercer_learn::laplace::{ClassScores, Detection, PosteriorNeeds, RegressionScores, worse};
use mercer_run::Context;
use serde::Serialize;

/// The findings for a posterior and its predictions.
#[derive(Clone, Debug, Serialize)]
pub struct UncertaintyFindings {
    /// The kind of result.
    pub kind: &'static str,
    /// The named files that were written with it.
    pub files: Vec<String>,
    /// The network's file.
    pub network: String,
    /// The name of the method.
    pub method: &'static str,
    /// The precision of the network.
    pub precision: Precision,
    /// The number of training samples.
    pub n_train: usize,
    /// The size of the whole training set, if only a part was given.
    pub train_size: Option<usize>,
    /// The samples that were predicted.
    pub n_test: usize,
    /// The size of the posterior.
    pub needs: Size,
    /// How the prior was chosen.
    pub prior: &'static str,
    /// Its precision.
    pub prior_precision: f64,
    /// The standard deviation of the observation noise of a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// How it was chosen.
    pub noise_choice: &'static str,
    /// `ln p(y)` in Laplace's approximation.
    pub log_evidence: f64,
    /// How class probabilities are computed: `probit`, or the number of draws.
    pub predictive: String,
    /// The quality of the network alone.
    pub map: Scores,
    /// The quality of the posterior.
    pub laplace: Scores,
    /// Whether the posterior predicts the test labels worse than the network alone.
    pub worse_than_network: Option<bool>,
    /// Numerical repairs.
    pub repairs: Vec<String>,
    /// Samples whose residual had a negative part, which was cut off.
    pub clipped: usize,
}

/// The size of a posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// The number of parameters that are not fixed, or of features that replace them.
    pub n_parameters: usize,
    /// The side of the largest matrix to decompose.
    pub side: usize,
}

/// The quality of predictions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scores {
    /// Of class probabilities.
    #[serde(flatten)]
    pub classes: Option<ClassScores>,
    /// Of a regression.
    #[serde(flatten)]
    pub values: Option<RegressionScores>,
    /// How well out-of-distribution samples are detected.
    #[serde(flatten)]
    pub detection: Option<Detection>,
}

impl Scores {
    fn nll(&self) -> Option<f64> {
        self.classes.as_ref().map(|scores| scores.nll).or(self.values.as_ref().map(|scores| scores.nll))
    }
}

/// The kind of result.
const KIND: &str = "uncertainty";

impl UncertaintyFindings {
    pub(super) fn begin(job: &UncertaintyJob, needs: PosteriorNeeds, n_train: usize, n_test: usize) -> Self {
        Self {
            kind: KIND,
            files: Vec::new(),
            network: job.net.display().to_string(),
            method: job.method.name(),
            precision: job.precision,
            n_train,
            train_size: job.train_size,
            n_test,
            needs: Size { n_parameters: needs.n_parameters, side: needs.side },
            prior: job.prior.name(),
            prior_precision: 0.0,
            noise: None,
            noise_choice: job.noise.name(),
            log_evidence: 0.0,
            predictive: job.predictive().text(),
            map: Scores::default(),
            laplace: Scores::default(),
            worse_than_network: None,
            repairs: Vec::new(),
            clipped: 0,
        }
    }

    /// Notes if the posterior is worse than the network.
    pub(super) fn compare(&mut self, context: &Context) {
        if let (Some(network), Some(posterior)) = (self.map.nll(), self.laplace.nll()) {
            let note = worse(network, posterior);
            self.worse_than_network = Some(note.is_some());
            note.iter().for_each(|note| context.note(note));
        }
    }
}
