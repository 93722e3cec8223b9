//! Kernels with finitely many features: `κ(x, x') = φ(x)·φ(x')`, one matrix product per pair of blocks.

use crate::error::Result;
use crate::kernel::{Block, Cost, Kernel, Real};
use crate::products::{products, squares};
use std::fmt::Debug;
use std::sync::Arc;

/// A map of samples into a Euclidean space.
pub trait FeatureMap<T: Real>: Debug + Send + Sync {
    /// The dimension of the space.
    fn n_features(&self) -> usize;

    /// Rows per sample: 1, or the number of outputs of a matrix-valued kernel. The features of a sample are then those of one
    /// output after those of another.
    fn per_sample(&self) -> usize {
        1
    }

    /// Writes `[samples, n_features]`, row-major; each input is `[samples, …]`. It is parallel inside, and the result
    /// does not depend on the number of threads.
    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()>;

    /// Bytes per thread, and operations per sample.
    fn effort(&self) -> Effort;

    /// The identity of this map, for manifests. Two maps with the same identity give the same numbers.
    fn identity(&self) -> serde_json::Value;
}

/// The cost of computing features.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// Bytes that every thread needs and keeps, besides the features.
    pub bytes: usize,
    /// Further bytes, shared by all threads.
    pub shared_bytes: usize,
    /// The same, per sample in a batch.
    pub shared_sample_bytes: usize,
    /// Operations per sample.
    pub flops: f64,
}

/// The kernel of a feature map.
#[derive(Clone, Debug)]
pub struct Features<F>(pub F);

impl<T: Real, F: FeatureMap<T>> Kernel<T> for Features<F> {
    fn per_sample(&self) -> usize {
        self.0.per_sample()
    }

    fn cost(&self) -> Cost {
        let (width, effort) = (self.0.n_features(), self.0.effort());
        Cost {
            sample_bytes: width * size_of::<T>(),
            prepare_bytes: effort.bytes,
            shared_bytes: effort.shared_bytes,
            shared_sample_bytes: effort.shared_sample_bytes,
            prepare_flops: effort.flops,
            pair_flops: 2.0 * (width * self.0.per_sample()) as f64,
            ..Cost::default()
        }
    }

    fn identity(&self) -> serde_json::Value {
        self.0.identity()
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        let mut features = vec![T::zero(); samples * self.0.n_features()];
        self.0.features(inputs, samples, &mut features)?;
        Ok(Block::new(samples, features))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        let rows = self.0.per_sample();
        let width = self.0.n_features() / rows;
        let (x, y) = (a.content::<Vec<T>>(), b.content::<Vec<T>>());
        products((x, a.samples() * rows, width), (y, b.samples() * rows, width), width, false, tile);
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        squares(a.content::<Vec<T>>(), a.samples() * self.0.per_sample())
    }
}

impl<T: Real, F: FeatureMap<T> + ?Sized> FeatureMap<T> for Arc<F> {
    fn n_features(&self) -> usize {
        (**self).n_features()
    }

    fn per_sample(&self) -> usize {
        (**self).per_sample()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        (**self).features(inputs, samples, out)
    }

    fn effort(&self) -> Effort {
        (**self).effort()
    }

    fn identity(&self) -> serde_json::Value {
        (**self).identity()
    }
}
