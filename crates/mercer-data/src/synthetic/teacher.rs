//! Teacher models: functions of Gaussian inputs that depend on a few hidden directions.
//!
//! ```text
//! multiple-index (80)     f*(x) = 1/k Σᵢ σ*(xᵀβᵢ)              β₁ … β_k orthonormal
//! mixture (81)            f*(x) = σ*(xᵀβ) + τ/d ‖x‖²
//! single-index            either of them with k = 1 and τ = 0
//! labels                  y = f*(x) + ε,   x ~ N(0, I_d),   ε ~ N(0, σ_ε²)
//! ```
//!
//! Equations (80) and (81), with Assumption 3.3, are those of Wang, Engel, Sarwate, Dumitriu and Chiang, "Spectral
//! Evolution and Invariance in Linear-width Neural Networks" (arXiv:2211.06506), in the numbering of the PNNL report
//! that reprints it. Activations there have E σ(z) = 0 for z ~ N(0, 1), and σ* is called normalised without a formula;
//! we take that as zero mean and unit variance, E σ*(z)² = 1. The noise there may be any centred sub-Gaussian noise;
//! ours is Gaussian.

use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::{check_noise, check_size, normal};
use crate::error::{DataError, Result};
use crate::random::stream;

/// A nonlinear function σ. Teachers use its normalised form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TeacherActivation {
    /// max(0, x)
    Relu,
    /// tanh x
    Tanh,
    /// 1 / (1 + e⁻ˣ)
    Sigmoid,
    /// ln(1 + eˣ)
    Softplus,
}

impl TeacherActivation {
    /// σ(x)
    pub fn value(self, x: f64) -> f64 {
        match self {
            Self::Relu => x.max(0.0),
            Self::Tanh => x.tanh(),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            // Written so that it does not overflow.
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        }
    }

    /// The mean and the standard deviation of σ(z) for z ~ N(0, 1): normalised is (σ(x) − mean) / deviation.
    pub fn moments(self) -> (f64, f64) {
        let mean = gaussian_mean(|z| self.value(z));
        let variance = gaussian_mean(|z| (self.value(z) - mean).powi(2));
        (mean, variance.sqrt())
    }
}

/// E f(z), by Simpson's rule on either side of 0, where f may have a kink.
fn gaussian_mean(f: impl Fn(f64) -> f64) -> f64 {
    const REACH: f64 = 10.0;
    const STEPS: usize = 4000;
    let step = REACH / STEPS as f64;
    let density = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    let side = |sign: f64| -> f64 {
        (0..=STEPS)
            .map(|index| {
                let weight = if index == 0 || index == STEPS { 1.0 } else { [2.0, 4.0][index % 2] };
                let z = sign * step * index as f64;
                weight * f(z) * density(z)
            })
            .sum()
    };
    (side(-1.0) + side(1.0)) * step / 3.0
}

/// A teacher with fixed hidden directions.
///
/// ```
/// use mercer_data::synthetic::{TeacherActivation, Teacher};
///
/// // The teacher of Table 8: a normalised softplus, τ = 0.2, label noise 0.3.
/// let teacher = Teacher::single_index(1000, TeacherActivation::Softplus, 0)?.with_quadratic(0.2)?;
/// let (x, y) = teacher.sample(50, 0.3, 0, "train")?;
/// assert_eq!((x.dim(), y.len()), ((50, 1000), 50));
/// # Ok::<(), mercer_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Teacher {
    directions: Array2<f64>,
    activation: TeacherActivation,
    mean: f64,
    deviation: f64,
    quadratic: f64,
}

impl Teacher {
    /// f*(x) = σ*(xᵀβ) with a random unit vector β.
    pub fn single_index(n_features: usize, activation: TeacherActivation, seed: u64) -> Result<Self> {
        Self::multi_index(n_features, 1, activation, seed)
    }

    /// Equation (80): the mean over `n_directions` random orthonormal directions. Stream: `"teacher/directions"`.
    pub fn multi_index(
        n_features: usize,
        n_directions: usize,
        activation: TeacherActivation,
        seed: u64,
    ) -> Result<Self> {
        if n_directions == 0 || n_directions > n_features {
            let reason = format!("must lie between 1 and the number of features, {n_features}, not {n_directions}");
            return Err(DataError::Argument { name: "n_directions", reason });
        }
        check_size(n_directions, n_features)?;
        let directions = orthonormal(n_directions, n_features, seed);
        let (mean, deviation) = activation.moments();
        Ok(Self { directions, activation, mean, deviation, quadratic: 0.0 })
    }

    /// Adds τ/d ‖x‖², as in equation (81).
    pub fn with_quadratic(mut self, tau: f64) -> Result<Self> {
        if !tau.is_finite() {
            return Err(DataError::Argument { name: "tau", reason: format!("must be finite, not {tau}") });
        }
        self.quadratic = tau;
        Ok(self)
    }

    /// The hidden directions, one per row.
    pub fn directions(&self) -> ArrayView2<'_, f64> {
        self.directions.view()
    }

    /// f*(x) for every row, without noise.
    pub fn eval(&self, inputs: ArrayView2<'_, f64>) -> Result<Array1<f64>> {
        let n_features = self.directions.ncols();
        if inputs.ncols() != n_features {
            let (shape, reason) = (inputs.shape().to_vec(), format!("the teacher has {n_features} features"));
            return Err(DataError::Shape { place: "teacher inputs".to_owned(), shape, reason });
        }
        let projections = inputs.dot(&self.directions.t());
        let signal = projections.mapv(|value| (self.activation.value(value) - self.mean) / self.deviation);
        let norms = inputs.map_axis(Axis(1), |row| row.dot(&row));
        let n_directions = self.directions.nrows() as f64;
        Ok(signal.sum_axis(Axis(1)) / n_directions + norms * (self.quadratic / n_features as f64))
    }

    /// Draws inputs and noisy labels. Sets of different `split`, such as "train" and "test", are independent.
    ///
    /// Streams: `"teacher/{split}/inputs"` and `"teacher/{split}/noise"`.
    pub fn sample(&self, n_samples: usize, noise: f64, seed: u64, split: &str) -> Result<(Array2<f64>, Array1<f64>)> {
        check_noise(noise)?;
        let n_features = self.directions.ncols();
        check_size(n_samples, n_features)?;
        let mut random = stream(seed, &format!("teacher/{split}/inputs"));
        let inputs = Array2::from_shape_simple_fn((n_samples, n_features), || normal(&mut random));
        let mut labels = self.eval(inputs.view())?;
        let mut random = stream(seed, &format!("teacher/{split}/noise"));
        labels.mapv_inplace(|label| label + noise * normal(&mut random));
        Ok((inputs, labels))
    }
}

/// Gaussian vectors, orthogonalised twice: once is not enough when they nearly span the space.
fn orthonormal(n_directions: usize, n_features: usize, seed: u64) -> Array2<f64> {
    let mut random = stream(seed, "teacher/directions");
    let mut directions: Array2<f64> = Array2::zeros((n_directions, n_features));
    for index in 0..n_directions {
        let mut vector = Array1::from_shape_simple_fn(n_features, || normal(&mut random));
        for _ in 0..2 {
            for earlier in directions.rows().into_iter().take(index) {
                let overlap = earlier.dot(&vector);
                vector.scaled_add(-overlap, &earlier);
            }
            let norm = vector.dot(&vector).sqrt();
            vector /= norm;
        }
        directions.row_mut(index).assign(&vector);
    }
    directions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn moments_of_relu_are_known() {
        let (mean, deviation) = TeacherActivation::Relu.moments();
        assert!((mean - 1.0 / (2.0 * PI).sqrt()).abs() < 1e-11);
        assert!((deviation - (0.5 - 0.5 / PI).sqrt()).abs() < 1e-11);
    }

    #[test]
    fn symmetric_activations_are_centred() {
        assert!(TeacherActivation::Tanh.moments().0.abs() < 1e-14);
        assert!((TeacherActivation::Sigmoid.moments().0 - 0.5).abs() < 1e-12);
    }

    #[test]
    fn directions_are_orthonormal_up_to_a_full_basis() {
        let teacher = Teacher::multi_index(30, 30, TeacherActivation::Tanh, 5).unwrap();
        let gram = teacher.directions().dot(&teacher.directions().t());
        let worst = gram.indexed_iter().map(|((i, j), &value)| (value - f64::from(i == j)).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-13, "{worst}");
    }

    #[test]
    fn labels_follow_equations_80_and_81() {
        let teacher = Teacher::multi_index(5, 2, TeacherActivation::Softplus, 1).unwrap().with_quadratic(0.2).unwrap();
        let (x, y) = teacher.sample(20, 0.0, 3, "train").unwrap();
        let (mean, deviation) = TeacherActivation::Softplus.moments();
        for (x, &y) in x.outer_iter().zip(&y) {
            let index =
                |i: usize| (TeacherActivation::Softplus.value(x.dot(&teacher.directions().row(i))) - mean) / deviation;
            let expected = 0.5 * (index(0) + index(1)) + 0.2 / 5.0 * x.dot(&x);
            assert!((y - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn normalised_labels_have_unit_variance() {
        let teacher = Teacher::single_index(10, TeacherActivation::Softplus, 0).unwrap();
        let (_, y) = teacher.sample(20_000, 0.0, 0, "train").unwrap();
        assert!(y.mean().unwrap().abs() < 0.03);
        assert!((y.std(0.0) - 1.0).abs() < 0.05);
    }

    #[test]
    fn splits_and_noise_are_independent() {
        let teacher = Teacher::single_index(4, TeacherActivation::Relu, 0).unwrap();
        let (train, clean) = teacher.sample(8, 0.0, 0, "train").unwrap();
        let (again, noisy) = teacher.sample(8, 0.3, 0, "train").unwrap();
        assert_eq!(train, again);
        assert_ne!(clean, noisy);
        assert_ne!(train, teacher.sample(8, 0.0, 0, "test").unwrap().0);
    }

    #[test]
    fn bad_arguments_are_errors() {
        assert!(Teacher::multi_index(3, 4, TeacherActivation::Relu, 0).is_err());
        assert!(Teacher::multi_index(3, 0, TeacherActivation::Relu, 0).is_err());
        let teacher = Teacher::single_index(3, TeacherActivation::Relu, 0).unwrap();
        assert!(teacher.sample(3, -1.0, 0, "train").is_err());
        assert!(teacher.eval(Array2::zeros((2, 4)).view()).is_err());
        assert!(teacher.with_quadratic(f64::NAN).is_err());
    }
}
