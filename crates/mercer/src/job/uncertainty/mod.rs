//! How sure a network may be: a linearised Laplace approximation, what it predicts, and the posterior itself for later.
//!
//! ```
//! use mercer::job::UncertaintyJob;
//! use mercer::spec::DataSpec;
//!
//! let train = DataSpec { data: vec!["x.npy".into()], labels: Some("y.npy".into()), ..DataSpec::default() };
//! let job = UncertaintyJob::new("model.onnx", train, vec!["test.npy".into()]);
//! let read: UncertaintyJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod choice;
mod figures;
mod findings;
mod labels;
mod opened;
mod predictions;
mod saved;
mod work;

pub use choice::{NoiseChoice, PosteriorDraws, PosteriorMethod, PosteriorMethodName, PriorChoice};
pub use findings::{Scores, Size, UncertaintyFindings};
pub use opened::OpenedUncertainty;
pub use predictions::Predictions;
pub use saved::SavedPosterior;

use super::{Destination, Job, Stopwatch, remark};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision, open_network};
use choice::{Predictive, is_positive};
use mercer_learn::laplace::{LaplaceSettings, Likelihood, PosteriorNeeds};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A posterior of a trained network, and its predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UncertaintyJob {
    /// The network's file.
    pub net: PathBuf,
    /// Which of its tensors are parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
    /// The logits, or any other node; if none is named, the first output, or what lies before its softmax or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Only parameters or layers of these names, the others being fixed (`*` and `?` are wild).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<String>,
    /// In which form the curvature of the parameters is kept.
    #[serde(default = "default_method")]
    pub method: PosteriorMethod,
    /// The precision of the prior.
    #[serde(default)]
    pub prior: PriorChoice,
    /// The standard deviation of the observations of a regression.
    #[serde(default)]
    pub noise: NoiseChoice,
    /// PosteriorDraws from the posterior, instead of probit's closed form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<PosteriorDraws>,
    /// Of sketches, landmarks and draws.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The samples that the network was trained on, with what they show. All other samples are read as they are.
    pub train: DataSpec,
    /// The number of samples that the network was trained on, if these are only a part of them, which stands for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_size: Option<usize>,
    /// The samples to predict.
    pub test: Vec<DataRef>,
    /// What they show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<DataRef>,
    /// Samples of another kind, which should be less certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ood: Vec<DataRef>,
    /// Samples that choose the prior, if validation does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<DataRef>,
    /// What they show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_labels: Option<DataRef>,
    /// The scalar that the network runs in.
    #[serde(default = "default_precision")]
    pub precision: Precision,
}

fn default_method() -> PosteriorMethod {
    PosteriorMethod::LastLayerFull
}

fn default_precision() -> Precision {
    Precision::F32
}

/// What a posterior would take.
#[derive(Clone, Debug, Serialize)]
pub struct UncertaintyPlan {
    /// The name of the method.
    pub method: &'static str,
    /// The scalar that the network runs in.
    pub precision: Precision,
    /// The samples to learn from.
    pub n_train: usize,
    /// Of the whole training set, where only a part was given.
    pub train_size: Option<usize>,
    /// The samples to predict.
    pub n_test: usize,
    /// Parameters, the largest matrix, and memory.
    pub needs: PosteriorNeeds,
}

impl UncertaintyJob {
    /// A posterior with the defaults: of the last layer, with the prior of highest evidence.
    pub fn new(net: impl Into<PathBuf>, train: DataSpec, test: Vec<DataRef>) -> Self {
        Self {
            net: net.into(),
            parameters: ParameterSpec::default(),
            node: None,
            params: Vec::new(),
            method: default_method(),
            prior: PriorChoice::default(),
            noise: NoiseChoice::default(),
            draws: None,
            seed: 0,
            train,
            train_size: None,
            test,
            test_labels: None,
            ood: Vec::new(),
            validation: Vec::new(),
            validation_labels: None,
            precision: default_precision(),
        }
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        let chosen_by = "‹validation› FILE[:KEY] ‹validation-labels› FILE[:KEY], or ‹prior› evidence, which needs none";
        match (self.prior, self.validation.is_empty(), &self.validation_labels) {
            (PriorChoice::Validation, true, _) | (PriorChoice::Validation, _, None) => {
                return Err(Error::new("‹prior› validation: there are no samples to choose it by").hint(chosen_by));
            }
            (PriorChoice::Given(_) | PriorChoice::Evidence, false, _)
            | (PriorChoice::Given(_) | PriorChoice::Evidence, _, Some(_)) => {
                let text = format!("‹validation› chooses the prior, but ‹prior› is {}", self.prior.name());
                return Err(Error::new(text).hint("‹prior› validation, or leave these samples out"));
            }
            _ => {}
        }
        if let PriorChoice::Given(precision) = self.prior
            && !is_positive(precision)
        {
            return Err(Error::new(format!("‹prior› {precision}: must be a positive number")));
        }
        if let NoiseChoice::Given(noise) = self.noise
            && !is_positive(noise)
        {
            return Err(Error::new(format!("‹noise-std› {noise}: must be a positive number")));
        }
        if let PosteriorMethod::Eigen { components, landmarks, .. } = self.method
            && components.min(landmarks) == 0
        {
            let setting = if components == 0 { "k" } else { "landmarks" };
            return Err(Error::new(format!("‹{setting}› 0: must be at least one")));
        }
        if self.train.labels.is_none() {
            return Err(Error::new("‹labels›: a posterior needs the labels of the training samples")
                .hint("‹labels› FILE[:KEY]"));
        }
        self.predictive().check()?;
        self.method.structure(self.seed).map(|_| ())
    }

    fn predictive(&self) -> Predictive {
        Predictive { draws: self.draws, seed: self.seed }
    }

    /// What the library is asked for.
    fn settings(&self, likelihood: Likelihood) -> Result<LaplaceSettings, Error> {
        Ok(LaplaceSettings {
            structure: self.method.structure(self.seed)?,
            likelihood,
            prior_precision: self.prior.start(),
            output: self.node.clone(),
            parameters: self.params.clone(),
            train_size: self.train_size,
        })
    }
}

impl Job for UncertaintyJob {
    const NAME: &'static str = "uncertainty";

    type Opened = OpenedUncertainty;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedUncertainty, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        let folder = OpenedUncertainty::folder(destination)?;
        let network = open_network(&self.net, &self.parameters)?;
        remark(Some(&network), opening.context);
        OpenedUncertainty::open(self, network, folder, watch, opening)
    }
}
