//! The findings about a shift.

use mercer_lens::shift::{EstimatedAccuracy, LabelShift, TestKind};
use serde::Serialize;

/// The findings about a shift.
#[derive(Clone, Debug, Serialize)]
pub struct ShiftFindings {
    /// The network's file, if there is one.
    pub network: Option<String>,
    /// Old samples.
    pub n_samples: usize,
    /// New samples.
    pub n_test: usize,
    /// Permutations behind the p-values.
    pub permutations: usize,
    /// The corrected p-value up to which data counts as shifted.
    pub level: f64,
    /// All tests.
    pub tests: Vec<TestFindings>,
    /// The least p-value, corrected for the number of tests; none without new samples.
    pub p_value: Option<f64>,
    /// Whether it is at most the level.
    pub shifted: bool,
    /// The kind of shift; none if there is none, or without labels.
    pub kind: Option<ShiftKind>,
    /// The layers and kernels, in order.
    pub layers: Vec<ViewFindings>,
    /// Which samples differ.
    pub samples: Option<SampleFindings>,
    /// The rates of the classes in the new samples.
    pub label_shift: Option<LabelShiftFindings>,
    /// The accuracy on the new samples.
    pub estimated_accuracy: Option<AccuracyFindings>,
    /// What was approximated, in words.
    pub approximations: Vec<String>,
    /// What was found, in words.
    pub sentences: Vec<String>,
}

impl ShiftFindings {
    /// Whether the network decides for its classes at other rates.
    pub(super) fn decisions_differ(&self) -> bool {
        self.tests.iter().any(|test| test.name == TestKind::Predictions && test.p_value <= self.level)
    }
}

/// A test.
#[derive(Clone, Debug, Serialize)]
pub struct TestFindings {
    /// What was tested.
    pub name: TestKind,
    /// The layer or kernel.
    pub node: String,
    /// The statistic.
    pub statistic: f64,
    /// Its p-value, of this test alone.
    pub p_value: f64,
    /// The same, corrected for the number of tests.
    pub corrected_p_value: f64,
    /// How many standard deviations the statistic is above the mean of its permutations.
    pub deviations: f64,
}

/// The kinds of shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShiftKind {
    /// Only the rates of the classes differ.
    Label,
    /// The samples of a class differ.
    Covariate,
}

/// A layer or kernel.
#[derive(Clone, Debug, Serialize)]
pub struct ViewFindings {
    /// The layer, the kernel, or `data`.
    pub node: String,
    /// Its numbers per sample.
    pub n_features: usize,
    /// The numbers that they were reduced to, if they were.
    pub reduced_to: Option<usize>,
    /// The length scale of the Gaussian kernel.
    pub lengthscale: f64,
    /// The shares of the variance that the first two principal components explain.
    pub explained: [f64; 2],
    /// The share of held-out samples that a linear classifier puts into the right set; ½ is chance.
    pub accuracy: f64,
    /// The least corrected p-value of its tests.
    pub p_value: f64,
}

/// Which samples differ.
#[derive(Clone, Debug, Serialize)]
pub struct SampleFindings {
    /// The layer they were looked at in.
    pub node: String,
    /// A sample is kept if the density of the other set there, relative to its own, is at least this.
    pub keep: f64,
    /// Old samples that are kept: they lie where new samples are.
    pub n_kept: usize,
    /// New samples that are kept: they lie where old samples are.
    pub n_kept_test: usize,
    /// The new samples that are least like the old ones.
    pub least_alike: Vec<UnlikeSample>,
}

/// A new sample that is not like the old ones.
#[derive(Clone, Debug, Serialize)]
pub struct UnlikeSample {
    /// Its row.
    pub row: usize,
    /// What it is called: its id, its file or its row.
    pub id: String,
    /// The mean similarity to new samples minus that to old ones.
    pub witness: f64,
    /// The density of the old samples over that of the new ones.
    pub density_ratio: f64,
}

/// The rates of the classes in the new samples.
#[derive(Clone, Debug, Serialize)]
pub struct LabelShiftFindings {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The rates, if the decisions say enough about the classes.
    #[serde(flatten)]
    pub rates: Option<LabelShift>,
    /// Old samples that were drawn with these rates and compared with the new ones.
    pub n_matched: Option<usize>,
    /// The corrected p-value of that comparison: if it is small, the samples of a class differ, too.
    pub matched_p_value: Option<f64>,
}

/// The accuracy on the new samples.
#[derive(Clone, Debug, Serialize)]
pub struct AccuracyFindings {
    /// The estimates.
    #[serde(flatten)]
    pub estimates: EstimatedAccuracy,
    /// The accuracy by the labels of the new samples, if they are given.
    pub test: Option<f64>,
}
