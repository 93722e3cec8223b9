//! NeuralEF: eigenfunctions as networks that play a game (Deng, Shi and Zhu 2022, arXiv 2205.00165).
//!
//! The outputs `u_j` are normalised on the batch (L2BN, eq. 16), `ψ_j = u_j / σ_j` with `σ_j = √(Σ_b u_j(x_b)² / n)`,
//! and with `R_ij = ψ_iᵀ K ψ_j / n²` (eq. 15) the loss is (eq. 17)
//!
//! ```text
//! ℓ = −Σ_j (R_jj − Σ_{i<j} R_ij² / sg(R_ii)),    ψ_i under stop-gradient in R_ij
//! ∂ℓ/∂ψ_j = −(2/n²) K (ψ_j − Σ_{i<j} R_ij/R_ii ψ_i)                              (eq. 18)
//! ```
//!
//! and the normalisation is differentiated too: `∂ℓ/∂u = (∂ℓ/∂ψ − ψ · mean(ψ · ∂ℓ/∂ψ)) / σ`. Moving averages of `R_jj`
//! and `σ_j` are the eigenvalues and the scales at test time (Algorithm 1). For a matrix-valued kernel the rows are all
//! pairs of sample and output, so that `n` is the batch size times the number of outputs, in `σ` as well as in `R`.
//!
//! We deviate in two ways. `1/R_ii` is guarded, because a kernel of rank below `k` has `R_ii ≈ 0`: below [`FLOOR`] of
//! the largest, it is clamped. And kernels that are not positive semidefinite satisfy neither `R_ii ≥ 0` nor
//! `R_ij² ≤ R_ii R_jj`: a function with `R_ii ≤ 0` is not yet an eigenfunction that others must avoid, and `R_ij` is
//! clamped to twice that bound, which no semidefinite kernel reaches.

use super::objective::{Average, Objective, Rows, Sizes, average, inner};
use crate::error::Result;
use mercer_kernel::Real;
use mercer_linalg::gemm;
use mercer_linalg::simd::dispatch;
use ndarray::Array2;

/// The smallest divisor `R_ii`, relative to the largest.
const FLOOR: f64 = 1e-6;

/// The averages and the buffers of the method.
#[derive(Debug)]
pub(super) struct NeuralEf<T> {
    keep: f64,
    /// `R_jj`.
    values: Vec<T>,
    /// `σ_j`.
    scales: Vec<T>,
    psi: Vec<T>,
    image: Vec<T>,
    small: [Vec<T>; 3],
}

impl<T: Real> NeuralEf<T> {
    /// With moving averages that keep this share at every step.
    pub(super) fn new(keep: f64) -> Self {
        Self {
            keep,
            values: Vec::new(),
            scales: Vec::new(),
            psi: Vec::new(),
            image: Vec::new(),
            small: Default::default(),
        }
    }
}

/// `σ_j` of the columns of `u`.
fn scales<T: Real>(u: &[T], k: usize, out: &mut [T]) {
    let rows = u.len() / k;
    dispatch(
        #[inline(always)]
        || {
            out.fill(T::zero());
            for row in u.chunks_exact(k) {
                out.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x * x);
            }
        },
    );
    let share = T::narrow(1.0 / rows as f64);
    out.iter_mut().for_each(|sum| *sum = (*sum * share).sqrt());
}

impl<T: Real> Objective<T> for NeuralEf<T> {
    fn cotangents(&mut self, batch: Rows<'_, T>, cotangents: &mut [T]) -> Result<f64> {
        let Rows { outputs, rows, functions: k, product } = batch;
        let Self { keep, values, scales: scale_average, psi, image, small: [sigma, r, mix] } = self;
        psi.resize(rows * k, T::zero());
        image.resize(rows * k, T::zero());
        sigma.resize(k, T::zero());
        r.resize(k * k, T::zero());
        mix.resize(k * k, T::zero());
        scales(outputs, k, sigma);
        average(scale_average, sigma, *keep);
        // A function that is zero on the whole batch has no direction. It stays zero and gets no gradient.
        sigma.iter_mut().for_each(|s| *s = if *s > T::zero() { s.recip() } else { T::zero() });
        scale_columns(outputs, sigma, psi);
        product(psi, image)?;
        let n = rows as f64;
        inner(rows, k, psi, image, (n * n).recip(), r);
        let diagonal: Vec<T> = (0..k).map(|j| r[j * k + j]).collect();
        average(values, &diagonal, *keep);
        let floor = T::narrow(FLOOR) * diagonal.iter().fold(T::min_positive_value(), |most, &x| most.max(x.abs()));
        // image · mix = −(2/n²) K (ψ_j − Σ_{i<j} R_ij/R_ii ψ_i)
        let factor = T::narrow(-2.0 / (n * n));
        let mut loss = 0.0;
        for i in 0..k {
            for j in 0..k {
                let r_ii = diagonal[i].max(floor);
                let bound = T::narrow(2.0) * (r_ii * diagonal[j].abs().max(floor)).sqrt();
                let r_ij = if diagonal[i] > T::zero() { r[i * k + j].min(bound).max(-bound) } else { T::zero() };
                mix[i * k + j] = match i.cmp(&j) {
                    std::cmp::Ordering::Less => -factor * r_ij / r_ii,
                    std::cmp::Ordering::Equal => factor,
                    std::cmp::Ordering::Greater => T::zero(),
                };
                loss += match i.cmp(&j) {
                    std::cmp::Ordering::Less => r_ij.wide() * r_ij.wide() / r_ii.wide(),
                    std::cmp::Ordering::Equal => -diagonal[i].wide(),
                    std::cmp::Ordering::Greater => 0.0,
                };
            }
        }
        gemm([rows, k, k], (image, k, 1), (mix, k, 1), false, cotangents);
        through_normalisation(psi, sigma, cotangents, mix);
        Ok(loss)
    }

    fn outcome(&self) -> Result<(Vec<f64>, Array2<f64>)> {
        let k = self.scales.len();
        let scale = |j: usize| if self.scales[j] > T::zero() { self.scales[j].wide().recip() } else { 0.0 };
        let map = Array2::from_shape_fn((k, k), |(i, j)| if i == j { scale(j) } else { 0.0 });
        Ok((self.values.iter().map(|v| v.wide()).collect(), map))
    }

    fn averages(&mut self, sizes: Sizes) -> Vec<Average<'_, T>> {
        let length = sizes.functions;
        vec![
            Average { name: "values", values: &mut self.values, length },
            Average { name: "scales", values: &mut self.scales, length },
        ]
    }
}

fn scale_columns<T: Real>(from: &[T], factors: &[T], to: &mut [T]) {
    let k = factors.len();
    dispatch(
        #[inline(always)]
        || {
            for (to, from) in to.chunks_exact_mut(k).zip(from.chunks_exact(k)) {
                to.iter_mut().zip(from.iter().zip(factors)).for_each(|(to, (&x, &f))| *to = x * f);
            }
        },
    );
}

/// `∂ℓ/∂u` from `∂ℓ/∂ψ`, in place; `scratch` has one number per function.
fn through_normalisation<T: Real>(psi: &[T], inverse: &[T], cotangents: &mut [T], scratch: &mut [T]) {
    let k = inverse.len();
    let means = &mut scratch[..k];
    let share = T::narrow(k as f64 / psi.len() as f64);
    dispatch(
        #[inline(always)]
        || {
            means.fill(T::zero());
            for (psi, g) in psi.chunks_exact(k).zip(cotangents.chunks_exact(k)) {
                means.iter_mut().zip(psi.iter().zip(g)).for_each(|(sum, (&psi, &g))| *sum += psi * g);
            }
            means.iter_mut().for_each(|sum| *sum *= share);
            for (psi, g) in psi.chunks_exact(k).zip(cotangents.chunks_exact_mut(k)) {
                let constants = means.iter().zip(inverse);
                for ((g, &psi), (&mean, &inverse)) in g.iter_mut().zip(psi).zip(constants) {
                    *g = (*g - psi * mean) * inverse;
                }
            }
        },
    );
}
