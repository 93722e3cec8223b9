//! Is new data like old data, seen through a network?
//!
//! ```
//! use mercer::job::ShiftJob;
//! use mercer::spec::DataSpec;
//!
//! let reference = DataSpec { data: vec!["a.npy".into()], ..DataSpec::default() };
//! let job = ShiftJob { test: vec!["b.npy".into()], ..ShiftJob::new(Some("model.onnx".into()), reference) };
//! let read: ShiftJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod classes;
mod figures;
mod files;
mod findings;
mod needs;
mod opened;
mod passes;
mod saved;
mod views;
mod words;
mod work;

pub use findings::{
    AccuracyFindings, LabelShiftFindings, SampleFindings, ShiftFindings, ShiftKind, TestFindings, UnlikeSample,
    ViewFindings,
};
pub use opened::OpenedShift;

use super::{Destination, Job, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Is new data like old data?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftJob {
    /// The network's file. Without it, the data itself is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<PathBuf>,
    /// A saved reference, in the place of network and old data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Which of the network's tensors are parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
    /// The logits, or any other node. The default is the first output, or the value before its softmax or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The layers, by name (`*` and `?` are wild). The default are the outputs of residual blocks, or what enters the products.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// Kernels that the samples are seen through as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// The old samples, with labels if they are known.
    #[serde(default)]
    pub reference: DataSpec,
    /// What the old samples are called; by default their files or row numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<DataRef>,
    /// The new samples. Without them, only the reference is saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test: Vec<DataRef>,
    /// The classes of the new samples, to compare the estimated accuracy with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<DataRef>,
    /// What the new samples are called, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_ids: Option<DataRef>,
    /// Permutations behind the p-values.
    #[serde(default = "usual_permutations")]
    pub permutations: usize,
    /// The corrected p-value up to which data counts as shifted.
    #[serde(default = "usual_level")]
    pub level: f64,
    /// Wider layers are reduced to this many numbers.
    #[serde(default = "usual_width")]
    pub reduce_to: usize,
    /// Frequencies of the Gaussian kernel's random features.
    #[serde(default = "usual_frequencies")]
    pub frequencies: usize,
    /// Landmarks of kernels without finite features.
    #[serde(default = "usual_landmarks")]
    pub landmarks: usize,
    /// A sample is kept if the density of the other set there, relative to its own, is at least this.
    #[serde(default = "usual_keep")]
    pub keep: f64,
    /// The seed of permutations, random features and subsets.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The precision of the network.
    #[serde(default = "usual_precision")]
    pub precision: Precision,
}

fn usual_permutations() -> usize {
    199
}

fn usual_level() -> f64 {
    0.05
}

fn usual_width() -> usize {
    1024
}

fn usual_frequencies() -> usize {
    256
}

fn usual_landmarks() -> usize {
    512
}

fn usual_keep() -> f64 {
    0.5
}

fn usual_precision() -> Precision {
    Precision::F32
}

/// The cost of looking for a shift.
#[derive(Clone, Debug, Serialize)]
pub struct ShiftPlan {
    /// The layers and kernels, and the numbers per sample of each.
    pub views: Vec<(String, usize)>,
    /// Old samples.
    pub n_samples: usize,
    /// New samples.
    pub n_test: usize,
    /// Samples of a block.
    pub block: usize,
    /// Passes over the samples: one if the features fit into memory, and two if not.
    pub n_passes: usize,
    /// Peak memory.
    pub bytes: usize,
}

impl ShiftJob {
    /// Looks through a network, or at the data itself, with the defaults.
    pub fn new(net: Option<PathBuf>, reference: DataSpec) -> Self {
        Self {
            net,
            from: None,
            parameters: ParameterSpec::default(),
            node: None,
            layers: Vec::new(),
            kernels: Vec::new(),
            reference,
            ids: None,
            test: Vec::new(),
            test_labels: None,
            test_ids: None,
            permutations: usual_permutations(),
            level: usual_level(),
            reduce_to: usual_width(),
            frequencies: usual_frequencies(),
            landmarks: usual_landmarks(),
            keep: usual_keep(),
            seed: 0,
            precision: usual_precision(),
        }
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self, destination: &Destination) -> Result<(), Error> {
        let positive =
            [("reduce-to", self.reduce_to), ("frequencies", self.frequencies), ("landmarks", self.landmarks)];
        for (name, value) in positive.into_iter().chain([("permutations", self.permutations)]) {
            if value == 0 {
                return Err(Error::new(format!("‹{name}› 0: at least one is needed")));
            }
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::new(format!("‹level› {}: must be above 0 and below 1", self.level)));
        }
        if !(self.keep >= 0.0 && self.keep.is_finite()) {
            return Err(Error::new(format!("‹keep-above› {}: must be a number that is not negative", self.keep)));
        }
        let least = 1.0 / (self.permutations as f64 + 1.0);
        if !self.test.is_empty() && least > self.level {
            let needed = (1.0 / self.level).ceil() - 1.0;
            let text = format!("‹permutations› {}: no p-value can be below {least:.3}", self.permutations);
            return Err(Error::new(text).hint(format!("‹permutations› {needed:.0} or more for ‹level› {}", self.level)));
        }
        if self.from.is_none() && self.reference.data.is_empty() {
            return Err(Error::new("‹data›: the old samples are missing")
                .hint("‹data› FILE[:KEY], or ‹from› DIR for a saved reference"));
        }
        let is_given = self.net.is_some()
            || self.node.is_some()
            || !self.layers.is_empty()
            || !self.kernels.is_empty()
            || !self.reference.data.is_empty()
            || self.reference.labels.is_some()
            || self.ids.is_some();
        if self.from.is_some() && is_given {
            return Err(Error::new(
                "‹from› holds the network, the old samples with their ids, the layers and the kernels",
            )
            .hint("leave the others out, or leave ‹from› out"));
        }
        if self.from.is_some() && self.test.is_empty() {
            return Err(Error::new("‹from›: there are no new samples").hint("‹test› FILE[:KEY]"));
        }
        if self.test.is_empty() && destination.path.is_none() && !destination.dry_run {
            return Err(Error::new("there is nothing to do: no new samples, and no place for a reference")
                .hint("‹test› FILE[:KEY] for new samples, ‹out› DIR to save a reference"));
        }
        if self.test_ids.is_some() && self.test.is_empty() {
            return Err(Error::new("‹test-ids›: there are no new samples").hint("‹test› FILE[:KEY]"));
        }
        if self.test_labels.is_some() && self.net.is_none() && self.from.is_none() {
            return Err(Error::new("‹test-labels›: without ‹net› there are no decisions to compare them with"));
        }
        if self.net.is_none() && self.from.is_none() && !self.layers.is_empty() {
            return Err(Error::new("‹layer›: layers are those of a network").hint("‹net› MODEL.onnx"));
        }
        Ok(())
    }
}

impl Job for ShiftJob {
    const NAME: &'static str = "shift";

    type Opened = OpenedShift;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedShift, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check(destination)?;
        OpenedShift::open(self, destination, watch, opening)
    }
}
