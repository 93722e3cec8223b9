//! The findings of probes.

use mercer_lens::collapse::Collapse;
use mercer_lens::probe::{Curves, LinearProbe, Probed};
use serde::Serialize;

/// The findings of probes.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeFindings {
    /// The network's file.
    pub network: String,
    /// The samples that probes were trained on.
    pub n_samples: usize,
    /// The samples that they were tested on.
    pub n_test: usize,
    /// Whether these were held out from the training samples.
    pub held_out: bool,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The most frequent class has this share of the test samples.
    pub chance: f64,
    /// Neighbours that vote.
    pub neighbours: usize,
    /// The cost of the support vector machines, relative to one over the mean square norm of the samples.
    pub cost: f64,
    /// Best accuracies of the three probes that differ by at most this much agree.
    pub tolerance: f64,
    /// The accuracy of the network on the test samples; of the last checkpoint, if there are several.
    pub network_accuracy: f64,
    /// The first layer from which on the three probes agree.
    pub agree_from: Option<String>,
    /// The layers, in the order in which they are computed; of the last checkpoint, if there are several.
    pub layers: Vec<LayerFindings>,
    /// All checkpoints, if any are given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointFindings>,
    /// How similar layers are, within and across checkpoints and networks.
    pub similarity: SimilarityFindings,
    /// What was found, in words.
    pub sentences: Vec<String>,
}

/// A checkpoint.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointFindings {
    /// Its file.
    pub name: String,
    /// The accuracy of the network on the test samples.
    pub network_accuracy: f64,
    /// The first layer from which on the three probes agree.
    pub agree_from: Option<String>,
    /// Its layers.
    pub layers: Vec<LayerFindings>,
}

/// A layer.
#[derive(Clone, Debug, Serialize)]
pub struct LayerFindings {
    /// The node.
    pub node: String,
    /// Its numbers per sample.
    pub n_features: usize,
    /// Those that are the same for all training samples, and were dropped.
    pub n_dead: usize,
    /// The principal components of the others.
    pub n_components: usize,
    /// The best accuracy of each probe over all numbers of components; none for a constant layer.
    pub accuracy: Option<Probed<f64>>,
    /// The least number of components with 90 % of it.
    pub d90: Option<Probed<usize>>,
    /// The share of the variance that these explain.
    pub variance_at_d90: Option<Probed<f64>>,
    /// How many dimensions the layer uses.
    pub intrinsic_dimension: IntrinsicDimension,
    /// Neural collapse.
    #[serde(flatten)]
    pub collapse: Collapse,
    /// A linear classifier on all components, and its control.
    pub linear: Option<LinearProbe>,
    /// The accuracy of the linear classifier on the same layer of the network with shuffled weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrained: Option<f64>,
    /// Accuracy against the number of components.
    pub curves: Curves,
    /// The share of the variance that the first components explain, for the same numbers.
    pub explained: Vec<f64>,
}

/// How many dimensions a layer uses.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IntrinsicDimension {
    /// Principal components for 90 % of the variance, after standardisation.
    pub pca90: usize,
    /// By the distances to the two nearest samples, without standardisation.
    pub twonn: Option<f64>,
    /// Its standard error.
    pub twonn_error: Option<f64>,
}

/// How similar layers and kernels are.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarityFindings {
    /// Training samples that were compared.
    pub n_samples: usize,
    /// Permutations behind the p-values.
    pub permutations: usize,
    /// The layers and kernels; checkpoints and other networks are before a colon.
    pub names: Vec<String>,
    /// Debiased linear CKA.
    pub linear: SimilarityMatrix,
    /// The same between Gaussian kernels, whose length scale is the median distance; kernels of the user are as they are.
    pub gaussian: SimilarityMatrix,
}

/// A similarity for every pair.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarityMatrix {
    /// Debiased CKA; none if one side is constant.
    pub cka: Vec<Vec<Option<f64>>>,
    /// `(1 + b)/(1 + B)` for `b` of `B` permutations with at least this similarity; empty without permutations.
    pub p_values: Vec<Vec<Option<f64>>>,
}
