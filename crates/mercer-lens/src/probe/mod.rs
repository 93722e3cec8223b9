//! Probes: what simple classifiers can read from a layer.
//!
//! The activations of a layer are standardised by the training samples ([`Standardiser`]) and projected onto their
//! principal components ([`Components`]). Three classifiers are then trained on the first `d` components ([`curves`]):
//! the votes of the nearest training samples, the nearest class centre, and a soft-margin linear support vector machine
//! (Chiang et al., Report on Pure Mathematics of Machine Learning, 2023, section 4). [`linear_probe`] is a linear
//! classifier on all components, with its controls.

mod components;
mod curves;
mod linear;
mod standardise;

pub use components::Components;
pub use curves::{Curves, ProbeSettings, Probed, agreement, curves, dimensions};
pub use linear::{LinearProbe, linear_probe};
pub use standardise::Standardiser;

/// Samples of a layer that probes are trained and tested on.
#[derive(Clone, Copy, Debug)]
pub struct Split<'a> {
    /// A row of coordinates per training sample.
    pub train: ndarray::ArrayView2<'a, f64>,
    /// Their classes.
    pub labels: &'a [usize],
    /// A row of coordinates per test sample.
    pub test: ndarray::ArrayView2<'a, f64>,
    /// Their classes.
    pub test_labels: &'a [usize],
    /// The number of classes.
    pub n_classes: usize,
}

impl Split<'_> {
    /// Checks sizes, classes and numbers.
    fn check(&self) -> crate::Result<()> {
        use crate::checks::{check_count, check_labels, check_rows};
        check_count("a probe", 2, self.train.nrows())?;
        check_count("the test of a probe", 1, self.test.nrows())?;
        check_rows("the training labels", self.train.nrows(), self.labels.len())?;
        check_rows("the test labels", self.test.nrows(), self.test_labels.len())?;
        check_rows("the transposed test samples", self.train.ncols(), self.test.ncols())?;
        check_labels(self.labels, self.n_classes)?;
        check_labels(self.test_labels, self.n_classes)?;
        mercer_linalg::check_finite("a probe", self.train)?;
        mercer_linalg::check_finite("the test of a probe", self.test)?;
        Ok(())
    }
}

/// The share of samples whose decision is their class.
fn share_right(decisions: &[usize], labels: &[usize]) -> f64 {
    decisions.iter().zip(labels).filter(|(a, b)| a == b).count() as f64 / labels.len().max(1) as f64
}
