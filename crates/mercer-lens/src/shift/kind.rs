//! The names of the tests.

use mercer_run::named;
use serde::Serialize;

/// The tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    /// MMD² with the features themselves: their means differ.
    MmdLinear,
    /// MMD² with a Gaussian kernel: the distributions differ.
    MmdGaussian,
    /// A linear classifier tells held-out samples of the sets apart.
    Classifier,
    /// The energy distance on the first principal component.
    Pc1,
    /// The network decides for its classes at other rates.
    Predictions,
}

named! {
    TestKind, "test":
    MmdLinear = "mmd-linear", "the means of the features differ";
    MmdGaussian = "mmd-gaussian", "the distributions differ, seen with a Gaussian kernel";
    Classifier = "classifier", "a linear classifier tells the sets apart";
    Pc1 = "pc1", "the first principal component differs";
    Predictions = "predictions", "the network decides for its classes at other rates";
}
