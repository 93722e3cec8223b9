//! Posteriors that are independent between parameters: diagonal, and Kronecker-factored.
//!
//! The gradient of output `c` by the weight of a dense layer is `δ_c aᵀ`. In bases `Q_B`, `Q_A` of its two sides, both
//! structures are a table of curvatures `h_oi`, one for every pair of directions. With the prior precision `δ` added to
//! each,
//!
//! ```text
//! Cov f(x)_cd = Σ_o (Q_Bᵀδ_c)_o (Q_Bᵀδ_d)_o Σ_i (Q_Aᵀa)²_i / (h_oi + δ),
//! ```
//!
//! which takes two small products and no gradient. The **diagonal** has unit bases and
//! `h_oi = Σ_n Σ_cd Λ_cd δ_co δ_do a²_i`. The **Kronecker** structure (Martens and Grosse 2015; Ritter et al. 2018) has
//! the eigenvectors of `A = Σ aaᵀ/N` and `B = Σ Σ_cd Λ_cd δ_c δ_dᵀ` and the products `h_oi = β_o α_i` of their
//! eigenvalues: the prior is not damped, that is, not split between the factors. Weights and biases have separate
//! factors; a bias has only `B`.
//!
//! Layers with `P` positions (convolutions, sequences) follow KFAC-expand (Eschenhagen et al. 2023, arXiv 2311.00636):
//! every position counts as a sample, `A = Σ_n Σ_p aaᵀ/(NP)`. There the gradient is formed and rotated into the bases.
//! Other parameters (scales, embeddings) have their own block if they are small, and a diagonal otherwise.

use super::algebra::{add_gram, add_square, weighted};
use super::source::{Batch, Chosen, Source};
use crate::error::Result;
use mercer_kernel::Real;
use mercer_linalg::{Eigen, matmul, mirror_lower, symmetric_eigen};
use mercer_net::run::{Factor, Factors};
use mercer_run::Context;
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis};
use rayon::prelude::*;

/// The largest parameter without two sides for which the curvature is a matrix.
pub(super) const LARGEST_MATRIX: usize = 2048;

/// A table of curvatures for every parameter, in its own basis.
#[derive(Debug)]
pub(super) struct Blocks<T> {
    source: Source<T>,
    pub(super) blocks: Vec<Block>,
    kronecker: bool,
    samples: usize,
}

/// One parameter.
#[derive(Clone, Debug)]
pub(super) struct Block {
    own: Chosen,
    /// Eigenvectors of the two sides, as columns; `None` for the unit basis.
    pub(super) left: Option<Array2<f64>>,
    pub(super) right: Option<Array2<f64>>,
    /// `h`, with a row for every direction of the right side and a column for every direction of the left.
    pub(super) curvature: Array2<f64>,
    sums: Option<Sums>,
}

/// The factors while they are summed: `Σ aaᵀ` where there is a left side, and `B`; lower triangles.
#[derive(Clone, Debug)]
struct Sums {
    left: Option<Array2<f64>>,
    right: Array2<f64>,
}

impl Block {
    /// The lengths of the right and the left side.
    fn sides(own: &Chosen) -> (usize, usize) {
        own.shape.map_or((own.numel, 1), |shape| (shape.right, shape.left))
    }

    /// Whether variances need the gradient as an outer product of two vectors.
    fn is_outer(&self) -> bool {
        self.own.shape.is_some_and(|shape| shape.positions == 1)
    }

    /// Whether the left and right side of this structure have their own bases once it is fitted.
    pub(super) fn has_bases(&self) -> (bool, bool) {
        self.sums.as_ref().map_or((false, false), |sums| (sums.left.is_some(), true))
    }

    /// The name of the parameter.
    pub(super) fn name(&self) -> &str {
        &self.own.name
    }
}

impl<T: Real> Blocks<T> {
    /// An empty structure: diagonal, or Kronecker-factored.
    pub(super) fn new(source: Source<T>, kronecker: bool) -> Self {
        let block = |own: Chosen| {
            let (right, left) = Block::sides(&own);
            let whole = kronecker && (own.shape.is_some() || own.numel <= LARGEST_MATRIX);
            let square = |side: usize| Array2::zeros((side, side));
            let sums = whole.then(|| Sums { left: own.shape.map(|_| square(left)), right: square(right) });
            Block { own, left: None, right: None, curvature: Array2::zeros((right, left)), sums }
        };
        let blocks = source.parameters().into_iter().map(block).collect();
        Self { source, blocks, kronecker, samples: 0 }
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.source.n_outputs()
    }

    /// Which gradients are requested as factors: while fitting a Kronecker structure all that have them, otherwise
    /// those with one position.
    fn outer(&self, fitting: bool) -> Vec<bool> {
        let mut outer = vec![false; self.source.0.chosen().len()];
        for block in &self.blocks {
            let summed = fitting && self.kronecker && block.sums.is_some();
            outer[block.own.at] = block.own.shape.is_some() && (summed || block.is_outer());
        }
        outer
    }

    /// Bytes of the factors of a sample while they are processed.
    pub(super) fn sample_bytes(&self) -> usize {
        self.source.sample_numbers(&self.outer(true)) * (2 * size_of::<T>() + 2 * size_of::<f64>())
    }

    pub(super) fn accumulate(&mut self, batch: &Batch<'_, T>, roots: &Array3<f64>) -> Result<()> {
        let mut shards: Vec<Option<Factors<T>>> = Vec::new();
        shards.resize_with(batch.samples.div_ceil(self.source.grain()), || None);
        let places: Vec<&mut Option<Factors<T>>> = shards.iter_mut().collect();
        self.source.sweep(batch, &self.outer(true), places, |place, factors| {
            *place = Some(factors.clone());
            Ok(())
        })?;
        self.samples += batch.samples;
        self.blocks.par_iter_mut().for_each(|block| {
            let at = block.own.at;
            let own = shards.iter().flatten().filter_map(|shard| shard.parameters[at].as_ref());
            block.add(own, roots);
        });
        Ok(())
    }

    pub(super) fn finish(&mut self, context: &Context) -> Result<()> {
        let mut known: Vec<(Array2<f64>, Eigen<f64>)> = Vec::new();
        for block in &mut self.blocks {
            let Some(mut sums) = block.sums.take() else { continue };
            context.check()?;
            mirror_lower(sums.right.view_mut());
            // A bias has the same factor as its weight, which is decomposed only once.
            let right = match known.iter().find(|(matrix, _)| *matrix == sums.right) {
                Some((_, eigen)) => eigen.clone(),
                None => {
                    let eigen = symmetric_eigen(sums.right.view())?;
                    known.push((sums.right, eigen.clone()));
                    eigen
                }
            };
            let left = match sums.left {
                None => None,
                Some(mut left) => {
                    mirror_lower(left.view_mut());
                    let positions = block.own.shape.map_or(1, |shape| shape.positions);
                    left /= (self.samples * positions) as f64;
                    Some(symmetric_eigen(left.view())?)
                }
            };
            // Sums of squares: negative values are rounding.
            let alpha = left.as_ref().map_or(Array1::ones(1), |eigen| eigen.values.mapv(|x| x.max(0.0)));
            let beta = right.values.mapv(|x| x.max(0.0));
            block.curvature = Array2::from_shape_fn((beta.len(), alpha.len()), |(o, i)| beta[o] * alpha[i]);
            // Row-major, as when they are read back: the memory order affects the last bits of products.
            block.left = left.map(|eigen| eigen.vectors.as_standard_layout().into_owned());
            block.right = Some(right.vectors.as_standard_layout().into_owned());
        }
        Ok(())
    }

    /// Multiplies the curvatures.
    pub(super) fn scale(&mut self, factor: f64) {
        self.blocks.iter_mut().for_each(|block| block.curvature *= factor);
    }

    /// All curvatures, and the number of parameters.
    fn curvatures(&self) -> impl Iterator<Item = f64> + '_ {
        self.blocks.iter().flat_map(|block| block.curvature.iter().copied())
    }

    pub(super) fn log_det_ratio(&self, precision: f64) -> f64 {
        self.curvatures().map(|h| (h / precision).ln_1p()).sum()
    }

    pub(super) fn effective_parameters(&self, precision: f64) -> f64 {
        self.curvatures().map(|h| h / (h + precision)).sum()
    }

    pub(super) fn covariance(&self, batch: &Batch<'_, T>, precision: f64) -> Result<Array3<f64>> {
        let n_outputs = self.n_outputs();
        let variances: Vec<Array2<f64>> =
            self.blocks.iter().map(|block| block.curvature.mapv(|h| 1.0 / (h + precision))).collect();
        let mut covariance = Array3::zeros((batch.samples, n_outputs, n_outputs));
        let slots = covariance.as_slice_mut().expect("fresh");
        let places = slots.chunks_mut((self.source.grain() * n_outputs * n_outputs).max(1)).collect();
        self.source.sweep(batch, &self.outer(false), places, |place: &mut [f64], factors| {
            for (block, variance) in self.blocks.iter().zip(&variances) {
                if let Some(factor) = &factors.parameters[block.own.at] {
                    block.covariance(factor, variance, n_outputs, place);
                }
            }
            Ok(())
        })?;
        Ok(covariance)
    }
}

impl Block {
    /// Adds the contribution of some shards, which together have as many samples as there are roots.
    fn add<'a, T: Real>(&mut self, shards: impl Iterator<Item = &'a Factor<T>>, roots: &Array3<f64>) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for factor in shards {
            match factor {
                Factor::Explicit(gradient) => right.extend_from_slice(gradient),
                Factor::Outer { left: own, right: other, .. } => {
                    left.extend_from_slice(own);
                    right.extend_from_slice(other);
                }
            }
        }
        let weighted = weighted(&right, roots);
        let (n_right, n_left) = Self::sides(&self.own);
        let rows = |array: Array2<f64>, width: usize| {
            let count = array.len() / width.max(1);
            array.into_shape_with_order((count, width)).expect("whole rows")
        };
        let is_outer = self.is_outer();
        match &mut self.sums {
            Some(sums) => {
                add_gram(&mut sums.right, rows(weighted, n_right).view());
                if let Some(sum) = &mut sums.left {
                    add_gram(sum, super::algebra::wide(&left, n_left).view());
                }
            }
            None if is_outer => {
                // Σ_n (Σ_c (Sᵀδ)²_co) a²_i
                let n_outputs = roots.dim().1;
                let mut squares = Array2::zeros((weighted.nrows() / n_outputs.max(1), n_right));
                for (at, row) in weighted.outer_iter().enumerate() {
                    squares.row_mut(at / n_outputs).zip_mut_with(&row, |sum, x| *sum += x * x);
                }
                let inputs = super::algebra::wide(&left, n_left).mapv_into(|x| x * x);
                self.curvature += &matmul(squares.t(), inputs.view());
            }
            None => {
                let mut sum = Array1::<f64>::zeros(self.own.numel);
                weighted.outer_iter().for_each(|row| sum.zip_mut_with(&row, |sum, x| *sum += x * x));
                self.curvature += &self.table(sum.view().insert_axis(Axis(0)));
            }
        }
    }

    /// A gradient as a table, with the right side along rows and the left side along columns.
    fn table(&self, gradient: ArrayView2<'_, f64>) -> Array2<f64> {
        let (right, left) = Self::sides(&self.own);
        let flat = gradient.to_owned();
        if self.own.shape.is_some_and(|shape| !shape.right_major) {
            flat.into_shape_with_order((left, right)).expect("the parameter's size").reversed_axes()
        } else {
            flat.into_shape_with_order((right, left)).expect("the parameter's size")
        }
    }

    /// Adds this parameter's share of the covariance, `[samples, outputs, outputs]`.
    fn covariance<T: Real>(&self, factor: &Factor<T>, variance: &Array2<f64>, n_outputs: usize, out: &mut [f64]) {
        let turned = |data: Array2<f64>, basis: &Option<Array2<f64>>| match basis {
            None => data,
            Some(basis) => matmul(data.view(), basis.view()),
        };
        let square = n_outputs * n_outputs;
        let (n_right, n_left) = Self::sides(&self.own);
        match factor {
            Factor::Outer { left, right, .. } => {
                let inputs = turned(super::algebra::wide(left, n_left), &self.left).mapv_into(|x| x * x);
                let weights = matmul(inputs.view(), variance.t());
                let deltas = turned(super::algebra::wide(right, n_right), &self.right);
                let deltas = deltas.as_standard_layout();
                let deltas = deltas.as_slice().expect("standard layout");
                let mut scaled = vec![0.0; n_outputs * n_right];
                for ((out, weights), deltas) in
                    out.chunks_exact_mut(square).zip(weights.outer_iter()).zip(deltas.chunks_exact(n_outputs * n_right))
                {
                    for (scaled, deltas) in scaled.chunks_exact_mut(n_right).zip(deltas.chunks_exact(n_right)) {
                        scaled.iter_mut().zip(deltas).zip(&weights).for_each(|((s, d), w)| *s = d * w.sqrt());
                    }
                    add_square(&scaled, n_outputs, n_right, out);
                }
            }
            Factor::Explicit(gradient) => {
                let roots = variance.mapv(f64::sqrt);
                let size = self.own.numel;
                let mut scaled = vec![0.0; n_outputs * size];
                for (out, gradients) in out.chunks_exact_mut(square).zip(gradient.chunks_exact(n_outputs * size)) {
                    for (scaled, gradient) in scaled.chunks_exact_mut(size).zip(gradients.chunks_exact(size)) {
                        let mut table = self.table(super::algebra::wide(gradient, size).view());
                        if let Some(basis) = &self.right {
                            table = matmul(basis.t(), table.view());
                        }
                        let table = turned(table, &self.left) * &roots;
                        scaled.iter_mut().zip(&table).for_each(|(s, &x)| *s = x);
                    }
                    add_square(&scaled, n_outputs, size, out);
                }
            }
        }
    }
}
