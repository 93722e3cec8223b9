//! Compares kernels on the same samples in pairs: stored Gram matrices, kernels of a network, or both; over widths and
//! over training.
//!
//! ```
//! use mercer::job::CompareJob;
//!
//! let job = CompareJob::of_files(["a.npy", "b.zarr"]);
//! assert_eq!(serde_json::to_string(&job)?, r#"{"grams":["a.npy","b.zarr"]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! A kernel with a number per pair of samples, `κ`, stands for `κ ⊗ I` beside one with a matrix per pair (`full`). A
//! trace kernel is a sum over the outputs, so it is divided by their number; [`MatrixFindings::factor`] says so.

mod figures;
mod findings;
mod labels;
mod memory;
mod networks;
mod opened;
mod rows;
mod words;
mod work;

pub use findings::{CompareFindings, FitFindings, MatrixFindings, NetworkFindings, PairFindings};
pub use opened::OpenedCompare;

use super::train::TrainingSpec;
use super::{Destination, Job, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The kernels to compare, on which samples, of which networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompareJob {
    /// Files or stores with Gram matrices, all of the same samples in the same order.
    pub grams: Vec<String>,
    /// Kernels in the kernel language.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// The network's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<PathBuf>,
    /// A network described in TOML, with random weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<PathBuf>,
    /// Which tensors of the network are parameters.
    #[serde(skip_serializing_if = "is_default")]
    pub parameters: ParameterSpec,
    /// Checkpoints to look at, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<PathBuf>,
    /// Factors of the hidden widths of a described network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub widths: Vec<f64>,
    /// Described networks per width. Their seeds are [`seed`](Self::seed) and those after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<usize>,
    /// How described networks are trained on the samples; they are looked at after the epochs of `checkpoint_at`.
    /// Without any, they are not trained.
    #[serde(skip_serializing_if = "is_default")]
    pub training: TrainingSpec,
    /// The samples of the kernels, with labels for predictions.
    #[serde(skip_serializing_if = "is_default")]
    pub data: DataSpec,
    /// The samples of predictions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub test: Vec<DataRef>,
    /// Their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<DataRef>,
    /// What is added to the diagonals for predictions, relative to their mean.
    #[serde(skip_serializing_if = "is_default")]
    pub ridge: f64,
    /// The seed of everything random.
    #[serde(with = "crate::job::seed", skip_serializing_if = "is_default")]
    pub seed: u64,
    /// The precision of kernels. Small eigenvalues of ill-conditioned kernels are known only in double precision.
    #[serde(skip_serializing_if = "is_double")]
    pub precision: Precision,
}

impl Default for CompareJob {
    fn default() -> Self {
        Self {
            grams: Vec::new(),
            kernels: Vec::new(),
            net: None,
            arch: None,
            parameters: ParameterSpec::default(),
            checkpoints: Vec::new(),
            widths: Vec::new(),
            seeds: None,
            training: TrainingSpec::default(),
            data: DataSpec::default(),
            test: Vec::new(),
            test_labels: None,
            ridge: 0.0,
            seed: 0,
            precision: Precision::F64,
        }
    }
}

fn is_double(precision: &Precision) -> bool {
    *precision == Precision::F64
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The cost of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct ComparePlan {
    /// Samples.
    pub n_samples: usize,
    /// Test samples.
    pub n_test: usize,
    /// The kernels and files, with the rows of their matrices.
    pub kernels: Vec<(String, usize)>,
    /// Networks to look at: widths × seeds × checkpoints, or one.
    pub n_networks: usize,
    /// Peak memory.
    pub bytes: usize,
}

/// More networks than anyone compares in one run.
const MOST_NETWORKS: usize = 100_000;

impl CompareJob {
    /// A comparison of stored matrices.
    pub fn of_files<S: Into<String>>(grams: impl IntoIterator<Item = S>) -> Self {
        Self { grams: grams.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Whether described networks are trained.
    fn trains(&self) -> bool {
        !self.training.checkpoint_at.is_empty()
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str, hint: &str| Err(Error::new(text).hint(hint));
        if self.grams.len() + self.kernels.len() < 2 {
            return refuse(
                "there is nothing to compare with",
                "name two Gram matrices or more, or ‹kernel› full ‹kernel› pseudo with ‹net› and ‹data›",
            );
        }
        let has_data = !self.data.data.is_empty();
        if !self.kernels.is_empty() && !has_data {
            return refuse("‹kernel›: the samples are missing", "‹data› FILE[:KEY]");
        }
        if self.kernels.is_empty() && (has_data || self.net.is_some() || self.arch.is_some()) {
            return refuse("there is a network or data, but no kernel", "‹kernel› full ‹kernel› pseudo");
        }
        if self.net.is_some() && self.arch.is_some() {
            return refuse("‹net› and ‹arch› both name a network", "give one of them");
        }
        if self.arch.is_none() && (!self.widths.is_empty() || self.seeds.is_some() || self.trains()) {
            return refuse(
                "‹widths›, ‹seeds› and ‹checkpoint-at› are for a described network",
                "‹arch› FILE.toml; a trained network takes ‹weights› FILE…",
            );
        }
        if let Some(factor) = self.widths.iter().find(|factor| !(**factor > 0.0 && factor.is_finite())) {
            return refuse(&format!("‹widths› {factor}: factors must be above 0"), "‹widths› 0.5,1,2");
        }
        let times = self.checkpoints.len().max(self.training.checkpoint_at.len()).max(1);
        let n_networks = self.seeds.unwrap_or(1).saturating_mul(self.widths.len().max(1)).saturating_mul(times);
        if n_networks > MOST_NETWORKS {
            return refuse(
                &format!("‹widths›, ‹seeds› and checkpoints make {n_networks} networks"),
                &format!("at most {MOST_NETWORKS} are compared in one run"),
            );
        }
        if !self.trains() && self.training != TrainingSpec::default() {
            return refuse("there are settings of a training, but nothing is trained", "‹checkpoint-at› 0,50,200");
        }
        if self.seeds == Some(0) {
            return refuse("‹seeds› 0: at least one is needed", "‹seeds› 3");
        }
        if !self.checkpoints.is_empty() && self.net.is_none() && self.arch.is_none() {
            return refuse("‹weights›: there is no network", "‹net› MODEL.onnx");
        }
        if !self.checkpoints.is_empty() && (self.widths.len() > 1 || self.seeds.is_some_and(|n| n > 1)) {
            return refuse("‹weights› are of one network, not of several widths or seeds", "one run per network");
        }
        if !self.checkpoints.is_empty() && self.trains() {
            return refuse("‹weights› and ‹checkpoint-at› exclude each other", "give one of them");
        }
        if self.parameters.weights.is_some() {
            return refuse("the checkpoints are a list of their own", "‹weights› FILE…");
        }
        if self.trains() && self.data.labels.is_none() {
            return refuse("‹checkpoint-at› trains networks, but their labels are missing", "‹labels› FILE[:KEY]");
        }
        if self.training.checkpoint_at == [0] {
            return refuse("‹checkpoint-at› 0 is the initial network, without training", "‹checkpoint-at› 0,10,50");
        }
        if !self.test.is_empty() && self.data.labels.is_none() {
            return refuse("‹test›: predictions need the labels of the training samples", "‹labels› FILE[:KEY]");
        }
        if !self.test.is_empty() && self.net.is_none() && self.arch.is_none() {
            return refuse("‹test›: predictions are those of a linearised network", "‹net› MODEL.onnx");
        }
        if self.test.is_empty() && self.test_labels.is_some() {
            return refuse("‹test-labels›: the samples are missing", "‹test› FILE[:KEY]");
        }
        if self.test.is_empty() && self.data.labels.is_some() && !self.trains() {
            return refuse("‹labels› are for predictions, which need other samples", "‹test› FILE[:KEY]");
        }
        if !(self.ridge >= 0.0 && self.ridge.is_finite()) {
            return refuse(&format!("‹ridge› {}: must be 0 or more", self.ridge), "‹ridge› 1e-6");
        }
        if self.ridge != 0.0 && self.test.is_empty() {
            return refuse("‹ridge› is for predictions, and there are no test samples", "‹test› FILE[:KEY]");
        }
        self.training.check()
    }
}

impl Job for CompareJob {
    const NAME: &'static str = "compare";

    type Opened = OpenedCompare;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedCompare, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        OpenedCompare::open(self, destination, watch, opening)
    }
}
