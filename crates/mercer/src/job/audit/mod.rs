//! Finds training data that looks wrong: labels, duplicates, poison.
//!
//! ```
//! use mercer::job::AuditJob;
//! use mercer::spec::DataSpec;
//!
//! let train = DataSpec { data: vec!["x.npy".into()], labels: Some("y.npy".into()), ..DataSpec::default() };
//! let job = AuditJob::new("model.onnx", train);
//! let read: AuditJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod figures;
mod files;
mod findings;
mod opened;
mod poison;
mod work;

pub use findings::{AuditFindings, DuplicateFindings, ForensicFindings, OpinionFindings, PoisonFindings};
pub use opened::OpenedAudit;

use super::explain::{FitTo, SurrogateMachine, SurrogateSpec};
use super::{Destination, Job, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Looks for training data that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditJob {
    /// The network's file.
    pub net: PathBuf,
    /// Which of its tensors are parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
    /// The logits, or any other node. The default is the first output, or the value before its softmax or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The kernel in whose space samples are compared.
    #[serde(default = "usual_kernel")]
    pub kernel: String,
    /// The surrogate whose out-of-fold probabilities are taken; the machine is `glm`.
    #[serde(default)]
    pub surrogate: SurrogateSpec,
    /// The folder to cache kernel values in. Values that are there are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// The training samples, with the labels to check.
    pub train: DataSpec,
    /// What the training samples are called; by default their row numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<DataRef>,
    /// Which training samples are really wrong, to measure the audit by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<DataRef>,
    /// Training samples that are known to be poisoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poisoned: Option<DataRef>,
    /// Samples to trace back to the poisoned ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test: Vec<DataRef>,
    /// Which of them are really poisoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_poisoned: Option<DataRef>,
    /// Poisoned samples among the nearest from which on a test sample is flagged.
    #[serde(default = "usual_threshold")]
    pub threshold: usize,
    /// Similarity from which on two samples are near duplicates, as a distance from one.
    #[serde(default = "usual_near")]
    pub near: f64,
    /// The score from which on a sample is left out of the cleaned index.
    #[serde(default = "usual_cut")]
    pub cut: f64,
    /// The seed of folds, clusters and sketches.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The precision of network and kernel.
    #[serde(default = "usual_precision")]
    pub precision: Precision,
}

fn usual_kernel() -> String {
    super::explain::DEFAULT_KERNEL.to_owned()
}

fn usual_threshold() -> usize {
    3
}

fn usual_near() -> f64 {
    1e-4
}

fn usual_cut() -> f64 {
    0.95
}

fn usual_precision() -> Precision {
    Precision::F32
}

/// The cost of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct AuditPlan {
    /// The kernel.
    pub kernel: String,
    /// The training samples.
    pub n_samples: usize,
    /// The classes.
    pub n_classes: usize,
    /// The memory of kernel rows and machine together.
    pub bytes: usize,
}

impl AuditJob {
    /// An audit with the defaults.
    pub fn new(net: impl Into<PathBuf>, train: DataSpec) -> Self {
        Self {
            net: net.into(),
            parameters: ParameterSpec::default(),
            node: None,
            kernel: usual_kernel(),
            surrogate: SurrogateSpec::default(),
            cache: None,
            train,
            ids: None,
            truth: None,
            poisoned: None,
            test: Vec::new(),
            test_poisoned: None,
            threshold: usual_threshold(),
            near: usual_near(),
            cut: usual_cut(),
            seed: 0,
            precision: usual_precision(),
        }
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        self.surrogate.check()?;
        if self.surrogate.machine != SurrogateMachine::Glm || self.surrogate.to != FitTo::Labels {
            return Err(Error::new("‹machine› and ‹to›: an audit fits glm to the labels").hint("leave them out"));
        }
        if self.test.is_empty() != self.poisoned.is_none() {
            return Err(Error::new("‹poisoned› and ‹test›: test samples are traced back to poisoned training samples")
                .hint("give both, or neither"));
        }
        if self.test_poisoned.is_some() && self.test.is_empty() {
            return Err(Error::new("‹test-poisoned› says which of the ‹test› samples are poisoned"));
        }
        if self.threshold == 0 || self.threshold > self.surrogate.neighbours {
            let (threshold, neighbours) = (self.threshold, self.surrogate.neighbours);
            return Err(Error::new(format!(
                "‹threshold› {threshold}: must be between 1 and ‹neighbours› {neighbours}"
            )));
        }
        for (setting, value) in [("near", self.near), ("cut", self.cut)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::new(format!("‹{setting}› {value}: must be between 0 and 1")));
            }
        }
        Ok(())
    }
}

impl Job for AuditJob {
    const NAME: &'static str = "audit";

    type Opened = OpenedAudit;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedAudit, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        OpenedAudit::open(self, destination, watch, opening)
    }
}
