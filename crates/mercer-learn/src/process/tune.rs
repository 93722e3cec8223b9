//! Hyperparameters of kernel and noise by maximum marginal likelihood.

use super::{ProcessRegression, log_likelihood};
use crate::error::{LearnError, Result, check_positive, check_size, setting};
use crate::minimise::Minimise;
use mercer_data::random::stream;
use mercer_kernel::KernelError;
use mercer_kernel::classic::Formula;
use mercer_linalg::{cholesky, matmul_into};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2};
use rand_distr::{Distribution, StandardNormal};

/// A kernel with parameters that are optimised on a logarithmic scale.
pub trait Covariance: Sized {
    /// The logarithms of the parameters.
    fn logs(&self) -> Vec<f64>;

    /// The same kernel with other parameters.
    fn with_logs(&self, logs: &[f64]) -> Result<Self>;

    /// The Gram matrix of rows.
    fn gram(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>>;

    /// `Σ_ij G_ij ∂κ_ij/∂log θ` for every parameter.
    fn gradient(&self, rows: ArrayView2<'_, f64>, seeds: ArrayView2<'_, f64>) -> Result<Vec<f64>>;
}

impl Covariance for Formula {
    fn logs(&self) -> Vec<f64> {
        Formula::logs(self)
    }

    fn with_logs(&self, logs: &[f64]) -> Result<Self> {
        Ok(Formula::with_logs(self, logs).map_err(KernelError::from)?)
    }

    fn gram(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(Formula::gram(self, rows)?)
    }

    fn gradient(&self, rows: ArrayView2<'_, f64>, seeds: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Formula::gradient(self, rows, seeds)?)
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Tuned<C> {
    /// The kernel.
    pub kernel: C,
    /// The settings of the process, with the variance of the noise.
    pub process: ProcessRegression,
    /// The variance of the noise.
    pub noise: f64,
    /// The logarithm of the marginal likelihood.
    pub log_likelihood: f64,
    /// Its value where the search began; none if it is not a number there.
    pub log_likelihood_before: Option<f64>,
    /// The number of its evaluations, over all starts.
    pub evaluations: usize,
    /// Whether the gradient vanishes at the best point.
    pub converged: bool,
}

/// The largest change of a logarithm. Far out the likelihood is flat, and the search would not return.
const REACH: f64 = 14.0;

/// The start and the extent of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tune {
    /// The initial noise variance.
    pub noise: f64,
    /// Whether targets are centred.
    pub centred: bool,
    /// The number of further starting points around the first.
    pub restarts: usize,
    /// The seed of these points.
    pub seed: u64,
}

impl Tune {
    /// Maximises the marginal likelihood of kernel and noise from the given values and from further starting points
    /// around them; the best result wins.
    pub fn run<C: Covariance>(
        &self,
        kernel: &C,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Tuned<C>> {
        let Self { noise, centred, restarts, seed } = *self;
        check_positive("the noise", noise)?;
        check_size("the number of targets", rows.nrows(), targets.nrows())?;
        if rows.nrows() == 0 {
            return Err(LearnError::Empty { what: "the fit of hyper-parameters" });
        }
        mercer_linalg::check_finite("the samples", rows)?;
        mercer_linalg::check_finite("the targets", targets)?;
        let (_, targets, _) = crate::regression::centre(targets, centred);
        let mut origin = kernel.logs();
        origin.push(noise.ln());
        let mut failure = None;
        let mut evaluations = 0;
        let mut first = None;
        let scale = 1.0 / targets.len().max(1) as f64;
        let mut objective = |place: &[f64], gradient: &mut [f64]| -> f64 {
            evaluations += 1;
            // An infinite value is never lower, so the search stops where it is.
            if context.cancelled() {
                return f64::INFINITY;
            }
            if place.iter().zip(&origin).any(|(x, o)| (x - o).abs() > REACH) {
                return f64::INFINITY;
            }
            match likelihood(kernel, place, rows, targets.view()) {
                Ok((value, slopes)) => {
                    // The search evaluates its origin first.
                    if evaluations == 1 {
                        first = Some(value);
                    }
                    gradient.iter_mut().zip(slopes).for_each(|(g, slope)| *g = -slope * scale);
                    -value * scale
                }
                Err(error) => {
                    failure = Some(error);
                    f64::INFINITY
                }
            }
        };
        let search = Minimise { tolerance: 1e-6, max_iterations: 200 };
        let mut best = search.run(origin.clone(), &mut objective);
        let mut random = stream(seed, "process/starts");
        for _ in 0..restarts {
            let start = origin
                .iter()
                .map(|x| {
                    let z: f64 = StandardNormal.sample(&mut random);
                    x + z
                })
                .collect();
            let found = search.run(start, &mut objective);
            if !best.value.is_finite() || found.value < best.value {
                best = found;
            }
        }
        context.check()?;
        if !best.value.is_finite() {
            let missing =
                || setting("the kernel", "infinite", "its likelihood is not finite at the start of the search");
            return Err(failure.unwrap_or_else(missing));
        }
        let (logs, last) = best.place.split_at(best.place.len() - 1);
        let noise = last[0].exp();
        let mut process = ProcessRegression::new(noise)?;
        if centred {
            process = process.centred();
        }
        let log_likelihood = -best.value / scale;
        Ok(Tuned {
            kernel: kernel.with_logs(logs)?,
            process,
            noise,
            log_likelihood,
            log_likelihood_before: first,
            evaluations,
            converged: best.converged,
        })
    }
}

/// The log marginal likelihood and its gradient in the logarithms of the kernel's parameters and of the noise.
pub(crate) fn likelihood<C: Covariance>(
    kernel: &C,
    place: &[f64],
    rows: ArrayView2<'_, f64>,
    targets: ArrayView2<'_, f64>,
) -> Result<(f64, Vec<f64>)> {
    let (logs, last) = place.split_at(place.len() - 1);
    let (kernel, noise) = (kernel.with_logs(logs)?, last[0].exp());
    let mut matrix = kernel.gram(rows)?;
    matrix.diag_mut().mapv_inplace(|v| v + noise);
    let factor = cholesky(matrix.view())?;
    let coefficients = factor.solve(targets)?;
    let value = log_likelihood(&factor, targets, coefficients.view());
    // ½(aaᵀ − m·K⁻¹)
    let mut seeds = factor.solve(Array2::eye(rows.nrows()).view())?;
    let share = -0.5 * targets.ncols() as f64;
    seeds.mapv_inplace(|v| v * share);
    matmul_into(0.5, coefficients.view(), coefficients.t(), true, seeds.view_mut());
    let mut gradient = kernel.gradient(rows, seeds.view())?;
    gradient.push(noise * seeds.diag().sum());
    Ok((value, gradient))
}
