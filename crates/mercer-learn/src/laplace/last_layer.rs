//! The last layer with its full curvature, `H_cd = Σ_n Λ_cd φφᵀ` for every pair of outputs, without `φ ⊗ I`.
//!
//! `φ` are the features that enter the layer, with a one for the bias. With `C` outputs and `F` features the matrix has
//! `C²/2` blocks of `F × F`, each one product of `N` rows. With its factor `H + δI = LLᵀ` and `L⁻¹` split into the
//! columns `M_c` of output `c`, which are zero above row `cF`,
//!
//! ```text
//! Cov f(x)_cd = (M_c φ)·(M_d φ)
//! ```
//!
//! takes `C²F²/2` multiplications per sample. `L⁻¹` is computed once, in `(CF)³/3`.

use super::head::Head;
use super::kept::Kept;
use super::source::Batch;
use crate::error::{LearnError, Result};
use crate::repair::{self, Repair};
use mercer_kernel::Real;
use mercer_linalg::simd::dispatch;
use mercer_linalg::{Cholesky, Triangle, matmul, matmul_into, memory, mirror_lower, solve_triangular};
use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;
use std::sync::Arc;

/// The curvature of all weights and biases of the last layer.
#[derive(Debug)]
pub(super) struct LastFull<T> {
    head: Head<T>,
    /// `H`, output by output; while it is being summed, its lower triangle.
    pub(super) curvature: Array2<f64>,
    factor: Kept<Factor>,
}

/// `L` and its inverse.
#[derive(Debug)]
struct Factor {
    cholesky: Cholesky<f64>,
    /// `M_c`, from row `cF` on.
    columns: Vec<Array2<f64>>,
}

impl<T: Real> LastFull<T> {
    pub(super) fn new(head: Head<T>) -> Self {
        let side = head.n_outputs * Self::width(&head);
        Self { head, curvature: Array2::zeros((side, side)), factor: Kept::default() }
    }

    /// Features with the ones of the biases.
    fn width(head: &Head<T>) -> usize {
        head.width + head.layer.biases.len()
    }

    pub(super) fn head(&self) -> &Head<T> {
        &self.head
    }

    pub(super) fn sample_bytes(&self) -> usize {
        Self::width(&self.head) * (size_of::<T>() + size_of::<f64>() * (1 + self.head.n_outputs))
    }

    /// `φ`: scaled features, then the scales of the biases.
    fn features(&self, batch: &Batch<'_, T>) -> Array2<f64> {
        let head = &self.head;
        let mut out = Array2::zeros((batch.samples, Self::width(head)));
        out.slice_mut(s![.., ..head.width]).assign(&head.inputs(batch));
        for (mut column, (_, scale)) in out.axis_iter_mut(Axis(1)).skip(head.width).zip(&head.layer.biases) {
            column.fill(*scale);
        }
        out
    }

    /// Adds some samples; `curvature` is `Λ`.
    pub(super) fn accumulate(&mut self, batch: &Batch<'_, T>, curvature: &Array3<f64>) -> Result<()> {
        let (features, samples) = (self.features(batch), batch.samples);
        let (width, n_outputs) = (features.ncols(), self.head.n_outputs);
        let side = self.curvature.ncols();
        let slots = self.curvature.as_slice_mut().expect("made row-major");
        debug_assert_eq!(side, width * n_outputs);
        slots.par_chunks_mut((width * side).max(1)).enumerate().try_for_each(|(c, slots)| {
            batch.context.check()?;
            let mut strip = ArrayViewMut2::from_shape((width, side), slots).expect("a strip of rows");
            // All blocks of a strip at once: Φᵀ·(Λ_c0 Φ, …, Λ_cc Φ).
            let across = (c + 1) * width;
            let mut weighted = memory::zeros::<f64>(samples * across);
            for (at, row) in weighted.chunks_exact_mut(across.max(1)).enumerate() {
                let own = features.row(at);
                let own = own.as_slice().expect("row-major");
                for (d, part) in row.chunks_exact_mut(width).enumerate() {
                    let lambda = curvature[(at, c, d)];
                    part.iter_mut().zip(own).for_each(|(x, feature)| *x = lambda * feature);
                }
            }
            let weighted = ArrayView2::from_shape((samples, across), &weighted).expect("whole rows");
            matmul_into(1.0, features.t(), weighted, true, strip.slice_mut(s![.., ..across]));
            Ok(())
        })
    }

    pub(super) fn finish(&mut self) {
        mirror_lower(self.curvature.view_mut());
    }

    /// Multiplies the curvature.
    pub(super) fn scale(&mut self, factor: f64) {
        self.curvature *= factor;
        self.factor = Kept::default();
    }

    fn factor(&self, precision: f64) -> Result<Arc<Factor>> {
        let width = Self::width(&self.head);
        self.factor.get(&self.curvature, precision, |cholesky| {
            let columns: Result<Vec<Array2<f64>>> = (0..self.head.n_outputs)
                .into_par_iter()
                .map(|c| {
                    let below = cholesky.lower.slice(s![c * width.., c * width..]);
                    let mut unit = Array2::zeros((below.nrows(), width));
                    unit.diag_mut().fill(1.0);
                    Ok(solve_triangular(Triangle::Lower, below, unit.view())?)
                })
                .collect();
            Ok(Factor { columns: columns?, cholesky })
        })
    }

    /// The jitter that the factor needed.
    pub(super) fn repair(&self, precision: f64) -> Result<Option<Repair>> {
        Ok(repair::jitter(&self.factor(precision)?.cholesky))
    }

    pub(super) fn log_det_ratio(&self, precision: f64) -> Result<f64> {
        Ok(self.factor(precision)?.cholesky.log_det() - self.curvature.nrows() as f64 * precision.ln())
    }

    /// `tr H(H + δI)⁻¹ = CF − δ ‖L⁻¹‖²`.
    pub(super) fn effective_parameters(&self, precision: f64) -> Result<f64> {
        let factor = self.factor(precision)?;
        let squares: f64 = factor.columns.iter().map(|column| column.iter().map(|x| x * x).sum::<f64>()).sum();
        Ok(self.curvature.nrows() as f64 - precision * squares)
    }

    pub(super) fn covariance(&self, batch: &Batch<'_, T>, precision: f64) -> Result<Array3<f64>> {
        let factor = self.factor(precision)?;
        let (features, samples) = (self.features(batch), batch.samples);
        let (n_outputs, width) = (self.head.n_outputs, features.ncols());
        let image = |column: &Array2<f64>| -> Result<Array2<f64>> {
            batch.context.check()?;
            Ok(matmul(features.view(), column.t()))
        };
        let images = factor.columns.par_iter().map(image).collect::<Result<Vec<_>>>()?;
        let mut covariance = Array3::zeros((samples, n_outputs, n_outputs));
        let slots = covariance.as_slice_mut().expect("fresh");
        slots.par_chunks_mut((n_outputs * n_outputs).max(1)).enumerate().try_for_each(|(at, out)| {
            batch.context.check()?;
            for d in 0..n_outputs {
                let right = images[d].row(at);
                let right = right.as_slice().expect("row-major");
                for c in 0..=d {
                    // The image of output c begins at row cF, that of d at row dF.
                    let left = images[c].row(at);
                    let left = &left.as_slice().expect("row-major")[(d - c) * width..];
                    let sum = dot(left, right);
                    out[c * n_outputs + d] = sum;
                    out[d * n_outputs + c] = sum;
                }
            }
            Ok::<(), LearnError>(())
        })?;
        Ok(covariance)
    }
}

/// Sums in eight lanes on every machine.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    dispatch(
        #[inline(always)]
        || {
            let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
            let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
            for (a, b) in a.zip(b) {
                (0..LANES).for_each(|lane| sums[lane] += a[lane] * b[lane]);
            }
            sums[0] += rest;
        },
    );
    sums.iter().sum()
}
