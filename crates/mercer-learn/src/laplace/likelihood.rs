//! How targets are distributed around the outputs `f` of a network, and the curvature `Λ = −∂² ln p(y|f)/∂f²` of that.

use crate::error::{LearnError, Result, check_positive, check_size, setting};
use crate::softmax::{log_softmax, softmax};
use mercer_data::Labels;
use ndarray::{Array3, ArrayView1, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

/// The distribution of a target given the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// A class, with the softmax of the outputs as probabilities: `Λ = diag(p) − ppᵀ`.
    Categorical,
    /// Numbers, with independent normal noise: `Λ = I/σ²`.
    Gaussian {
        /// The standard deviation `σ` of the noise.
        noise: f64,
    },
}

impl Likelihood {
    /// The likelihood that suits these labels: classes are categorical, numbers have unit noise.
    pub fn of(labels: &Labels) -> Self {
        match labels {
            Labels::Classes(_) => Self::Categorical,
            Labels::Targets(_) => Self::Gaussian { noise: 1.0 },
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match *self {
            Self::Categorical => Ok(()),
            Self::Gaussian { noise } => check_positive("the observation noise", noise).map(|_| ()),
        }
    }

    /// Roots of the curvature: `S` with `Λ = S·Sᵀ` for every row of outputs, `[samples, outputs, outputs]`.
    ///
    /// Of the softmax it is `diag(√p) − p√pᵀ`, because `Σp = 1`.
    pub(super) fn roots(&self, outputs: ArrayView2<'_, f64>) -> Array3<f64> {
        let (samples, n_outputs) = outputs.dim();
        let mut roots = Array3::zeros((samples, n_outputs, n_outputs));
        match *self {
            Self::Gaussian { noise } => roots.axis_iter_mut(Axis(0)).for_each(|mut s| s.diag_mut().fill(1.0 / noise)),
            Self::Categorical => {
                for (mut root, p) in roots.axis_iter_mut(Axis(0)).zip(softmax(outputs).outer_iter()) {
                    for ((row, column), value) in root.indexed_iter_mut() {
                        let own = if row == column { 1.0 } else { 0.0 };
                        *value = (own - p[row]) * p[column].sqrt();
                    }
                }
            }
        }
        roots
    }

    /// `Λ` itself.
    pub(super) fn curvature(&self, outputs: ArrayView2<'_, f64>) -> Array3<f64> {
        let mut curvature = self.roots(outputs);
        for mut root in curvature.axis_iter_mut(Axis(0)) {
            let square = root.dot(&root.t());
            root.assign(&square);
        }
        curvature
    }

    /// `Σ ln p(y|f)` of some samples, the rows of `labels` from `first` on.
    pub(super) fn log_likelihood(&self, outputs: ArrayView2<'_, f64>, labels: &Labels, first: usize) -> Result<f64> {
        let (samples, n_outputs) = outputs.dim();
        match (*self, labels) {
            (Self::Categorical, Labels::Classes(classes)) => {
                let own = &classes.indices()[first..first + samples];
                if let Some(at) = own.iter().position(|&class| class >= n_outputs) {
                    return Err(LearnError::Class { row: first + at, class: own[at], n_classes: n_outputs });
                }
                Ok(log_softmax(outputs).outer_iter().zip(own).map(|(row, &class)| row[class]).sum())
            }
            (Self::Gaussian { noise }, Labels::Targets(targets)) => {
                check_size("the number of targets per sample", n_outputs, targets.ncols())?;
                let own = targets.slice(s![first..first + samples, ..]);
                Ok(own.outer_iter().zip(outputs.outer_iter()).map(|(y, f)| gaussian(y, f, noise)).sum())
            }
            (Self::Categorical, _) => Err(setting("the likelihood", "categorical", "the labels are not classes")),
            _ => Err(setting("the likelihood", "gaussian", "the labels are classes, not numbers")),
        }
    }
}

fn gaussian(y: ArrayView1<'_, f64>, f: ArrayView1<'_, f64>, noise: f64) -> f64 {
    let constant = (noise * (2.0 * std::f64::consts::PI).sqrt()).ln();
    y.iter().zip(f).map(|(y, f)| -0.5 * ((y - f) / noise).powi(2) - constant).sum()
}

/// The sizes of labels and outputs must agree before any work begins.
pub(super) fn check_labels(labels: &Labels, samples: usize) -> Result<()> {
    if samples == 0 {
        return Err(LearnError::Empty { what: "fit" });
    }
    check_size("the number of labels", samples, labels.n_samples())?;
    if let Labels::Targets(targets) = labels {
        mercer_linalg::check_finite("targets", targets.view())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn roots_are_roots_of_the_softmax_curvature() {
        let outputs = array![[0.3, -1.0, 2.0], [100.0, 0.0, -100.0]];
        let p = softmax(outputs.view());
        for (at, curvature) in Likelihood::Categorical.curvature(outputs.view()).axis_iter(Axis(0)).enumerate() {
            for ((row, column), value) in curvature.indexed_iter() {
                let own = if row == column { p[(at, row)] } else { 0.0 };
                // A few products of numbers below one.
                assert!((value - (own - p[(at, row)] * p[(at, column)])).abs() < 1e-15);
            }
        }
    }
}
