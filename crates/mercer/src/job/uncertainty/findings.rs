//! The findings for a posterior.

use super::{Predictor, RegionFindings, UncertaintyJob};
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
    /// The quality of the network at the temperature that validation samples chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaled: Option<Scores>,
    /// The quality of the posterior.
    pub laplace: Scores,
    /// What validation samples chose; none without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The sets of classes, or the intervals of a regression, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conformal: Option<RegionFindings>,
    /// Whether the resulting probabilities predict the test labels worse than the network alone.
    pub worse_than_network: Option<bool>,
    /// Numerical repairs.
    pub repairs: Vec<String>,
    /// Samples whose residual had a negative part, which was cut off.
    pub clipped: usize,
}

/// What validation samples chose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chosen {
    /// Whose probabilities are the result.
    pub predictor: Predictor,
    /// The number of validation samples.
    pub n_samples: usize,
    /// The temperature of the network alone that predicts them best.
    pub temperature: f64,
    /// Their mean negative log likelihood under the network alone.
    pub network_nll: f64,
    /// The same at that temperature.
    pub scaled_nll: f64,
    /// The same under the posterior.
    pub laplace_nll: f64,
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
            scaled: None,
            laplace: Scores::default(),
            chosen: None,
            conformal: None,
            worse_than_network: None,
            repairs: Vec::new(),
            clipped: 0,
        }
    }

    /// The scores of the result.
    pub fn result(&self) -> &Scores {
        match (&self.scaled, self.chosen) {
            (Some(scaled), Some(Chosen { predictor: Predictor::Temperature, .. })) => scaled,
            _ => &self.laplace,
        }
    }

    /// Notes if the result is worse than the network alone, and if nothing was chosen by data that it has not seen.
    pub(super) fn compare(&mut self, context: &Context) {
        if self.chosen.is_none() && self.noise.is_none() {
            context.note(
                "without ‹validation› data that the network was not trained on, nothing chooses between the posterior and the \
                 network alone",
            );
        }
        if let (Some(network), Some(posterior)) = (self.map.nll(), self.result().nll()) {
            let (what, more) = match self.chosen.map(|chosen| chosen.predictor) {
                Some(Predictor::Temperature) => ("the network at its temperature", ""),
                _ => ("the posterior", "; another prior or method may do better"),
            };
            let note = worse(what, network, posterior);
            self.worse_than_network = Some(note.is_some());
            note.iter().for_each(|note| context.note(&format!("{note}{more}")));
        }
    }
}
