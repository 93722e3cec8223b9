//! The cosine normalisation of a kernel.
//!
//! `κ(x, x') / √(κ(x, x) κ(x', x'))`: the cosine of the angle between the features of `x` and `x'`. For the trace
//! kernel it is equation 4 of Engel et al. 2023 (arXiv 2305.14585), whose denominator is misprinted there: it should be
//! `√(Σ_c ‖g^c(x)‖²)` for each sample, so that `κ(x, x) = 1` as the text says.

use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use crate::products::mirror;
use mercer_linalg::simd::dispatch;
use std::sync::Arc;

/// A kernel divided by the square roots of its diagonal. Each row of a matrix-valued kernel has its own.
///
/// A sample with `κ(x, x) = 0` has no direction, and its row and column are 0; otherwise the diagonal of a block with
/// itself is 1, exactly. If a kernel has several parts, all are divided by the diagonal of their sum. They still sum to
/// the normalised kernel, and their diagonals sum to 1 up to rounding. Matrices beside the parts are left out.
#[derive(Clone, Debug)]
pub struct Normalised<T> {
    kernel: Arc<dyn Kernel<T>>,
}

/// A block and `1 / √κ(x, x)` of each of its rows, or 0.
struct Scales<T> {
    block: Block,
    scales: Vec<T>,
}

impl<T: Real> Normalised<T> {
    /// The normalised form of a kernel.
    pub fn new(kernel: Arc<dyn Kernel<T>>) -> Self {
        Self { kernel }
    }

    /// Matrices that the kernel writes.
    fn matrices(&self) -> usize {
        self.kernel.parts().len() + self.kernel.beside().len()
    }
}

impl<T: Real> Kernel<T> for Normalised<T> {
    fn per_sample(&self) -> usize {
        self.kernel.per_sample()
    }

    fn parts(&self) -> Vec<String> {
        self.kernel.parts()
    }

    fn cost(&self) -> Cost {
        let (cost, rows) = (self.kernel.cost(), self.per_sample());
        Cost {
            sample_bytes: cost.sample_bytes + rows * size_of::<T>(),
            // The diagonal is about a pair of samples.
            prepare_flops: cost.prepare_flops + cost.pair_flops,
            pair_flops: cost.pair_flops + (2 * rows * rows * self.parts().len()) as f64,
            // If matrices are left out, everything is written to scratch memory first.
            contract_tiles: match self.kernel.beside().len() {
                0 => cost.contract_tiles,
                _ => (cost.contract_tiles + 1) * self.matrices(),
            },
            ..cost
        }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": "normalised", "of": self.kernel.identity() })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        let block = self.kernel.prepare(inputs, samples)?;
        let diagonal = self.kernel.diagonal(&block);
        if let Some(row) = diagonal.iter().position(|x| !x.is_finite()) {
            let sample = row / self.per_sample().max(1);
            return Err(KernelError::NotFinite { place: "the diagonal of the kernel".to_owned(), sample });
        }
        let scale = |x: T| if x > T::zero() { x.sqrt().recip() } else { T::zero() };
        let scales = diagonal.into_iter().map(scale).collect();
        Ok(Block::new(samples, Scales { block, scales }))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        let symmetric = std::ptr::eq(a, b);
        let (a, b) = (a.content::<Scales<T>>(), b.content::<Scales<T>>());
        let (height, width) = (a.scales.len(), b.scales.len());
        let parts = tile.len() / (height * width).max(1);
        if self.matrices() == parts {
            self.kernel.contract(&a.block, &b.block, tile);
        } else {
            let mut all = vec![T::zero(); self.matrices() * height * width];
            self.kernel.contract(&a.block, &b.block, &mut all);
            tile.copy_from_slice(&all[..tile.len()]);
        }
        for part in tile.chunks_exact_mut((height * width).max(1)) {
            dispatch(
                #[inline(always)]
                || {
                    for (row, &scale) in part.chunks_exact_mut(width).zip(&a.scales) {
                        // Not multiplied by the product of both scales, which may overflow even if they do not.
                        row.iter_mut().zip(&b.scales).for_each(|(x, &other)| *x = *x * scale * other);
                    }
                },
            );
            if symmetric {
                mirror(part, height);
                if parts == 1 {
                    part.iter_mut().step_by(width + 1).zip(&a.scales).for_each(|(x, &scale)| *x = unit(scale));
                }
            }
        }
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        a.content::<Scales<T>>().scales.iter().map(|&scale| unit(scale)).collect()
    }
}

/// The normalised diagonal of a row with this scale.
fn unit<T: Real>(scale: T) -> T {
    if scale > T::zero() { T::one() } else { T::zero() }
}
