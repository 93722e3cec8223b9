//! The full Jacobian as features: `φ(x) = (g¹(x), …, g^C(x))`, for small networks.

use mercer_kernel::empirical::Gradients;
use mercer_kernel::{Effort, FeatureMap, Real, Result};
use mercer_net::run::{Factor, Factors};

/// The gradients of all outputs with respect to the chosen parameters, one after the other.
#[derive(Debug)]
pub(super) struct Jacobian<T> {
    gradients: Gradients<T>,
    width: usize,
}

impl<T: Real> Jacobian<T> {
    pub(super) fn new(gradients: Gradients<T>) -> Self {
        let chosen = gradients.chosen();
        let width = (0..chosen.len()).filter(|&at| chosen[at]).map(|at| gradients.numel(at)).sum();
        Self { gradients, width }
    }
}

impl<T: Real> FeatureMap<T> for Jacobian<T> {
    fn n_features(&self) -> usize {
        self.gradients.n_seeds() * self.width
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let explicit = vec![false; self.gradients.chosen().len()];
        let places = out.chunks_mut((self.gradients.grain() * self.n_features()).max(1)).collect();
        self.gradients.sweep(inputs, samples, &explicit, places, |place: &mut [T], factors: &Factors<T>| {
            let mut offset = 0;
            for (parameter, factor) in factors.parameters.iter().enumerate() {
                let Some(Factor::Explicit(gradient)) = factor else { continue };
                let size = self.gradients.numel(parameter);
                let rows = place.chunks_exact_mut(self.width.max(1)).zip(gradient.chunks_exact(size.max(1)));
                rows.for_each(|(row, gradient)| row[offset..offset + size].copy_from_slice(gradient));
                offset += size;
            }
            Ok(())
        })
    }

    fn effort(&self) -> Effort {
        let explicit = vec![false; self.gradients.chosen().len()];
        Effort { bytes: self.gradients.bytes(&explicit), flops: self.gradients.flops(&explicit), ..Effort::default() }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": "jacobian", "of": self.gradients.identity() })
    }
}
