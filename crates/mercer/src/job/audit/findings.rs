//! The findings of an audit.

use mercer_lens::audit::AuditMeasures;
use mercer_lens::forensics::Detection;
use serde::Serialize;

/// The findings of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct AuditFindings {
    /// The network's file.
    pub network: String,
    /// The kernel.
    pub kernel: String,
    /// The training samples.
    pub n_samples: usize,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The penalty of the surrogate.
    pub penalty: f64,
    /// The accuracy of the network on the training samples.
    pub training_accuracy: f64,
    /// The accuracy of the surrogate on samples it was not fitted on.
    pub out_of_fold_accuracy: f64,
    /// The share of wrong labels that the confident joint estimates (Northcutt et al. 2021).
    pub estimated_noise: f64,
    /// Samples whose score is above the cut, which are left out of the cleaned index.
    pub n_suspicious: usize,
    /// Samples for which at least two opinions suggest another label.
    pub n_disputed: usize,
    /// Exact and near duplicates.
    pub duplicates: DuplicateFindings,
    /// Signs of unknown poison.
    pub poison: Vec<PoisonFindings>,
    /// Test samples traced back to known poison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forensics: Option<ForensicFindings>,
    /// How well each score finds the samples that are really wrong, if the truth is given. The first one is the combined
    /// score of the review list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<OpinionFindings>,
}

/// How well a score finds what is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct OpinionFindings {
    /// The score.
    pub name: String,
    /// Its measures.
    #[serde(flatten)]
    pub measures: AuditMeasures,
}

/// Duplicates.
#[derive(Clone, Debug, Serialize)]
pub struct DuplicateFindings {
    /// Groups of samples that are the same or nearly so.
    pub n_groups: usize,
    /// Samples that could go because others are the same.
    pub n_redundant: usize,
    /// Groups whose labels contradict each other.
    pub n_conflicts: usize,
    /// The groups with contradicting labels, by the names of their samples; at most a hundred.
    pub conflicts: Vec<Vec<String>>,
}

/// Signs of unknown poison in a class.
#[derive(Clone, Debug, Serialize)]
pub struct PoisonFindings {
    /// The space: `poison_kernel`, or `poison_last_layer`.
    pub space: &'static str,
    /// The class.
    pub class: String,
    /// The share of the variance of the class that its first direction carries.
    pub spectral_share: Option<f64>,
    /// The share of the smaller of two clusters.
    pub smaller_cluster: Option<f64>,
    /// How well the two clusters are separated, from −1 to 1.
    pub silhouette: Option<f64>,
    /// Whether a small cluster is so well separated that it should be looked at.
    pub suspicious: bool,
}

/// Test samples traced back to known poison.
#[derive(Clone, Debug, Serialize)]
pub struct ForensicFindings {
    /// Known poisoned training samples.
    pub n_poisoned: usize,
    /// The nearest training samples that were looked at.
    pub neighbours: usize,
    /// How many of them must be poisoned.
    pub threshold: usize,
    /// Test samples.
    pub n_test: usize,
    /// Test samples that were flagged.
    pub n_flagged: usize,
    /// Compared with the truth, if it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
}
