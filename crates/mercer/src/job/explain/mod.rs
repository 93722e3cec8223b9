//! Explains the predictions of a network by its training data, through a kernel machine that stands in for it.
//!
//! The machine is the explanation: its distance from the network is measured ([`Faithfulness`]), and its attribution
//! to training samples is exact.
//!
//! ```
//! use mercer::job::ExplainJob;
//! use mercer::spec::DataSpec;
//!
//! let train = DataSpec { data: vec!["x.npy".into()], labels: Some("y.npy".into()), ..DataSpec::default() };
//! let job = ExplainJob::new("model.onnx", train, vec!["test.npy".into()]);
//! let read: ExplainJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod attribute;
mod figures;
mod files;
mod findings;
mod methods;
mod opened;
mod outputs;
mod retrain;
mod sanity;
mod saved;
mod validate;
mod words;
mod work;

pub use super::surrogate::{FitTo, SurrogateMachine, SurrogateSpec};
pub use findings::{AttributionFindings, ExplainFindings, FgsmFindings, LayerShare, SurrogateFindings};
pub use mercer_lens::Faithfulness;
pub use opened::OpenedExplain;
pub use validate::{MethodFindings, SanityFindings, ValidateSpec, Validation, ValidationFindings};
pub use words::Sight;

use super::surrogate::Classified;
use super::{Destination, Job, Share, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The network and the training samples of a saved explanation.
pub(crate) fn known_of(from: &Path, opening: Opening<'_>) -> Result<Classified, Error> {
    saved::SavedExplanation::open(from, None, opening).map(|(known, _)| known)
}

/// The kernel of a surrogate if none is given: that of the report.
pub const DEFAULT_KERNEL: &str = "normalised(trace)";

/// Explains predictions by training data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainJob {
    /// The network's file; none if an earlier explanation is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<PathBuf>,
    /// An earlier explanation, whose surrogate is used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Which tensors of the network are parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
    /// The logits, or any other node. The default is the first output, or the value before its softmax or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Kernels in the kernel language. The first one explains; the others are compared with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// The surrogate.
    #[serde(default)]
    pub surrogate: SurrogateSpec,
    /// Machines to compare with that of the surrogate, on every kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_machines: Vec<SurrogateMachine>,
    /// The folder to cache kernel values in. Values that are there are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// The training samples of the network, with labels. All other samples are read in the same way.
    #[serde(default)]
    pub train: DataSpec,
    /// What the training samples are called; by default their row numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<DataRef>,
    /// Groups of training samples to sum over; by default their classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<DataRef>,
    /// The samples to explain.
    pub test: Vec<DataRef>,
    /// Their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<DataRef>,
    /// Samples of another kind, on which faithfulness is measured as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ood: Vec<DataRef>,
    /// The step by which test samples are perturbed against the network, to measure faithfulness there as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fgsm: Option<f64>,
    /// The class at which network and surrogate are compared.
    #[serde(default)]
    pub class: ClassChoice,
    /// The number of training samples to list at either end.
    #[serde(default = "usual_top")]
    pub top: usize,
    /// Test samples whose attributions are written in full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<usize>,
    /// Whether all attributions are written.
    #[serde(default)]
    pub all: bool,
    /// Whether the share of every layer in the scores is computed.
    #[serde(default)]
    pub by_layer: bool,
    /// Whether attributions predict what happens when training data is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate: Option<ValidateSpec>,
    /// The seed of folds, sketches and intervals.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The precision of network and kernel.
    #[serde(default = "usual_precision")]
    pub precision: Precision,
}

fn usual_top() -> usize {
    10
}

fn usual_precision() -> Precision {
    Precision::F32
}

/// The class at which network and surrogate are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassChoice {
    /// The correct class of each sample; without labels the predicted one.
    #[default]
    Correct,
    /// The class that the network decides for.
    Predicted,
    /// The class of this name.
    Named(String),
}

impl fmt::Display for ClassChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Correct => "correct",
            Self::Predicted => "predicted",
            Self::Named(name) => name,
        })
    }
}

impl FromStr for ClassChoice {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "correct" => Self::Correct,
            "predicted" => Self::Predicted,
            name => Self::Named(name.to_owned()),
        })
    }
}

/// The cost of an explanation.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainPlan {
    /// The kernels.
    pub kernels: Vec<String>,
    /// The training samples.
    pub n_train: usize,
    /// The samples to explain.
    pub n_test: usize,
    /// The classes.
    pub n_classes: usize,
    /// The memory of kernel rows and machine together.
    pub bytes: usize,
}

/// What a process added to the kernel values that a cache keeps.
#[derive(Clone, Debug, Serialize)]
pub struct FillFindings {
    /// The part of the work that it did.
    pub part: Share,
    /// Tiles that were computed.
    pub tiles_computed: usize,
    /// Blocks of samples that were prepared for them.
    pub prepared_blocks: usize,
}

impl ExplainJob {
    /// Computes one of several parts of the kernel values that the cache keeps, and explains nothing. Once all parts are
    /// there, the job itself reads them.
    ///
    /// # Errors
    /// If there is no cache, and as [`Job::open`].
    pub fn fill(&self, share: Share, opening: Opening<'_>) -> Result<FillFindings, Error> {
        share.check()?;
        if self.cache.is_none() {
            return Err(Error::new("‹part›: kernel values are shared through a folder").hint("‹cache› DIR"));
        }
        let destination = Destination { dry_run: true, ..Destination::default() };
        let opened = OpenedExplain::open(self, &destination, Stopwatch::start(), opening)?.with_stores()?;
        match self.precision {
            Precision::F32 => opened.fill::<f32>(share, opening.context),
            Precision::F64 => opened.fill::<f64>(share, opening.context),
        }
    }

    /// Explains with the defaults: a multinomial model on the normalised trace kernel, fitted to the labels.
    pub fn new(net: impl Into<PathBuf>, train: DataSpec, test: Vec<DataRef>) -> Self {
        Self { net: Some(net.into()), ..Self::empty(train, test) }
    }

    /// Explains new samples with an earlier explanation.
    pub fn again(from: impl Into<PathBuf>, test: Vec<DataRef>) -> Self {
        Self { from: Some(from.into()), ..Self::empty(DataSpec::default(), test) }
    }

    fn empty(train: DataSpec, test: Vec<DataRef>) -> Self {
        Self {
            net: None,
            from: None,
            parameters: ParameterSpec::default(),
            node: None,
            kernels: Vec::new(),
            surrogate: SurrogateSpec::default(),
            other_machines: Vec::new(),
            cache: None,
            train,
            ids: None,
            groups: None,
            test,
            test_labels: None,
            ood: Vec::new(),
            fgsm: None,
            class: ClassChoice::default(),
            top: usual_top(),
            rows: Vec::new(),
            all: false,
            by_layer: false,
            validate: None,
            seed: 0,
            precision: usual_precision(),
        }
    }

    /// The kernels, at least one.
    fn kernels(&self) -> Vec<String> {
        if self.kernels.is_empty() { vec![DEFAULT_KERNEL.to_owned()] } else { self.kernels.clone() }
    }

    /// The surrogates that are fitted on every kernel. The first one explains.
    fn surrogates(&self) -> Vec<SurrogateSpec> {
        let mut all = vec![self.surrogate.clone()];
        for &machine in &self.other_machines {
            if all.iter().all(|own| own.machine != machine) {
                // Penalties mean something else to another machine.
                all.push(SurrogateSpec { machine, penalty: Vec::new(), ..self.surrogate.clone() });
            }
        }
        all
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        self.surrogate.check()?;
        if let Some(epsilon) = self.fgsm.filter(|epsilon| !(epsilon.is_finite() && *epsilon > 0.0)) {
            return Err(Error::new(format!("‹fgsm› {epsilon}: must be a positive number")));
        }
        if self.test.is_empty() {
            return Err(Error::new("‹test›: there is nothing to explain").hint("‹test› FILE[:KEY]"));
        }
        if self.all && !self.rows.is_empty() {
            return Err(Error::new("‹all› and ‹rows›: all attributions are written, or those of some rows")
                .hint("give one of them"));
        }
        if let Some(validate) = &self.validate {
            validate.check()?;
            if self.from.is_some() {
                return Err(Error::new("‹validate› works on the training samples; it does not go with ‹from›"));
            }
        }
        match (&self.net, &self.from) {
            (None, None) => Err(Error::new("‹net›: which network?").hint("‹net› MODEL.onnx, or ‹from› DIR")),
            (Some(_), Some(_)) => Err(Error::new("‹from›: the folder holds its own network; leave ‹net› out")),
            (None, Some(_)) if !self.train.data.is_empty() || self.train.labels.is_some() => {
                Err(Error::new("‹from›: the folder holds its own training samples; leave ‹data› and ‹labels› out"))
            }
            (None, Some(_)) if !self.kernels.is_empty() => {
                Err(Error::new("‹from›: the folder holds its own kernel; leave ‹kernel› out"))
            }
            (None, Some(_))
                if self.surrogate != SurrogateSpec::default()
                    || !self.other_machines.is_empty()
                    || self.ids.is_some() =>
            {
                Err(Error::new("‹from›: the folder holds its own surrogate and ids")
                    .hint("leave ‹machine›, ‹to›, ‹penalty›, ‹penalty-norm›, ‹folds›, ‹neighbours› and ‹ids› out"))
            }
            (Some(_), None) if self.train.data.is_empty() => {
                Err(Error::new("‹data›: the training samples are missing").hint("‹data› FILE[:KEY]"))
            }
            _ => Ok(()),
        }
    }
}

impl Job for ExplainJob {
    const NAME: &'static str = "explain";

    type Opened = OpenedExplain;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedExplain, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        OpenedExplain::open(self, destination, watch, opening)
    }
}
