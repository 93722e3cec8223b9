//! Feature maps of kernels made of kernels that have features.
//!
//! ```text
//! normalised   φ(x)/‖φ(x)‖
//! multiple     √factor · φ(x)
//! sum          (φ₁(x), φ₂(x), …)
//! ```

use crate::error::{KernelError, Result};
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use std::sync::Arc;

type Map<T> = Arc<dyn FeatureMap<T>>;

/// Features of length one. A sample whose features are all zero keeps them.
#[derive(Clone, Debug)]
pub(crate) struct UnitLength<T>(pub(crate) Map<T>);

/// Features times a number.
#[derive(Clone, Debug)]
pub(crate) struct Times<T> {
    pub(crate) map: Map<T>,
    pub(crate) factor: T,
}

/// The features of several maps, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Joined<T>(pub(crate) Vec<Map<T>>);

impl<T: Real> FeatureMap<T> for UnitLength<T> {
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        self.0.features(inputs, samples, out)?;
        for (sample, row) in out.chunks_exact_mut(self.n_features().max(1)).enumerate() {
            // In double precision, in which no square of a single overflows.
            let square: f64 = row.iter().map(|x| x.wide() * x.wide()).sum();
            if !square.is_finite() {
                return Err(KernelError::NotFinite { place: "the length of the features".to_owned(), sample });
            }
            if square > 0.0 {
                let scale = square.sqrt().recip();
                row.iter_mut().for_each(|x| *x = T::narrow(x.wide() * scale));
            }
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        let effort = self.0.effort();
        Effort { flops: effort.flops + 3.0 * self.n_features() as f64, ..effort }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "map": "unit-length", "of": self.0.identity() })
    }
}

impl<T: Real> FeatureMap<T> for Times<T> {
    fn n_features(&self) -> usize {
        self.map.n_features()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        self.map.features(inputs, samples, out)?;
        out.iter_mut().for_each(|x| *x *= self.factor);
        Ok(())
    }

    fn effort(&self) -> Effort {
        self.map.effort()
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "map": "times", "factor": self.factor.wide(), "of": self.map.identity() })
    }
}

impl<T: Real> FeatureMap<T> for Joined<T> {
    fn n_features(&self) -> usize {
        self.0.iter().map(|map| map.n_features()).sum()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let all = self.n_features();
        let mut start = 0;
        for map in &self.0 {
            let width = map.n_features();
            let mut own = vec![T::zero(); samples * width];
            map.features(inputs, samples, &mut own)?;
            for (row, own) in out.chunks_exact_mut(all.max(1)).zip(own.chunks_exact(width.max(1))) {
                row[start..start + width].copy_from_slice(own);
            }
            start += width;
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        let widest = self.0.iter().map(|map| map.n_features()).max().unwrap_or(0);
        self.0.iter().map(|map| map.effort()).fold(
            Effort { shared_sample_bytes: widest * size_of::<T>(), ..Effort::default() },
            |all, own| Effort {
                bytes: all.bytes + own.bytes,
                shared_bytes: all.shared_bytes + own.shared_bytes,
                shared_sample_bytes: all.shared_sample_bytes + own.shared_sample_bytes,
                flops: all.flops + own.flops,
            },
        )
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "map": "joined", "of": self.0.iter().map(|map| map.identity()).collect::<Vec<_>>() })
    }
}
