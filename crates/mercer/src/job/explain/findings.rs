//! The findings of an explanation.

use super::validate::ValidationFindings;
use super::words::Sight;
use crate::job::fit::SelectionFindings;
use crate::job::surrogate::{FitTo, SurrogateMachine};
use mercer_learn::surrogate::PenaltyNorm;
use mercer_lens::Faithfulness;
use serde::Serialize;

/// The findings of an explanation.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainFindings {
    /// The network's file, or the folder of the earlier explanation.
    pub network: String,
    /// The training samples.
    pub n_train: usize,
    /// The samples that were explained.
    pub n_test: usize,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The class at which network and surrogate are compared: `correct`, `predicted`, or a name.
    pub compared_class: String,
    /// The share of correct decisions of the network; none without labels.
    pub network_accuracy: Option<f64>,
    /// The perturbed test samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fgsm: Option<FgsmFindings>,
    /// The surrogates, most faithful first.
    pub surrogates: Vec<SurrogateFindings>,
    /// Which surrogate to use, in words.
    pub recommendation: Vec<String>,
    /// The attributions.
    pub summary: AttributionFindings,
    /// Test samples on which the explanation should not be trusted.
    pub n_doubtful: usize,
    /// Whether scores predict what happens when training data is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<ValidationFindings>,
}

/// A surrogate.
#[derive(Clone, Debug, Serialize)]
pub struct SurrogateFindings {
    /// The kernel.
    pub kernel: String,
    /// The machine on it.
    pub machine: SurrogateMachine,
    /// What it was fitted to.
    pub to: FitTo,
    /// What part of the network the kernel sees.
    pub sees: Sight,
    /// The penalty.
    pub penalty: Option<f64>,
    /// The norm that the penalty is of. Attributions depend on it.
    pub penalty_norm: Option<PenaltyNorm>,
    /// How the penalty was chosen from several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionFindings>,
    /// The iterations of the solver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
    /// Whether it reached its tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// The number of features, if the kernel has any.
    pub n_features: Option<usize>,
    /// The share of correct decisions of the surrogate on test samples; none without labels.
    pub accuracy: Option<f64>,
    /// How faithful it is to the network on the test samples.
    pub faithfulness: Faithfulness,
    /// The same on samples of another kind, at the predicted class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faithfulness_ood: Option<Faithfulness>,
    /// The same on test samples that were perturbed against the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faithfulness_fgsm: Option<Faithfulness>,
}

/// Test samples that were perturbed against the network: `x − ε·sign ∂ℓ/∂x`, with the log-odds ℓ of the correct class.
#[derive(Clone, Debug, Serialize)]
pub struct FgsmFindings {
    /// The size of the step, in the units of the network's inputs.
    pub epsilon: f64,
    /// The share of correct decisions of the network; none without labels.
    pub network_accuracy: Option<f64>,
}

/// The attributions of all scores, by the first kernel.
#[derive(Clone, Debug, Serialize)]
pub struct AttributionFindings {
    /// The kernel.
    pub kernel: String,
    /// The groups of training samples.
    pub groups: Vec<String>,
    /// The number of training samples that carry a score, `(Σ|A|)²/ΣA²`; the mean over the predicted classes.
    pub effective_samples: f64,
    /// The share of the listed samples in `Σ|A|`; the mean over the predicted classes.
    pub top_share: f64,
    /// The share of groups and scores whose mean attribution lies between the quartiles: no few samples dominate.
    pub mean_inside_quartiles: f64,
    /// The mean attribution to each group (columns) of the score of each class (rows), over the test samples that the
    /// network decides for that class. None for a class without such samples.
    pub mean_by_group: Vec<Option<Vec<f64>>>,
    /// The share of every layer in the scores of the predicted classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<LayerShare>>,
}

/// A layer's part in the scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerShare {
    /// The layer.
    pub layer: String,
    /// Its mean contribution to the score of the predicted class, without the bias.
    pub mean: f64,
    /// Its share in the sum of all layers.
    pub share: f64,
}
