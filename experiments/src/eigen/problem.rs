//! The two kernels on the line of the NeuralEF paper, with their exact spectra.

use crate::Fallible;
use mercer::data::{Dataset, synthetic};
use mercer::linalg::top_eigen;
use mercer::spectral::Spectrum;
use ndarray::Array2;

/// A kernel of numbers, on uniform points.
#[derive(Clone, Copy)]
pub(crate) struct Problem {
    pub(crate) name: &'static str,
    pub(crate) kernel: fn(f64, f64) -> f64,
    /// Points are uniform in `[-bound, bound]`.
    pub(crate) bound: f64,
    /// Components that are compared.
    pub(crate) compared: usize,
}

pub(crate) const POLYNOMIAL: Problem = Problem {
    name: "Polynomial (x·x' + 1.5)⁴ on U[−1, 1]:",
    kernel: |x, y| (x * y + 1.5).powi(4),
    bound: 1.0,
    compared: 5,
};

pub(crate) const RBF: Problem = Problem {
    name: "RBF exp(−(x−x')²/2) on U[−2, 2]:",
    kernel: |x, y| (-0.5 * (x - y).powi(2)).exp(),
    bound: 2.0,
    compared: 6,
};

/// A problem on points.
pub(crate) struct Instance {
    pub(crate) data: [Dataset; 1],
    pub(crate) gram: Array2<f64>,
}

impl Problem {
    pub(crate) fn on(&self, samples: usize, seed: u64) -> Fallible<Instance> {
        let points = synthetic::uniform(samples, 1, -self.bound, self.bound, seed)?;
        let gram = Array2::from_shape_fn((samples, samples), |(i, j)| (self.kernel)(points[(i, 0)], points[(j, 0)]));
        let data = [Dataset::from_array("points", points.view().into_dyn())?];
        Ok(Instance { data, gram })
    }
}

impl Instance {
    pub(crate) fn truth(&self, k: usize) -> Fallible<Spectrum<f64>> {
        let top = top_eigen(self.gram.view(), k)?;
        Ok(Spectrum::from_eigenpairs(top.values.view(), top.vectors, k, false, f64::EPSILON)?)
    }
}
