//! The density of a spectrum from products alone: stochastic Lanczos quadrature.
//!
//! A random vector `z` of signs has `E zᵀf(A)z = tr f(A)`. From `z/√n`, Lanczos makes a small tridiagonal matrix `T`,
//! whose eigenpairs `(θ, s)` are the nodes and weights of a Gauss quadrature,
//!
//! ```text
//! zᵀf(A)z / n ≈ Σₖ wₖ f(θₖ),   wₖ = s²₁ₖ,   Σₖ wₖ = 1
//! tr f(A) ≈ n/m · Σ over m probes Σₖ wₖ f(θₖ)
//! ```
//!
//! With `k` steps it is exact for polynomials up to degree `2k − 1` in the probe's own measure. What is left is the
//! spread between probes, from which the standard error is computed. Ubaru, Chen and Saad, Fast estimation of tr(f(A))
//! via stochastic Lanczos quadrature, SIAM J. Matrix Anal. Appl. 38, 2017; Ghorbani, Krishnan and Xiao 2019 (arXiv
//! 1901.10159) for spectra of networks. Every new vector is orthogonalised twice against all before it, so there are no
//! spurious copies of eigenvalues.

use super::lanczos::{norm, remove};
use super::{LinearOperator, symmetric_eigen};
use crate::random::Signs;
use crate::{LinalgError, Result, Scalar, TraceEstimate, input};
use ndarray::{Array1, Array2, s};

const ROUTINE: &str = "stochastic Lanczos";

/// The method and its settings.
#[derive(Clone, Copy, Debug)]
pub struct StochasticLanczos {
    n_steps: usize,
    n_probes: usize,
    seed: u64,
}

impl StochasticLanczos {
    /// With this many steps (products) per probe; 10 probes by default.
    pub fn new(n_steps: usize) -> Self {
        Self { n_steps, n_probes: 10, seed: 0 }
    }

    /// The number of random vectors. The error falls with its square root.
    pub fn probes(self, n_probes: usize) -> Self {
        Self { n_probes, ..self }
    }

    /// The seed of the random vectors.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The most products that are taken with an operator with this many rows.
    pub fn n_applications(&self, rows: usize) -> usize {
        self.n_steps.min(rows) * self.n_probes
    }

    /// The density of the spectrum. The same seed gives the same bits.
    ///
    /// ```
    /// use mercer_linalg::StochasticLanczos;
    /// let a = ndarray::Array2::from_diag(&ndarray::Array1::linspace(1.0, 2.0, 50));
    /// let density = StochasticLanczos::new(12).run(&a)?;
    /// let logarithm = density.trace_of(f64::ln);
    /// assert!((logarithm.value - a.diag().mapv(f64::ln).sum()).abs() < 1e-9);
    /// # Ok::<(), mercer_linalg::LinalgError>(())
    /// ```
    ///
    /// # Errors
    /// [`LinalgError::ShapeMismatch`] without steps or probes, [`LinalgError::NotFinite`] if the operator returns such
    /// a value, and the errors of [`symmetric_eigen`].
    pub fn run<T: Scalar>(&self, operator: &impl LinearOperator<T>) -> Result<SpectralDensity> {
        T::density(self, operator)
    }

    pub(crate) fn iterate<T: Scalar>(&self, operator: &dyn LinearOperator<T>) -> Result<SpectralDensity> {
        for (what, found) in [("the number of steps", self.n_steps), ("the number of probes", self.n_probes)] {
            if found == 0 {
                return Err(LinalgError::ShapeMismatch { routine: ROUTINE, what, expected: 1, found });
            }
        }
        let dim = operator.dim();
        let mut random = Signs::new(self.seed ^ dim as u64);
        let (mut probes, mut n_applications) = (Vec::with_capacity(self.n_probes), 0);
        for _ in 0..self.n_probes {
            let size = T::narrow(1.0 / (dim.max(1) as f64).sqrt());
            let start = Array1::from_shape_simple_fn(dim, || random.next_of(size));
            probes.push(tridiagonal(operator, start, self.n_steps.min(dim), &mut n_applications)?);
        }
        Ok(SpectralDensity { dim, probes, n_applications })
    }
}

/// A node of the quadrature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// A Ritz value.
    pub value: f64,
    /// Its share of the eigenvalues.
    pub weight: f64,
}

/// The density of a spectrum as nodes and weights, a list per probe.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralDensity {
    /// The number of eigenvalues.
    pub dim: usize,
    /// The nodes of every probe, descending. The weights of a probe sum to one.
    pub probes: Vec<Vec<Node>>,
    /// How often the operator was applied.
    pub n_applications: usize,
}

impl SpectralDensity {
    /// The nodes of all probes, with weights that sum to one.
    pub fn nodes(&self) -> Vec<Node> {
        let share = 1.0 / self.probes.len() as f64;
        self.probes.iter().flatten().map(|node| Node { weight: node.weight * share, ..*node }).collect()
    }

    /// The trace of a function of the operator, `tr f(A) = Σ f(λᵢ)`. If `f` is not finite at a node, neither is the
    /// value.
    pub fn trace_of(&self, f: impl Fn(f64) -> f64) -> TraceEstimate {
        let quadrature = |nodes: &Vec<Node>| nodes.iter().map(|node| node.weight * f(node.value)).sum::<f64>();
        let samples: Vec<f64> = self.probes.iter().map(|nodes| self.dim as f64 * quadrature(nodes)).collect();
        TraceEstimate::of_samples(0.0, &samples, self.n_applications)
    }
}

/// The quadrature of one probe. It ends early where the vectors span an invariant space; it is then exact.
fn tridiagonal<T: Scalar>(
    operator: &dyn LinearOperator<T>,
    start: Array1<T>,
    n_steps: usize,
    n_applications: &mut usize,
) -> Result<Vec<Node>> {
    let n = start.len();
    let mut basis = Array2::<T>::zeros((n_steps, n));
    let mut projected = Array2::<f64>::zeros((n_steps, n_steps));
    let mut next = start;
    let mut filled = 0;
    while filled < n_steps {
        basis.row_mut(filled).assign(&next);
        let mut image = Array1::zeros(n);
        operator.apply(next.view(), image.view_mut());
        input::check_finite_vector("stochastic Lanczos operator", image.view(), *n_applications)?;
        *n_applications += 1;
        let magnitude = norm(image.view());
        let known = basis.slice(s![..=filled, ..]);
        // A second pass: after the first, the rounding errors may be as large as what is left.
        let coefficients = remove(known, &mut image) + remove(known, &mut image);
        projected[[filled, filled]] = coefficients[filled].wide();
        filled += 1;
        let coupling = norm(image.view());
        let noise = T::narrow((n as f64).sqrt() * 4.0) * T::epsilon() * magnitude;
        if filled == n_steps || coupling <= noise {
            break;
        }
        projected[[filled - 1, filled]] = coupling.wide();
        projected[[filled, filled - 1]] = coupling.wide();
        next = image / coupling;
    }
    let ritz = symmetric_eigen(projected.slice(s![..filled, ..filled]))?;
    let node = |(&value, &first): (&f64, &f64)| Node { value, weight: first * first };
    Ok(if filled == 0 { Vec::new() } else { ritz.values.iter().zip(ritz.vectors.row(0)).map(node).collect() })
}
