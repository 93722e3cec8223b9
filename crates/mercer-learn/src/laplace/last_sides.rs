//! The last layer with a curvature that is independent between its weight and biases: diagonal, or Kronecker-factored.
//!
//! The gradient of output `c` with respect to row `d` of the weight is zero unless `c = d`, where it is the input `z` of the
//! layer for every output. So nothing here has a gradient per output: with `C` outputs, `F` inputs and `N` samples the
//! sums take `NCF` (diagonal) or `N(F² + C²)` (Kronecker) multiplications, and variances alone `NC(F + C)`.
//!
//! ```text
//! diagonal     h_ci = Σ_n Λ_cc z_i²                    Cov f(x)_cc = Σ_i z_i²/(h_ci + δ)
//! Kronecker    A = Σ zzᵀ/N = QαQᵀ, B = ΣΛ = RβRᵀ       Cov f(x)_cd = Σ_o R_co R_do Σ_i (Qᵀz)_i²/(β_o α_i + δ)
//! ```
//!
//! A bias is one more input that is always one, with a factor of its own.

use super::algebra::{add_gram, add_square};
use super::head::Head;
use super::likelihood::Likelihood;
use super::source::Batch;
use crate::error::{LearnError, Result};
use mercer_kernel::Real;
use mercer_linalg::{matmul, mirror_lower, symmetric_eigen};
use mercer_run::Context;
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis};
use rayon::prelude::*;

/// A table of curvatures for the weight and for every bias, in the bases of the layer's two sides.
#[derive(Debug)]
pub(super) struct LastSides<T> {
    head: Head<T>,
    kronecker: bool,
    samples: usize,
    /// While they are summed: `Σ zzᵀ` and the moments of the outputs; lower triangles.
    sums: Option<(Array2<f64>, Array2<f64>)>,
    /// The eigenvectors of the two sides, as columns; `None` for unit bases.
    pub(super) left: Option<Array2<f64>>,
    pub(super) right: Option<Array2<f64>>,
    /// `h`, with a row for every direction of the outputs: of the weight, then of every bias.
    pub(super) curvatures: Vec<Array2<f64>>,
}

impl<T: Real> LastSides<T> {
    /// An empty structure.
    pub(super) fn new(head: Head<T>, kronecker: bool) -> Self {
        let (width, n_outputs) = (head.width, head.n_outputs);
        let columns = std::iter::once(width).chain(head.layer.biases.iter().map(|_| 1));
        let curvatures = columns.map(|columns| Array2::zeros((n_outputs, columns))).collect();
        Self { head, kronecker, samples: 0, sums: None, left: None, right: None, curvatures }
    }

    pub(super) fn head(&self) -> &Head<T> {
        &self.head
    }

    /// Whether the sides have bases of their own.
    pub(super) fn has_bases(&self) -> bool {
        self.kronecker
    }

    /// Bytes of a sample while it is processed.
    pub(super) fn sample_bytes(&self) -> usize {
        Self::bytes_of(self.head.width, self.head.n_outputs)
    }

    /// The same for a layer with these sides: inputs as they are, scaled, turned and squared; probabilities and variances.
    pub(super) fn bytes_of(width: usize, n_outputs: usize) -> usize {
        (width * 4).saturating_add(n_outputs.saturating_mul(6)).saturating_mul(size_of::<f64>())
    }

    /// Adds some samples with these outputs.
    pub(super) fn accumulate(
        &mut self,
        batch: &Batch<'_, T>,
        outputs: ArrayView2<'_, f64>,
        likelihood: Likelihood,
    ) -> Result<()> {
        batch.context.check()?;
        let inputs = self.head.inputs(batch);
        self.samples += batch.samples;
        if self.kronecker {
            let square = |side: usize| Array2::zeros((side, side));
            let (width, n_outputs) = (self.head.width, self.head.n_outputs);
            let (left, right) = self.sums.get_or_insert_with(|| (square(width), square(n_outputs)));
            add_gram(left, inputs.view());
            likelihood.add_moments(outputs, right);
            return Ok(());
        }
        let lambda = likelihood.curvature_diagonal(outputs);
        let squares = inputs.mapv_into(|x| x * x);
        let (weight, biases) = self.curvatures.split_first_mut().expect("a weight");
        *weight += &matmul(lambda.t(), squares.view());
        let sum = lambda.sum_axis(Axis(0));
        for (bias, (_, scale)) in biases.iter_mut().zip(&self.head.layer.biases) {
            bias.column_mut(0).scaled_add(scale * scale, &sum);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, likelihood: Likelihood, context: &Context) -> Result<()> {
        let Some((mut left, right)) = self.sums.take() else { return Ok(()) };
        context.check()?;
        let right = symmetric_eigen(likelihood.curvature_of_moments(right, self.samples).view())?;
        context.check()?;
        mirror_lower(left.view_mut());
        left /= self.samples as f64;
        let left = symmetric_eigen(left.view())?;
        // Sums of squares: negative values are rounding.
        let (alpha, beta) = (left.values.mapv(|x| x.max(0.0)), right.values.mapv(|x| x.max(0.0)));
        let scales = self.head.layer.biases.iter().map(|(_, scale)| Array1::from_elem(1, scale * scale));
        let columns = std::iter::once(alpha).chain(scales);
        let table = |own: Array1<f64>| Array2::from_shape_fn((beta.len(), own.len()), |(o, i)| beta[o] * own[i]);
        self.curvatures = columns.map(table).collect();
        // Row-major, as when they are read back: the memory order affects the last bits of products.
        self.left = Some(left.vectors.as_standard_layout().into_owned());
        self.right = Some(right.vectors.as_standard_layout().into_owned());
        Ok(())
    }

    /// Multiplies the curvatures.
    pub(super) fn scale(&mut self, factor: f64) {
        self.curvatures.iter_mut().for_each(|table| *table *= factor);
    }

    fn all(&self) -> impl Iterator<Item = f64> + '_ {
        self.curvatures.iter().flat_map(|table| table.iter().copied())
    }

    pub(super) fn log_det_ratio(&self, precision: f64) -> f64 {
        self.all().map(|h| (h / precision).ln_1p()).sum()
    }

    pub(super) fn effective_parameters(&self, precision: f64) -> f64 {
        self.all().map(|h| h / (h + precision)).sum()
    }

    /// The variance along every direction of the outputs: a row per sample.
    fn along(&self, batch: &Batch<'_, T>, precision: f64) -> Result<Array2<f64>> {
        batch.context.check()?;
        let inputs = self.head.inputs(batch);
        let turned = match &self.left {
            Some(left) => matmul(inputs.view(), left.view()),
            None => inputs,
        };
        let squares = turned.mapv_into(|x| x * x);
        let (weight, biases) = self.curvatures.split_first().expect("a weight");
        let mut along = matmul(squares.view(), weight.mapv(|h| 1.0 / (h + precision)).t());
        for (bias, (_, scale)) in biases.iter().zip(&self.head.layer.biases) {
            along += &bias.column(0).mapv(|h| scale * scale / (h + precision));
        }
        Ok(along)
    }

    /// The variance of every output.
    pub(super) fn variances(&self, batch: &Batch<'_, T>, precision: f64) -> Result<Array2<f64>> {
        let along = self.along(batch, precision)?;
        Ok(match &self.right {
            None => along,
            Some(basis) => matmul(along.view(), basis.mapv(|x| x * x).t()),
        })
    }

    /// The covariance of the outputs.
    pub(super) fn covariance(&self, batch: &Batch<'_, T>, precision: f64) -> Result<Array3<f64>> {
        let along = self.along(batch, precision)?;
        let (samples, n_outputs) = along.dim();
        let mut covariance = Array3::zeros((samples, n_outputs, n_outputs));
        let Some(basis) = &self.right else {
            for (mut own, along) in covariance.outer_iter_mut().zip(along.outer_iter()) {
                own.diag_mut().assign(&along);
            }
            return Ok(covariance);
        };
        let slots = covariance.as_slice_mut().expect("fresh");
        slots.par_chunks_mut((n_outputs * n_outputs).max(1)).enumerate().try_for_each(|(at, out)| {
            batch.context.check()?;
            let rows = basis * &along.row(at).mapv(f64::sqrt);
            add_square(rows.as_slice().expect("row-major"), n_outputs, n_outputs, out);
            Ok::<(), LearnError>(())
        })?;
        Ok(covariance)
    }
}
