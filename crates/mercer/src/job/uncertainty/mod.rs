//! The uncertainty of a network: a linearised Laplace approximation, its predictions, and the saved posterior.
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

mod auto;
mod choice;
mod conformal;
mod figures;
mod findings;
mod functions;
mod labels;
mod opened;
mod predictions;
mod saved;
mod select;
mod work;

pub use auto::{AutoChoice, Better};
pub use choice::{NoiseChoice, PosteriorDraws, PosteriorMethod, PosteriorMethodName, Predictor, PriorChoice};
pub use conformal::{RegionFindings, Regions};
pub use findings::{Chosen, Scores, Size, UncertaintyFindings};
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
    /// The logits, or any other node. The default is the first output, or the value before its softmax or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Only parameters or layers with these names are uncertain; the others are fixed (`*` and `?` are wild).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<String>,
    /// The form of the curvature.
    #[serde(default = "default_method")]
    pub method: PosteriorMethod,
    /// Folders of eigenfunctions for the method `eigen`: one for all outputs (of a matrix-valued or a scalar kernel), or one for
    /// every output. Without any, functions are found from landmarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<PathBuf>,
    /// The precision of the prior.
    #[serde(default)]
    pub prior: PriorChoice,
    /// The standard deviation of the observation noise of a regression.
    #[serde(default)]
    pub noise: NoiseChoice,
    /// PosteriorDraws from the posterior, instead of probit's closed form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<PosteriorDraws>,
    /// The seed of sketches, landmarks and draws.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The training samples of the network, with labels. All other samples are read in the same way.
    pub train: DataSpec,
    /// The size of the training set, if these samples are only a part that represents it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_size: Option<usize>,
    /// The samples to predict.
    pub test: Vec<DataRef>,
    /// Their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<DataRef>,
    /// Out-of-distribution samples, which should be less certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ood: Vec<DataRef>,
    /// Validation samples, which the network was not trained on. They choose the temperature of the network, whether its
    /// probabilities or those of the posterior are the result, and the prior if it says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<DataRef>,
    /// Their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_labels: Option<DataRef>,
    /// The probability with which conformal sets of classes, or intervals of a regression, hold the truth. Validation samples
    /// calibrate them: half of them if the others choose something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformal: Option<f64>,
    /// The precision of the network.
    #[serde(default = "default_precision")]
    pub precision: Precision,
}

fn default_method() -> PosteriorMethod {
    PosteriorMethod::Auto
}

fn default_precision() -> Precision {
    Precision::F32
}

/// The cost of a posterior.
#[derive(Clone, Debug, Serialize)]
pub struct UncertaintyPlan {
    /// The name of the method.
    pub method: &'static str,
    /// The precision of the network.
    pub precision: Precision,
    /// The samples to learn from.
    pub n_train: usize,
    /// The size of the whole training set, if only a part was given.
    pub train_size: Option<usize>,
    /// The samples to predict.
    pub n_test: usize,
    /// Parameters, the largest matrix, and memory.
    pub needs: PosteriorNeeds,
    /// What the method `auto` chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<AutoChoice>,
}

impl UncertaintyJob {
    /// A posterior with the defaults: the best that fits into memory, with the prior that maximises the evidence.
    pub fn new(net: impl Into<PathBuf>, train: DataSpec, test: Vec<DataRef>) -> Self {
        Self {
            net: net.into(),
            parameters: ParameterSpec::default(),
            node: None,
            params: Vec::new(),
            method: default_method(),
            from: Vec::new(),
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
            conformal: None,
            precision: default_precision(),
        }
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        if self.validation.is_empty() != self.validation_labels.is_none() {
            return Err(Error::new("‹validation›: samples and their labels are needed, both or none")
                .hint("‹validation› FILE[:KEY] ‹validation-labels› FILE[:KEY]"));
        }
        if self.prior == PriorChoice::Validation && self.validation.is_empty() {
            let others =
                "‹validation› FILE[:KEY] ‹validation-labels› FILE[:KEY], or ‹prior› evidence, which needs none";
            return Err(Error::new("‹prior› validation: there are no samples to choose it by").hint(others));
        }
        if let Some(coverage) = self.conformal {
            if !(coverage > 0.0 && coverage < 1.0) {
                return Err(Error::new(format!("‹conformal› {coverage}: must be between 0 and 1")));
            }
            if self.validation.is_empty() {
                return Err(Error::new("‹conformal›: there are no samples to calibrate by")
                    .hint("‹validation› FILE[:KEY] ‹validation-labels› FILE[:KEY]"));
            }
        }
        if let PriorChoice::WeightDecay(decay) = self.prior
            && !is_positive(decay)
        {
            return Err(Error::new(format!("‹weight-decay› {decay}: must be a positive number")));
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
        if !self.from.is_empty() && !matches!(self.method, PosteriorMethod::Eigen { .. }) {
            let text = format!("‹from›: the method {} takes no eigenfunctions", self.method.name());
            return Err(Error::new(text).hint("‹method› eigen"));
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
        if self.method == PosteriorMethod::Auto { Ok(()) } else { self.method.structure(self.seed).map(|_| ()) }
    }

    fn predictive(&self) -> Predictive {
        Predictive { draws: self.draws, seed: self.seed, ..Predictive::default() }
    }

    /// The settings in the library's types.
    fn settings(&self, likelihood: Likelihood, n_train: usize) -> Result<LaplaceSettings, Error> {
        Ok(LaplaceSettings {
            structure: self.method.structure(self.seed)?,
            likelihood,
            prior_precision: self.prior.start(self.train_size.unwrap_or(n_train)),
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
