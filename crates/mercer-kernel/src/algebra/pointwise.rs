//! Sums and products of kernels.

use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use mercer_linalg::simd::dispatch;
use std::sync::Arc;

/// `Σ κᵢ(x, x')`.
#[derive(Clone, Debug)]
pub struct Sum<T>(Operands<T>);

/// `Π κᵢ(x, x')`, element by element where the kernels are matrix-valued.
#[derive(Clone, Debug)]
pub struct Product<T>(Operands<T>);

impl<T: Real> Sum<T> {
    /// All kernels must have a single part and the same number of rows per sample.
    pub fn new(kernels: Vec<Arc<dyn Kernel<T>>>) -> Result<Self> {
        Operands::new("sum", kernels).map(Self)
    }
}

impl<T: Real> Product<T> {
    /// All kernels must have a single part and the same number of rows per sample.
    pub fn new(kernels: Vec<Arc<dyn Kernel<T>>>) -> Result<Self> {
        Operands::new("product", kernels).map(Self)
    }
}

/// The kernels that are combined element by element.
#[derive(Clone, Debug)]
struct Operands<T> {
    name: &'static str,
    kernels: Vec<Arc<dyn Kernel<T>>>,
    per_sample: usize,
}

impl<T: Real> Operands<T> {
    fn new(name: &'static str, kernels: Vec<Arc<dyn Kernel<T>>>) -> Result<Self> {
        let Some(first) = kernels.first() else {
            return Err(KernelError::Setting(format!("a {name} of no kernels")));
        };
        let per_sample = first.per_sample();
        for (at, kernel) in kernels.iter().enumerate() {
            if kernel.per_sample() != per_sample {
                let found = kernel.per_sample();
                let reason = format!("has {found} rows per sample, the first one {per_sample}");
                return Err(KernelError::Setting(format!("kernel {at} of a {name} {reason}")));
            }
            let parts = kernel.parts().len();
            if parts != 1 {
                return Err(KernelError::Setting(format!(
                    "kernel {at} of a {name} has {parts} parts; combine whole kernels"
                )));
            }
            if let Some(other) = kernel.beside().first() {
                return Err(KernelError::Setting(format!(
                    "kernel {at} of a {name} also has its {other}; combine kernels alone"
                )));
            }
        }
        Ok(Self { name, kernels, per_sample })
    }

    fn cost(&self) -> Cost {
        let parts = self.kernels.iter().map(|kernel| kernel.cost());
        let cost = parts.fold(Cost::default(), Cost::and);
        // The first kernel writes into the tile, each of the others into one of its own.
        let others = self.kernels[1..].iter().map(|kernel| kernel.cost().contract_tiles + 1);
        let elements = (self.per_sample * self.per_sample * (self.kernels.len() - 1)) as f64;
        Cost {
            contract_tiles: others.fold(self.kernels[0].cost().contract_tiles, usize::max),
            pair_flops: cost.pair_flops + elements,
            ..cost
        }
    }

    fn identity(&self) -> serde_json::Value {
        let of: Vec<_> = self.kernels.iter().map(|kernel| kernel.identity()).collect();
        serde_json::json!({ "kernel": self.name, "of": of })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        let blocks: Result<Vec<Block>> = self.kernels.iter().map(|kernel| kernel.prepare(inputs, samples)).collect();
        Ok(Block::new(samples, blocks?))
    }

    /// Writes the first kernel's tile, and combines the tiles of the others with it one by one.
    #[inline(always)]
    fn contract(&self, a: &Block, b: &Block, tile: &mut [T], meet: impl Fn(T, T) -> T) {
        let (a, b) = (a.content::<Vec<Block>>(), b.content::<Vec<Block>>());
        let mut other = vec![T::zero(); if self.kernels.len() > 1 { tile.len() } else { 0 }];
        self.kernels[0].contract(&a[0], &b[0], tile);
        for (kernel, (a, b)) in self.kernels.iter().zip(a.iter().zip(b)).skip(1) {
            kernel.contract(a, b, &mut other);
            dispatch(
                #[inline(always)]
                || tile.iter_mut().zip(&other).for_each(|(to, &y)| *to = meet(*to, y)),
            );
        }
    }

    fn diagonal(&self, a: &Block, meet: impl Fn(T, T) -> T) -> Vec<T> {
        let blocks = a.content::<Vec<Block>>();
        let mut total = self.kernels[0].diagonal(&blocks[0]);
        for (kernel, block) in self.kernels.iter().zip(blocks).skip(1) {
            total.iter_mut().zip(kernel.diagonal(block)).for_each(|(to, y)| *to = meet(*to, y));
        }
        total
    }
}

/// Implements the trait for a combination, given its operation on two numbers.
macro_rules! pointwise {
    ($name:ident, $meet:expr) => {
        impl<T: Real> Kernel<T> for $name<T> {
            fn per_sample(&self) -> usize {
                self.0.per_sample
            }

            fn cost(&self) -> Cost {
                self.0.cost()
            }

            fn identity(&self) -> serde_json::Value {
                self.0.identity()
            }

            fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
                self.0.prepare(inputs, samples)
            }

            fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
                self.0.contract(a, b, tile, $meet);
            }

            fn diagonal(&self, a: &Block) -> Vec<T> {
                self.0.diagonal(a, $meet)
            }
        }
    };
}

pointwise!(Sum, |x, y| x + y);
pointwise!(Product, |x, y| x * y);
