//! Objectives: how a method turns the outputs of a batch into a gradient.
//!
//! With `n` rows (samples, or samples times outputs of a matrix-valued kernel), `U` the outputs of the networks on them
//! (`n × k`) and `K` the kernel between them, an objective gives `∂ℓ/∂U`, and keeps the averages from which eigenvalues
//! and eigenfunctions are computed at the end.

use super::passes::Passes;
use crate::error::Result;
use mercer_kernel::Real;
use mercer_linalg::gemm;
use mercer_net::run::Weights;
use ndarray::Array2;

/// Writes the product of the kernel with a matrix.
pub(super) type Product<'a, T> = dyn FnMut(&[T], &mut [T]) -> Result<()> + 'a;

/// The outputs of one batch, and the kernel between its rows.
pub(super) struct Rows<'a, T> {
    /// `U`, row-major.
    pub(super) outputs: &'a [T],
    /// `n`.
    pub(super) rows: usize,
    /// `k`.
    pub(super) functions: usize,
    /// Writes `K·V` for any `V` (`n × k`).
    pub(super) product: &'a mut Product<'a, T>,
}

/// One pass over the networks, for what an objective needs in addition to the gradient of a loss.
pub(super) struct SecondPass<'a, T> {
    pub(super) passes: &'a mut Passes<T>,
    pub(super) weights: &'a Weights<T>,
    /// The outputs of the batch, `n × k`.
    pub(super) outputs: &'a [T],
    pub(super) rows: usize,
    /// The ranges of the gradient that belong to each function; empty if functions share parameters.
    pub(super) owners: &'a [std::ops::Range<usize>],
}

/// An objective, with its averages.
pub(super) trait Objective<T: Real>: Send {
    /// Writes `∂ℓ/∂U` (`n × k`) and returns `ℓ`.
    fn cotangents(&mut self, batch: Rows<'_, T>, cotangents: &mut [T]) -> Result<f64>;

    /// Adds the part of the gradient that does not follow from the cotangents.
    fn correct(&mut self, _again: SecondPass<'_, T>, _gradient: &mut [T]) {}

    /// Eigenvalues, and the map `A` with `ψ = u·A`.
    fn outcome(&self) -> Result<(Vec<f64>, Array2<f64>)>;

    /// The averages; empty before the first batch.
    fn averages(&mut self, sizes: Sizes) -> Vec<Average<'_, T>>;

    /// Checks averages that were read from a file; the error is the name of an invalid one, and why.
    fn check(&self) -> std::result::Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// The sizes that determine the lengths of the averages.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// `k`.
    pub(super) functions: usize,
    /// Of all functions together.
    pub(super) parameters: usize,
    /// Whether no two functions share a parameter.
    pub(super) separate: bool,
}

/// A moving average of a run.
pub(super) struct Average<'a, T> {
    pub(super) name: &'static str,
    pub(super) values: &'a mut Vec<T>,
    /// Available after the first batch.
    pub(super) length: usize,
}

/// `AᵀB` of two `n × k` matrices, times a factor.
pub(super) fn inner<T: Real>(rows: usize, k: usize, a: &[T], b: &[T], factor: f64, out: &mut [T]) {
    gemm([k, k, rows], (a, 1, k), (b, k, 1), false, out);
    let factor = T::narrow(factor);
    out.iter_mut().for_each(|x| *x *= factor);
}

/// `keep · average + (1 − keep) · new`; the first batch is the first average.
pub(super) fn average<T: Real>(average: &mut Vec<T>, new: &[T], keep: f64) {
    if average.is_empty() {
        average.extend_from_slice(new);
        return;
    }
    let (keep, fresh) = (T::narrow(keep), T::narrow(1.0 - keep));
    mercer_linalg::simd::dispatch(
        #[inline(always)]
        || average.iter_mut().zip(new).for_each(|(old, &new)| *old = keep * *old + fresh * new),
    );
}
