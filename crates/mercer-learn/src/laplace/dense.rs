//! A posterior over the weights of K features: `H = Σ Ψ(xᵢ)ᵀ Λᵢ Ψ(xᵢ)` as a matrix.
//!
//! ```text
//! Cov f(x) = Ψ(x) (H + δI)⁻¹ Ψ(x)ᵀ          Ψ(x): outputs × K
//! ```
//!
//! With the Jacobian as `Ψ` this is the full linearised Laplace approximation. With scaled eigenfunctions `√μ_j ψ_j` of
//! the tangent kernel it is equation 22 of Deng et al. 2022 (arXiv 2205.00165), and with sketched Jacobians `P g^c(x)`
//! the same equation in K × K, for one pass over the data.
//!
//! Both are subset-of-regressors approximations: what the features do not span has no variance. Far from the data,
//! where the variance should return to that of the prior, it is too small. The residual correction restores it,
//!
//! ```text
//! Cov f(x) + (κ(x, x) − Ψ(x)Ψ(x)ᵀ)₊ / δ
//! ```
//!
//! with the tangent kernel `κ` itself: `1/δ` is the prior variance, and the difference is the part of the prior that
//! the features miss. It is meant for eigenfunctions, for which the difference is positive. Without it their variance
//! is a lower bound; with it the variance is somewhat too large, because the data do not inform the missing part. A
//! sketch misses nothing on average, `E ΨΨᵀ = κ`: there the difference is noise of both signs, the negative part is
//! clipped and counted, and the correction makes things worse (`cargo xtask reproduce posteriors`).

use super::algebra::{add_gram, weighted, wide};
use super::blocks::Blocks;
use super::kept::Kept;
use super::pace::Pace;
use super::source::Batch;
use super::tangent::Projection;
use crate::error::Result;
use mercer_kernel::{FeatureMap, Real};
use mercer_linalg::{Cholesky, matmul, mirror_lower, symmetric_eigen};
use ndarray::{Array1, Array2, Array3, Axis, s};
use std::sync::Arc;

/// Features of every output, and the curvature of their weights.
#[derive(Debug)]
pub(super) struct Dense<T> {
    map: Arc<dyn FeatureMap<T>>,
    pace: Pace,
    n_outputs: usize,
    /// `H`; while it is being summed, its lower triangle.
    pub(super) curvature: Array2<f64>,
    /// The tangent kernel, if the residual correction is applied.
    residual: Option<Blocks<T>>,
    factor: Kept<Cholesky<f64>>,
}

impl<T: Real> Dense<T> {
    /// An empty structure. The map gives the features of one output after those of another.
    pub(super) fn new(map: Arc<dyn FeatureMap<T>>, pace: Pace, n_outputs: usize, residual: Option<Blocks<T>>) -> Self {
        let width = map.n_features() / n_outputs.max(1);
        Self { map, pace, n_outputs, curvature: Array2::zeros((width, width)), residual, factor: Kept::default() }
    }

    /// Bytes of the features of a sample while they are processed: in their own precision and in `f64`.
    pub(super) fn sample_bytes(&self) -> usize {
        self.map.n_features() * (size_of::<T>() + 2 * size_of::<f64>())
    }

    fn features(&self, batch: &Batch<'_, T>) -> Result<Vec<T>> {
        let mut features = mercer_linalg::memory::zeros(batch.samples * self.map.n_features());
        self.pace.features(&*self.map, (batch.inputs, batch.samples), &mut features, batch.context)?;
        Ok(features)
    }

    /// Adds some samples, also to the least-squares problem for the part of the parameters that the features represent.
    pub(super) fn accumulate(
        &mut self,
        batch: &Batch<'_, T>,
        roots: &Array3<f64>,
        projection: Option<&mut Projection<T>>,
    ) -> Result<()> {
        let features = self.features(batch)?;
        if let Some(projection) = projection {
            projection.add(wide(&features, self.curvature.nrows()).view(), batch)?;
        }
        add_gram(&mut self.curvature, weighted(&features, roots).view());
        Ok(())
    }

    pub(super) fn finish(&mut self) {
        mirror_lower(self.curvature.view_mut());
    }

    /// Multiplies the curvature.
    pub(super) fn scale(&mut self, factor: f64) {
        self.curvature *= factor;
        self.factor = Kept::default();
    }

    pub(super) fn factor(&self, precision: f64) -> Result<Arc<Cholesky<f64>>> {
        self.factor.get(&self.curvature, precision, Ok)
    }

    pub(super) fn log_det_ratio(&self, precision: f64) -> Result<f64> {
        Ok(self.factor(precision)?.log_det() - self.curvature.nrows() as f64 * precision.ln())
    }

    /// `tr H(H + δI)⁻¹ = K − δ ‖L⁻¹‖²`.
    pub(super) fn effective_parameters(&self, precision: f64) -> Result<f64> {
        let width = self.curvature.nrows();
        let inverse = self.factor(precision)?.solve_lower(Array2::eye(width).view())?;
        Ok(width as f64 - precision * inverse.iter().map(|x| x * x).sum::<f64>())
    }

    /// The covariance, and the number of samples whose residual had a negative part.
    pub(super) fn covariance(&self, batch: &Batch<'_, T>, precision: f64) -> Result<(Array3<f64>, usize)> {
        let (n_outputs, width) = (self.n_outputs, self.curvature.nrows());
        let rows = wide(&self.features(batch)?, width);
        let solved = self.factor(precision)?.solve_lower(rows.t())?;
        let mut covariance = Array3::zeros((batch.samples, n_outputs, n_outputs));
        for (at, mut own) in covariance.axis_iter_mut(Axis(0)).enumerate() {
            let half = solved.slice(s![.., at * n_outputs..(at + 1) * n_outputs]);
            own.assign(&matmul(half.t(), half));
        }
        let Some(kernel) = &self.residual else { return Ok((covariance, 0)) };
        let mut clipped = 0;
        let mut missing = kernel.covariance(batch, 1.0)?;
        for (at, (mut own, mut missing)) in
            covariance.axis_iter_mut(Axis(0)).zip(missing.axis_iter_mut(Axis(0))).enumerate()
        {
            batch.context.check()?;
            let features = rows.slice(s![at * n_outputs..(at + 1) * n_outputs, ..]);
            missing -= &matmul(features, features.t());
            // The difference of two symmetric matrices, made symmetric again after rounding.
            let symmetric = 0.5 * (&missing + &missing.t());
            let (positive, cut) = positive_part(&symmetric)?;
            own.scaled_add(1.0 / precision, &positive);
            clipped += usize::from(cut);
        }
        Ok((covariance, clipped))
    }
}

/// The nearest positive semidefinite matrix, and whether it differs by more than rounding.
fn positive_part(a: &Array2<f64>) -> Result<(Array2<f64>, bool)> {
    let eigen = symmetric_eigen(a.view())?;
    let largest = eigen.values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let cut = eigen.values.iter().any(|&value| value < -1e-9 * largest);
    let roots: Array1<f64> = eigen.values.mapv(|value| value.max(0.0).sqrt());
    let half = &eigen.vectors * &roots;
    Ok((half.dot(&half.t()), cut))
}
