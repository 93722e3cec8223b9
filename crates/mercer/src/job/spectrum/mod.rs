//! Spectra of weights and kernels, at one or many checkpoints.
//!
//! ```
//! use mercer::job::SpectrumJob;
//!
//! let job = SpectrumJob::new("model.onnx");
//! let read: SpectrumJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod figures;
mod findings;
mod kernels;
mod opened;
mod products;
mod weights;
mod words;
mod work;

pub use findings::{
    CheckpointSpectra, DirectionFindings, KernelSpectrum, KernelTargets, LargeFindings, SpectrumFindings,
    WeightSpectrum,
};
pub use opened::OpenedSpectrum;

use super::{Destination, Job, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, ParameterSpec, Precision};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Spectra of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpectrumJob {
    /// The network's file.
    pub net: PathBuf,
    /// Which of its tensors are parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
    /// Checkpoints to look at instead of the values in the file, in order. The first is what later ones are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<PathBuf>,
    /// The weights, by name (`*` and `?` are wild); all by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// The samples on which kernels are computed, if any, with labels or targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSpec>,
    /// The tangent kernel.
    #[serde(default = "usual_kernel")]
    pub kernel: String,
    /// Directions in the space of a weight's inputs, one per row, to which its leading singular vectors are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<DataRef>,
    /// Leading eigenvectors that are compared with labels, directions and earlier checkpoints.
    #[serde(default = "usual_leading")]
    pub leading: usize,
    /// Products with a kernel from which its trace and density are estimated, instead of its matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<usize>,
    /// The seed of shuffled weights and random products.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
    /// The precision of kernels.
    #[serde(default = "usual_precision")]
    pub precision: Precision,
}

fn usual_kernel() -> String {
    "trace".to_owned()
}

fn usual_leading() -> usize {
    10
}

fn usual_precision() -> Precision {
    Precision::F32
}

/// The cost of spectra.
#[derive(Clone, Debug, Serialize)]
pub struct SpectrumPlan {
    /// The weights, with their rows and columns.
    pub weights: Vec<(String, [usize; 2])>,
    /// The checkpoints, or one.
    pub n_checkpoints: usize,
    /// Samples of the kernels.
    pub n_samples: usize,
    /// Whether kernels are known by their products alone.
    pub matrix_free: bool,
    /// Peak memory.
    pub bytes: usize,
}

impl SpectrumJob {
    /// Spectra of the weights, with the defaults.
    pub fn new(net: impl Into<PathBuf>) -> Self {
        Self {
            net: net.into(),
            parameters: ParameterSpec::default(),
            checkpoints: Vec::new(),
            layers: Vec::new(),
            data: None,
            kernel: usual_kernel(),
            direction: None,
            leading: usual_leading(),
            products: None,
            seed: 0,
            precision: usual_precision(),
        }
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        if self.leading == 0 {
            return Err(Error::new("‹leading› 0: at least one is needed"));
        }
        if self.products.is_some_and(|products| products < 20) {
            return Err(Error::new("‹products›: at least 20 are needed for a trace and a density"));
        }
        if self.data.is_none() && self.products.is_some() {
            return Err(Error::new("‹products› is for kernels, which need ‹data›").hint("‹data› FILE[:KEY]"));
        }
        if self.parameters.weights.is_some() {
            return Err(Error::new("the checkpoints are a list of their own").hint("‹weights› FILE…"));
        }
        Ok(())
    }
}

impl Job for SpectrumJob {
    const NAME: &'static str = "spectrum";

    type Opened = OpenedSpectrum;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedSpectrum, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        OpenedSpectrum::open(self, destination, watch, opening)
    }
}
