//! A multiple of a kernel.

use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use mercer_linalg::simd::dispatch;
use std::sync::Arc;

/// `factor · κ(x, x')`.
#[derive(Clone, Debug)]
pub struct Scaled<T> {
    kernel: Arc<dyn Kernel<T>>,
    factor: T,
}

impl<T: Real> Scaled<T> {
    /// A factor that is negative or not finite is an error: the result would not be a kernel.
    pub fn new(kernel: Arc<dyn Kernel<T>>, factor: T) -> Result<Self> {
        if factor.is_finite() && factor >= T::zero() {
            return Ok(Self { kernel, factor });
        }
        Err(KernelError::Setting(format!(
            "{factor} times a kernel is not a kernel: the factor must be finite and not negative"
        )))
    }
}

impl<T: Real> Kernel<T> for Scaled<T> {
    fn per_sample(&self) -> usize {
        self.kernel.per_sample()
    }

    fn parts(&self) -> Vec<String> {
        self.kernel.parts()
    }

    fn beside(&self) -> Vec<String> {
        self.kernel.beside()
    }

    fn cost(&self) -> Cost {
        let cost = self.kernel.cost();
        let matrices = self.parts().len() + self.beside().len();
        let elements = (self.per_sample() * self.per_sample() * matrices) as f64;
        Cost { pair_flops: cost.pair_flops + elements, ..cost }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": "scaled", "factor": self.factor.wide(), "of": self.kernel.identity() })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        self.kernel.prepare(inputs, samples)
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        self.kernel.contract(a, b, tile);
        dispatch(
            #[inline(always)]
            || tile.iter_mut().for_each(|x| *x *= self.factor),
        );
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        self.kernel.diagonal(a).into_iter().map(|x| self.factor * x).collect()
    }
}
