//! The block count-sketch: a sparse Johnson–Lindenstrauss matrix whose scatter is made of contiguous additions.
//!
//! The K buckets are cut into `s` equal blocks, and every coordinate goes to one bucket of each, with a random sign and weight
//! `1/√s` (the block construction of Kane and Nelson 2014, arXiv 1012.1577; `s = 1` is the count-sketch of Charikar, Chen and
//! Farach-Colton 2002). Buckets are not hashed coordinate by coordinate. A run of consecutive coordinates, as long as
//! the block, is rotated by one random shift, so that it is added as two contiguous slices, at memory speed.
//!
//! All signs are independent, so `E[PᵀP] = I`. Two coordinates of one run never meet, two of different runs meet with
//! probability `s/K` in each block, as under independent hashing; mixed terms vanish because of the signs. Hence, with `M = Σ_c x_c y_cᵀ`,
//! `Var Σ_c ⟨P x_c, P y_c⟩ ≤ (‖M‖² + tr M² − 2 Σᵢ Mᵢᵢ²) / K`, no more than a Gaussian sketch's `(‖M‖² + tr M²) / K`,
//! for any `s`; more non-zeros only thin the tails.

use super::Rows;
use super::signs::{SignTable, bytes_for, coins};
use crate::empirical::Gradients;
use crate::kernel::Real;
use mercer_data::random::{ChaCha8Rng, stream};
use rand::Rng;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Sparse<T> {
    k: usize,
    table: SignTable<T>,
    parameters: Vec<Vec<Run>>,
    signs: Vec<u8>,
}

/// Consecutive coordinates of a parameter's gradient, and their buckets.
#[derive(Debug)]
struct Run {
    coordinates: Range<usize>,
    buckets: Range<usize>,
    shift: usize,
    /// The offset of its signs.
    signs: usize,
}

impl<T: Real> Sparse<T> {
    pub(super) fn new(gradients: &Gradients<T>, rows: Rows, (k, nonzeros): (usize, usize), seed: u64) -> Self {
        let (mut signs, mut parameters) = (Vec::new(), Vec::new());
        for (parameter, &chosen) in gradients.chosen().iter().enumerate() {
            let mut runs = Vec::new();
            let width = if chosen { rows.copies * gradients.numel(parameter) } else { 0 };
            let mut stream = stream(seed, &format!("sketch/sjlt/{parameter}"));
            for block in 0..nonzeros {
                let buckets = block * k / nonzeros..(block + 1) * k / nonzeros;
                for start in (0..width).step_by(buckets.len()) {
                    let coordinates = start..(start + buckets.len()).min(width);
                    let shift = below(&mut stream, buckets.len());
                    let at = signs.len();
                    signs.extend(coins(&mut stream, bytes_for(coordinates.len())));
                    runs.push(Run { coordinates, buckets: buckets.clone(), shift, signs: at });
                }
            }
            parameters.push(runs);
        }
        Self { k, table: SignTable::new(), parameters, signs }
    }

    /// Bytes of a thread's scratch: the signs of a run.
    pub(super) fn bytes(&self) -> usize {
        self.k * size_of::<T>()
    }

    /// Adds the gradients of one parameter, `[rows, width]`, to `[rows, k]`.
    pub(super) fn add(&self, parameter: usize, gradient: &[T], rows: usize, out: &mut [T]) {
        let width = gradient.len() / rows.max(1);
        mercer_linalg::simd::dispatch(
            #[inline(always)]
            || {
                let mut signs = vec![T::zero(); self.k];
                for run in &self.parameters[parameter] {
                    let signs = &mut signs[..run.coordinates.len()];
                    self.table.expand(&self.signs[run.signs..], signs);
                    for (gradient, out) in gradient.chunks_exact(width).zip(out.chunks_exact_mut(self.k)) {
                        let (from, to) = (&gradient[run.coordinates.clone()], &mut out[run.buckets.clone()]);
                        let (wrapped, ahead) = to.split_at_mut(run.shift);
                        let fitting = from.len().min(ahead.len());
                        add(&from[..fitting], &signs[..fitting], ahead);
                        add(&from[fitting..], &signs[fitting..], wrapped);
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn add<T: Real>(from: &[T], signs: &[T], to: &mut [T]) {
    to.iter_mut().zip(from).zip(signs).for_each(|((to, &from), &sign)| *to += from * sign);
}

/// A random number below `bound`.
fn below(stream: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u128::from(stream.next_u64()) * bound as u128) >> 64) as usize
}
