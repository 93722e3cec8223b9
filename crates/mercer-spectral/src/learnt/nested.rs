//! Nested low-rank approximation (Ryu, Xu, Erol, Bu, Zheng and Wornell 2024, arXiv 2402.03655).
//!
//! `k` functions approximate the operator best when `‖K − Σ_j f_j f_jᵀ‖²` is smallest; up to a constant,
//!
//! ```text
//! ℓ(f_1 … f_k) = −2 Σ_j ⟨f_j, K f_j⟩ + Σ_ij ⟨f_i, f_j⟩²
//! ```
//!
//! which is invariant under rotations of the functions. Nesting orders them: the first `j` functions must be optimal
//! for every `j`. *Sequential*: the gradient of `f_j` is that of `ℓ(f_1 … f_j)` with the earlier functions held fixed.
//! *Joint*: the loss is `Σ_j w_j ℓ(f_1 … f_j)` with `w_j = 1/k`, a single function of all parameters, which also suits
//! networks that share weights. *None* is the loss itself, for pairs of augmentations the spectral contrastive loss
//! (HaoChen et al. 2021, arXiv 2106.04156): the functions then span the same space as the eigenfunctions, in no
//! particular order.
//!
//! There is no normalisation: `μ_j = ⟨f_j, f_j⟩` and `ψ_j = f_j / ‖f_j‖`. With masks `m_j` and `M_ij`, symmetric unless
//! the nesting is sequential,
//!
//! ```text
//! ∂ℓ/∂f_j = −(4/n²) m_j K f_j + (4/n) Σ_i M_ij ⟨f_i, f_j⟩ f_i,    ⟨f_i, f_j⟩ = Σ_b f_i(x_b) f_j(x_b) / n
//! sequential: m_j = 1, M_ij = [i ≤ j]      joint: m_j = Σ_{l ≥ j} w_l, M_ij = m_max(i, j)      none: all 1
//! ```

use super::objective::{Average, Objective, Rows, Sizes, average, inner};
use crate::error::Result;
use mercer_kernel::Real;
use mercer_linalg::gemm;
use mercer_linalg::simd::dispatch;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// How functions of a low-rank approximation are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nesting {
    /// Every function is optimal for the residual of those before it.
    Sequential,
    /// The first `j` functions are optimal on average over `j`.
    Joint,
    /// No order: the functions span the right space.
    None,
}

impl Nesting {
    /// `m_j` for functions counted from 0.
    fn share(self, j: usize, k: usize) -> f64 {
        match self {
            Self::Sequential | Self::None => 1.0,
            Self::Joint => (k - j) as f64 / k as f64,
        }
    }

    /// `M_ij`.
    fn mask(self, i: usize, j: usize, k: usize) -> f64 {
        match self {
            Self::Sequential => f64::from(u8::from(i <= j)),
            Self::Joint => self.share(i.max(j), k),
            Self::None => 1.0,
        }
    }
}

/// The averages and the buffers of the method.
#[derive(Debug)]
pub(super) struct Nested<T> {
    nesting: Nesting,
    keep: f64,
    /// `⟨f_j, f_j⟩`.
    squares: Vec<T>,
    image: Vec<T>,
    small: [Vec<T>; 2],
}

impl<T: Real> Nested<T> {
    /// With moving averages that keep this share at every step.
    pub(super) fn new(nesting: Nesting, keep: f64) -> Self {
        Self { nesting, keep, squares: Vec::new(), image: Vec::new(), small: Default::default() }
    }
}

impl<T: Real> Objective<T> for Nested<T> {
    fn cotangents(&mut self, batch: Rows<'_, T>, cotangents: &mut [T]) -> Result<f64> {
        let Rows { outputs, rows, functions: k, product } = batch;
        let (nesting, n) = (self.nesting, rows as f64);
        self.image.resize(rows * k, T::zero());
        let [gram, mix] = &mut self.small;
        gram.resize(k * k, T::zero());
        mix.resize(k * k, T::zero());
        product(outputs, &mut self.image)?;
        inner(rows, k, outputs, outputs, n.recip(), gram);
        let diagonal: Vec<T> = (0..k).map(|j| gram[j * k + j]).collect();
        average(&mut self.squares, &diagonal, self.keep);
        inner(rows, k, outputs, &self.image, (n * n).recip(), mix);
        let mut loss = 0.0;
        for i in 0..k {
            loss -= 2.0 * nesting.share(i, k) * mix[i * k + i].wide();
            for j in 0..k {
                // Sequential nesting counts a pair only for the later function.
                let twice = if nesting == Nesting::Sequential && i != j { 2.0 } else { 1.0 };
                loss += twice * nesting.mask(i, j, k) * gram[i * k + j].wide().powi(2);
            }
        }
        for i in 0..k {
            for j in 0..k {
                mix[i * k + j] = T::narrow(4.0 / n * nesting.mask(i, j, k)) * gram[i * k + j];
            }
        }
        gemm([rows, k, k], (outputs, k, 1), (mix, k, 1), false, cotangents);
        let factors: Vec<T> = (0..k).map(|j| T::narrow(-4.0 / (n * n) * nesting.share(j, k))).collect();
        dispatch(
            #[inline(always)]
            || {
                for (g, image) in cotangents.chunks_exact_mut(k).zip(self.image.chunks_exact(k)) {
                    g.iter_mut().zip(image.iter().zip(&factors)).for_each(|(g, (&x, &f))| *g += f * x);
                }
            },
        );
        Ok(loss)
    }

    fn outcome(&self) -> Result<(Vec<f64>, Array2<f64>)> {
        let k = self.squares.len();
        let scale = |j: usize| if self.squares[j] > T::zero() { self.squares[j].wide().sqrt().recip() } else { 0.0 };
        let map = Array2::from_shape_fn((k, k), |(i, j)| if i == j { scale(j) } else { 0.0 });
        Ok((self.squares.iter().map(|v| v.wide()).collect(), map))
    }

    fn averages(&mut self, sizes: Sizes) -> Vec<Average<'_, T>> {
        vec![Average { name: "squares", values: &mut self.squares, length: sizes.functions }]
    }
}
