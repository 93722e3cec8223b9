//! The findings of a comparison.

use mercer_lens::{BlockMass, Extent, Likeness};
use serde::Serialize;

/// The similarity of kernels.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CompareFindings {
    /// The file of the network or of its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Samples of the kernels.
    pub n_samples: usize,
    /// Samples of the predictions.
    pub n_test: usize,
    /// Each kernel; of the last network, if there are several.
    pub matrices: Vec<MatrixFindings>,
    /// Each pair; of the last network, if there are several.
    pub pairs: Vec<PairFindings>,
    /// All networks, if there are several: by width, then seed, then checkpoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkFindings>,
    /// The angles of the samples in degrees, if these are points on a circle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub angles: Option<Vec<f64>>,
    /// What was found, in words.
    pub sentences: Vec<String>,
}

/// One of several networks.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkFindings {
    /// Its checkpoint, or its width, seed and epoch.
    pub name: String,
    /// The factor of its hidden widths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// The seed of its initial weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The epochs of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<usize>,
    /// The file of its weights, without folder and ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Its parameters.
    pub n_params: usize,
    /// The share of the samples on which the network itself is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The same of the test samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    /// Each kernel.
    pub matrices: Vec<MatrixFindings>,
    /// Each pair.
    pub pairs: Vec<PairFindings>,
}

/// A kernel by itself.
#[derive(Clone, Debug, Serialize)]
pub struct MatrixFindings {
    /// The kernel, file or store.
    pub name: String,
    /// Rows per sample: 1, or the outputs of a matrix-valued kernel.
    pub n_outputs: usize,
    /// What the kernel was multiplied by: one over the outputs for a sum over them.
    pub factor: f64,
    /// Its extreme eigenvalues.
    #[serde(flatten)]
    pub extent: Extent,
    /// How much lies between different outputs; for a matrix-valued kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<BlockMass>,
    /// The linearised network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<FitFindings>,
    /// `κ(x₀, x)` for all samples, if these are points on a circle; for a matrix-valued kernel the mean over outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<Vec<f64>>,
}

/// A linearised network, `f₀(x) + K(x, D)(K(D, D) + σI)⁻¹(Y − f₀(D))`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FitFindings {
    /// `σ`: the ridge that was asked for, and the least jitter that a factor needs.
    pub ridge: f64,
    /// What is left on the training samples, relative to what was to be fitted.
    pub residual: f64,
    /// The share of the test samples on which it is right; none without classes.
    pub accuracy: Option<f64>,
}

/// Two kernels.
#[derive(Clone, Debug, Serialize)]
pub struct PairFindings {
    /// The first.
    pub a: String,
    /// The second.
    pub b: String,
    /// Their similarity.
    #[serde(flatten)]
    pub likeness: Likeness,
    /// The difference of their largest eigenvalues, relative to the first's.
    pub lambda_max: Option<f64>,
    /// The same of the smallest; none if the first's is not above rounding.
    pub lambda_min: Option<f64>,
    /// The same of the condition numbers; none if one of them is unknown.
    pub condition: Option<f64>,
    /// `‖f_a − f_b‖ / ‖f_a‖` of the linearised networks on the test samples.
    pub predictions: Option<f64>,
    /// The share of the test samples on which the first linearised network is right.
    pub accuracy_a: Option<f64>,
    /// The same of the second.
    pub accuracy_b: Option<f64>,
}

impl PairFindings {
    /// Two kernels and their similarity; predictions are those of the linearised networks, if there are any.
    pub(super) fn new(a: &MatrixFindings, b: &MatrixFindings, likeness: Likeness, predictions: Option<f64>) -> Self {
        let relative = |a: f64, b: f64| (a != 0.0).then(|| (a - b).abs() / a.abs());
        let accuracy = |one: &MatrixFindings| one.fit.and_then(|fit| fit.accuracy);
        Self {
            a: a.name.clone(),
            b: b.name.clone(),
            likeness,
            lambda_max: relative(a.extent.lambda_max, b.extent.lambda_max),
            lambda_min: a.extent.condition.and_then(|_| relative(a.extent.lambda_min, b.extent.lambda_min)),
            condition: a.extent.condition.zip(b.extent.condition).and_then(|(a, b)| relative(a, b)),
            predictions,
            accuracy_a: accuracy(a),
            accuracy_b: accuracy(b),
        }
    }
}
