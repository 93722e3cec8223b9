//! The distribution of targets given the outputs `f` of a network, and its curvature `Λ = −∂² ln p(y|f)/∂f²`.

use super::algebra::add_gram;
use crate::error::{LearnError, Result, check_positive, check_size, setting};
use crate::softmax::{log_softmax, softmax};
use mercer_data::Labels;
use mercer_linalg::mirror_lower;
use ndarray::{Array2, Array3, ArrayView1, ArrayView2, Axis, CowArray, Ix2, s};
use serde::{Deserialize, Serialize};

/// The distribution of a target given the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// A class, with the softmax of the outputs as probabilities: `Λ = diag(p) − ppᵀ`.
    Categorical,
    /// One of two classes, with the sigmoid of the one output as the probability of the second: `Λ = p(1 − p)`.
    Bernoulli,
    /// Numbers, with independent normal noise: `Λ = I/σ²`.
    Gaussian {
        /// The standard deviation `σ` of the noise.
        noise: f64,
    },
}

impl Likelihood {
    /// The likelihood that suits these labels: classes are categorical, numbers have unit noise. For a network with one
    /// output, a machine uses [`Bernoulli`](Self::Bernoulli) for classes.
    pub fn for_labels(labels: &Labels) -> Self {
        match labels {
            Labels::Classes(_) => Self::Categorical,
            Labels::Targets(_) => Self::Gaussian { noise: 1.0 },
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match *self {
            Self::Categorical | Self::Bernoulli => Ok(()),
            Self::Gaussian { noise } => check_positive("the observation noise", noise).map(|_| ()),
        }
    }

    /// The standard deviation of the observation noise of a regression.
    pub(super) fn noise(&self) -> Option<f64> {
        match *self {
            Self::Gaussian { noise } => Some(noise),
            Self::Categorical | Self::Bernoulli => None,
        }
    }

    /// Whether targets are classes, so that outputs are logits.
    pub(super) fn is_of_classes(&self) -> bool {
        !matches!(self, Self::Gaussian { .. })
    }

    /// The same for a network with this many outputs.
    pub(super) fn with_outputs(self, n_outputs: usize) -> Result<Self> {
        match (self, n_outputs) {
            (Self::Categorical, 1) => Ok(Self::Bernoulli),
            (Self::Bernoulli, outputs) if outputs != 1 => {
                Err(setting("the likelihood", "bernoulli", "the network has more than one output"))
            }
            _ => Ok(self),
        }
    }

    /// The probabilities of classes, a row per row of outputs; the sigmoid of one logit is the softmax of zero and
    /// itself.
    pub(super) fn probabilities(&self, outputs: ArrayView2<'_, f64>) -> Array2<f64> {
        softmax(self.logits(outputs).view())
    }

    /// A logit per class.
    pub(super) fn logits<'a>(&self, outputs: ArrayView2<'a, f64>) -> CowArray<'a, f64, Ix2> {
        match self {
            Self::Bernoulli => two(outputs).into(),
            _ => outputs.into(),
        }
    }

    /// Roots of the curvature: `S` with `Λ = S·Sᵀ` for every row of outputs, `[samples, outputs, outputs]`.
    ///
    /// For the softmax it is `diag(√p) − p√pᵀ`, because `Σp = 1`.
    pub(super) fn roots(&self, outputs: ArrayView2<'_, f64>) -> Array3<f64> {
        let (samples, n_outputs) = outputs.dim();
        let mut roots = Array3::zeros((samples, n_outputs, n_outputs));
        match *self {
            Self::Gaussian { noise } => roots.axis_iter_mut(Axis(0)).for_each(|mut s| s.diag_mut().fill(1.0 / noise)),
            Self::Bernoulli => {
                for (mut root, p) in roots.axis_iter_mut(Axis(0)).zip(self.probabilities(outputs).outer_iter()) {
                    root.fill((p[0] * p[1]).sqrt());
                }
            }
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
        if let Self::Categorical = self {
            // Without a product of matrices for every sample.
            let (samples, n_outputs) = outputs.dim();
            let mut curvature = Array3::zeros((samples, n_outputs, n_outputs));
            for (mut own, p) in curvature.axis_iter_mut(Axis(0)).zip(softmax(outputs).outer_iter()) {
                for ((row, column), value) in own.indexed_iter_mut() {
                    let unit = if row == column { 1.0 } else { 0.0 };
                    *value = p[row.max(column)] * (unit - p[row.min(column)]);
                }
            }
            return curvature;
        }
        let mut curvature = self.roots(outputs);
        for mut root in curvature.axis_iter_mut(Axis(0)) {
            let square = root.dot(&root.t());
            root.assign(&square);
        }
        curvature
    }

    /// The diagonal of `Λ`, a row per sample.
    pub(super) fn curvature_diagonal(&self, outputs: ArrayView2<'_, f64>) -> Array2<f64> {
        match *self {
            Self::Gaussian { noise } => Array2::from_elem(outputs.dim(), 1.0 / (noise * noise)),
            Self::Bernoulli => {
                let p = self.probabilities(outputs);
                (&p.column(0) * &p.column(1)).insert_axis(Axis(1))
            }
            Self::Categorical => softmax(outputs).mapv_into(|p| p * (1.0 - p)),
        }
    }

    /// Adds what `ΣΛ` is made from to the lower triangle of a matrix with a side of `C`: for the softmax `Σ ppᵀ`.
    pub(super) fn add_moments(&self, outputs: ArrayView2<'_, f64>, moments: &mut Array2<f64>) {
        match self {
            Self::Gaussian { .. } => {}
            Self::Bernoulli => moments[(0, 0)] += self.curvature_diagonal(outputs).sum(),
            Self::Categorical => add_gram(moments, softmax(outputs).view()),
        }
    }

    /// `ΣΛ` of this many samples from their moments. The rows of `diag(p) − ppᵀ` sum to zero, which gives the diagonal without
    /// the difference of two numbers that are almost equal where the network is sure.
    pub(super) fn curvature_of_moments(&self, mut moments: Array2<f64>, samples: usize) -> Array2<f64> {
        match *self {
            Self::Gaussian { noise } => moments.diag_mut().fill(samples as f64 / (noise * noise)),
            Self::Bernoulli => {}
            Self::Categorical => {
                mirror_lower(moments.view_mut());
                moments.mapv_inplace(|x| -x);
                for at in 0..moments.nrows() {
                    moments[(at, at)] = 0.0;
                    moments[(at, at)] = -moments.row(at).sum();
                }
            }
        }
        moments
    }

    /// `Σ ln p(y|f)` of some samples, the rows of `labels` starting at `first`.
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
            (Self::Bernoulli, Labels::Classes(classes)) => {
                let own = &classes.indices()[first..first + samples];
                if let Some(at) = own.iter().position(|&class| class >= 2) {
                    return Err(LearnError::Class { row: first + at, class: own[at], n_classes: 2 });
                }
                Ok(log_softmax(two(outputs).view()).outer_iter().zip(own).map(|(row, &class)| row[class]).sum())
            }
            (Self::Gaussian { noise }, Labels::Targets(targets)) => {
                check_size("the number of targets per sample", n_outputs, targets.ncols())?;
                let own = targets.slice(s![first..first + samples, ..]);
                Ok(own.outer_iter().zip(outputs.outer_iter()).map(|(y, f)| gaussian(y, f, noise)).sum())
            }
            (Self::Categorical | Self::Bernoulli, _) => {
                Err(setting("the likelihood", "categorical", "the labels are not classes"))
            }
            _ => Err(setting("the likelihood", "gaussian", "the labels are classes, not numbers")),
        }
    }
}

/// One logit as two: that of the first class is zero.
fn two(outputs: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((outputs.nrows(), 2), |(row, class)| if class == 0 { 0.0 } else { outputs[(row, 0)] })
}

fn gaussian(y: ArrayView1<'_, f64>, f: ArrayView1<'_, f64>, noise: f64) -> f64 {
    let constant = (noise * (2.0 * std::f64::consts::PI).sqrt()).ln();
    y.iter().zip(f).map(|(y, f)| -0.5 * ((y - f) / noise).powi(2) - constant).sum()
}

/// Checks that the sizes of labels and outputs agree, before any work.
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

    /// One logit is two, of which one is zero.
    #[test]
    fn one_output_is_two_classes() {
        let one = array![[0.3], [-2.0], [40.0]];
        let pair = two(one.view());
        let labels = Labels::Classes(mercer_data::Classes::new(vec![1, 0, 1], 2).expect("classes"));
        let (single, double) = (Likelihood::Bernoulli, Likelihood::Categorical);
        assert_eq!(single.probabilities(one.view()), double.probabilities(pair.view()));
        let value = |likelihood: Likelihood, outputs: &Array2<f64>| {
            likelihood.log_likelihood(outputs.view(), &labels, 0).expect("a number")
        };
        assert_eq!(value(single, &one), value(double, &pair));
        let (found, whole) = (single.curvature(one.view()), double.curvature(pair.view()));
        // Products of numbers below one; the root of a product loses one more bit.
        assert!((0..3).all(|at| (found[(at, 0, 0)] - whole[(at, 1, 1)]).abs() < 1e-15));
        let third = Labels::Classes(mercer_data::Classes::new(vec![0, 0, 2], 3).expect("classes"));
        assert!(single.log_likelihood(one.view(), &third, 0).is_err());
    }

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

    /// The sums over samples and the diagonal are those of the matrices, which are the squares of their roots.
    #[test]
    fn sums_and_diagonals_are_those_of_the_matrices() {
        let outputs = array![[0.3, -1.0, 2.0], [9.0, 0.0, -3.0], [0.0, 0.1, 0.2], [40.0, 0.0, 3.0]];
        let one = outputs.slice(s![.., ..1]);
        let cases = [
            (Likelihood::Categorical, outputs.view()),
            (Likelihood::Gaussian { noise: 0.5 }, outputs.view()),
            (Likelihood::Bernoulli, one),
        ];
        for (likelihood, outputs) in cases {
            let (whole, roots) = (likelihood.curvature(outputs), likelihood.roots(outputs));
            let diagonal = likelihood.curvature_diagonal(outputs);
            for (at, root) in roots.axis_iter(Axis(0)).enumerate() {
                let own = whole.index_axis(Axis(0), at);
                assert!((&own - &root.dot(&root.t())).iter().all(|x| x.abs() < 1e-15));
                assert!((&own.diag() - &diagonal.row(at)).iter().all(|x| x.abs() < 1e-15));
            }
            let mut moments = Array2::zeros((outputs.ncols(), outputs.ncols()));
            likelihood.add_moments(outputs, &mut moments);
            let sum = likelihood.curvature_of_moments(moments, outputs.nrows());
            // Four numbers below one, or sixteen.
            assert!((&sum - &whole.sum_axis(Axis(0))).iter().all(|x| x.abs() < 1e-14), "{likelihood:?}");
        }
    }
}
