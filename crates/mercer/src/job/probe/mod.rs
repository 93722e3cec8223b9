//! Looks into the layers of a network: probes, dimensions, collapse, similarity.
//!
//! ```
//! use mercer::job::ProbeJob;
//! use mercer::spec::DataSpec;
//!
//! let train = DataSpec { data: vec!["x.npy".into()], labels: Some("y.npy".into()), ..DataSpec::default() };
//! let job = ProbeJob::new("model.onnx", train);
//! let read: ProbeJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

pub(in crate::job) mod figures;
mod findings;
mod layer;
mod needs;
mod opened;
mod similarity;
mod words;
mod work;

pub use findings::{
    CheckpointFindings, IntrinsicDimension, LayerFindings, ProbeFindings, SimilarityFindings, SimilarityMatrix,
};
pub use opened::OpenedProbe;

use super::{Destination, Job, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Looks into the layers of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeJob {
    /// The network's file.
    pub net: PathBuf,
    /// Which of its tensors are parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
    /// Checkpoints to look at instead of the values in the file, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<PathBuf>,
    /// The logits, or any other node. The default is the first output, or the value before its softmax or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The layers, by name (`*` and `?` are wild). The default are the outputs of residual blocks, or what enters the products.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// The samples that probes are trained on.
    pub train: DataSpec,
    /// The samples that they are tested on. Without them, a fifth of the training samples is held out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test: Vec<DataRef>,
    /// The classes of the test samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<DataRef>,
    /// Neighbours that vote.
    #[serde(default = "usual_neighbours")]
    pub neighbours: usize,
    /// The cost of support vector machines, relative to one over the mean square norm of the samples; 0 for none.
    #[serde(default = "usual_cost")]
    pub cost: f64,
    /// Whether the network with shuffled weights is probed as well.
    #[serde(default)]
    pub untrained: bool,
    /// Training samples that are compared in pairs: for TwoNN and for the similarity of layers.
    #[serde(default = "usual_pairs")]
    pub pairs: usize,
    /// Permutations for the p-values of similarities.
    #[serde(default = "usual_permutations")]
    pub permutations: usize,
    /// Kernels whose similarity with the layers is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// Other networks whose layers are compared with these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<PathBuf>,
    /// The seed of held-out samples, shuffled labels, shuffled weights and permutations.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The precision of the network.
    #[serde(default = "usual_precision")]
    pub precision: Precision,
}

fn usual_neighbours() -> usize {
    10
}

fn usual_cost() -> f64 {
    1.0
}

fn usual_pairs() -> usize {
    2000
}

fn usual_permutations() -> usize {
    99
}

fn usual_precision() -> Precision {
    Precision::F32
}

/// The cost of probing.
#[derive(Clone, Debug, Serialize)]
pub struct ProbePlan {
    /// The layers and the numbers per sample of each.
    pub layers: Vec<(String, usize)>,
    /// Training samples.
    pub n_samples: usize,
    /// Test samples.
    pub n_test: usize,
    /// Networks to look into: checkpoints, or one.
    pub n_networks: usize,
    /// Forward passes over the samples per network. One, unless the activations of all layers do not fit into memory.
    pub n_passes: usize,
    /// Peak memory.
    pub bytes: usize,
}

impl ProbeJob {
    /// Probes with the defaults.
    pub fn new(net: impl Into<PathBuf>, train: DataSpec) -> Self {
        Self {
            net: net.into(),
            parameters: ParameterSpec::default(),
            checkpoints: Vec::new(),
            node: None,
            layers: Vec::new(),
            train,
            test: Vec::new(),
            test_labels: None,
            neighbours: usual_neighbours(),
            cost: usual_cost(),
            untrained: false,
            pairs: usual_pairs(),
            permutations: usual_permutations(),
            kernels: Vec::new(),
            against: Vec::new(),
            seed: 0,
            precision: usual_precision(),
        }
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        if !self.test.is_empty() && self.test_labels.is_none() {
            return Err(Error::new("‹test›: the classes of the held-out samples are missing")
                .hint("‹test-labels› FILE[:KEY], one per sample"));
        }
        if self.neighbours == 0 {
            return Err(Error::new("‹neighbours› 0: at least one is needed"));
        }
        if !(self.cost >= 0.0 && self.cost.is_finite()) {
            return Err(Error::new(format!(
                "‹svm-cost› {}: must be positive, or 0 for no support vector machines",
                self.cost
            )));
        }
        if self.pairs < 4 {
            return Err(Error::new(format!("‹compared› {}: at least 4 samples are needed", self.pairs)));
        }
        if self.parameters.weights.is_some() {
            return Err(Error::new("the checkpoints of a probe are a list of their own").hint("‹weights› FILE…"));
        }
        Ok(())
    }
}

impl Job for ProbeJob {
    const NAME: &'static str = "probe";

    type Opened = OpenedProbe;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedProbe, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        OpenedProbe::open(self, destination, watch, opening)
    }
}
