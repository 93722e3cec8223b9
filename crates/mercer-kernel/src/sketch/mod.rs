//! Sketched tangent kernels: gradients randomly projected to K features, so that `κ(x, x') ≈ φ(x)·φ(x')`.
//!
//! ```text
//! pseudo   φ(x) = P Σ_c g^c(x) / √C                  K features
//! trace    φ(x) = (P g¹(x), …, P g^C(x))             C·K features, the same P for every output
//! total    φ(x) = Σ_c P_c g^c(x)                     K features, P_c independent
//! ```
//!
//! Engel et al. 2023 (arXiv 2305.14585), equations 5 and 6, without the normalisation; `P` contains the factor 1/√K that
//! these leave out, so that `E[φ(x)·φ(x')] = κ(x, x')`, the trace or pseudo kernel itself. Equation 6 prints a sum of
//! roots in the denominator where a root of a sum is meant; cosine normalisation is a separate step.
//!
//! # Which one
//!
//! Take [`SketchMethod::SparseJl`], `sjlt:4096`: it costs next to nothing compared with the gradients, and the second moment
//! of its error is at most that of a Gaussian sketch. [`SketchMethod::Hadamard`] is as accurate, and exact within a parameter
//! with no more than K elements. [`SketchMethod::KhatriRao`] forms no gradient of a dense layer, so it is the one for wide
//! layers whose gradients do not fit; it needs two to three times the features for the same error (four at worst).
//! [`SketchMethod::Kronecker`] is no faster here and falls only as `K^−¼`: for comparison. Gaussian and Rademacher are the
//! paper's, and far slower (500 images at K = 4096: 166 and 59 s against 4.4, under varying load); all errors but
//! Kronecker's fall as `1/√K`.
//!
//! Trace-NTK of a ResNet-20 on test images of CIFAR-10, relative Frobenius error against that of a Gaussian sketch, and 200 gradients of a CNN
//! with 80,202 parameters on one thread at K = 2048 (`cargo xtask reproduce sketches`, `cargo xtask bench --only sketch_`):
//!
//! | sketch | K = 1024 | K = 4096 | 200 gradients |
//! |---|---:|---:|---:|
//! | gaussian (error itself) | 0.0365 | 0.0178 | |
//! | sjlt | 1.01 | 1.14 | 29 ms |
//! | srht | 0.95 | 0.98 | |
//! | khatri-rao | 1.61 | 1.26 | 33 ms |
//! | kronecker | 4.78 | 5.54 | |
//!
//! 500 images and two seeds. The matrix is nearly of rank one, so that its error varies much from seed to seed: with two, ratios
//! are uncertain by a fifth or more (Rademacher, whose variance is no larger than a Gaussian's, read 1.04 and 1.43).
//!
//! A sketch is described completely by its [`Spec`] and the network: features of new data can be computed later, without
//! the old data, and compared with stored ones. Numbers depend on the seed and on the place in the gradient only, not on
//! threads.

mod dense;
mod hadamard;
mod layers;
mod method;
mod signs;
mod sparse;

pub use method::{SketchMethod, parse};

use crate::empirical::{Gradients, NtkKind, Selection};
use crate::error::{KernelError, Result};
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use dense::Dense;
use layers::Layers;
use mercer_net::Network;
use mercer_net::run::{Factor, Factors};
use serde::{Deserialize, Serialize};
use sparse::Sparse;

/// The complete description of a sketch, except for its network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// How gradients are projected.
    pub method: SketchMethod,
    /// The number of features, for every output or in total.
    pub k: usize,
    /// Whether K is the total number of features instead of the number per output.
    #[serde(default)]
    pub total: bool,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// The kernel to approximate.
    pub kind: NtkKind,
    /// The part of the network.
    #[serde(default)]
    pub selection: Selection,
}

impl Spec {
    /// A sketch of all parameters, with K features for every output.
    pub fn new(method: SketchMethod, k: usize, kind: NtkKind) -> Self {
        Self { method, k, total: false, seed: 0, kind, selection: Selection::default() }
    }
}

/// The sketch of a network's tangent kernel, a feature map.
#[derive(Debug)]
pub struct Sketch<T> {
    gradients: Gradients<T>,
    spec: Spec,
    rows: Rows,
    engine: Engine<T>,
}

/// The gradients of a sample as rows to project: one per output, or all in a single row.
#[derive(Clone, Copy, Debug)]
struct Rows {
    per_sample: usize,
    /// Gradients per row.
    copies: usize,
}

#[derive(Debug)]
enum Engine<T> {
    Dense(Dense<T>),
    Sparse(Sparse<T>),
    Layers(Layers<T>),
}

impl<T: Real> Sketch<T> {
    /// The sketch of a description, for samples of these shapes (one per input).
    pub fn from_spec(network: &Network, samples: &[Vec<usize>], spec: &Spec) -> Result<Self> {
        let Spec { method, k, total, seed, kind, ref selection } = *spec;
        method.check(k)?;
        if kind == NtkKind::Full {
            return Err(KernelError::Setting(
                "the full kernel has no sketch: take the trace or pseudo kernel, or that of one output".to_owned(),
            ));
        }
        let gradients = Gradients::new(network, samples, kind, selection)?;
        let seeds = gradients.n_seeds();
        let rows = if total { Rows { per_sample: 1, copies: seeds } } else { Rows { per_sample: seeds, copies: 1 } };
        let engine = match method {
            SketchMethod::Gaussian | SketchMethod::Rademacher => {
                let width = rows.copies * width(&gradients);
                Engine::Dense(Dense::new(k, width, method == SketchMethod::Gaussian, seed))
            }
            SketchMethod::SparseJl { nonzeros } => Engine::Sparse(Sparse::new(&gradients, rows, (k, nonzeros), seed)),
            _ => Engine::Layers(Layers::new(&gradients, rows, method, k, seed)),
        };
        Ok(Self { gradients, spec: spec.clone(), rows, engine })
    }

    /// The description of this map.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Samples per shard.
    pub fn grain(&self) -> usize {
        self.gradients.grain()
    }

    /// For each parameter, whether the reverse pass factors its gradient.
    fn outer(&self) -> Vec<bool> {
        match &self.engine {
            Engine::Layers(layers) => layers.outer(),
            _ => vec![false; self.gradients.chosen().len()],
        }
    }

    /// The final factor on all features.
    fn scale(&self) -> T {
        let variance = match self.spec.method {
            SketchMethod::SparseJl { nonzeros } => nonzeros,
            _ => self.spec.k,
        };
        T::narrow(1.0 / (variance as f64).sqrt())
    }

    /// The features of one shard.
    fn shard(&self, factors: &Factors<T>, out: &mut [T]) -> Result<()> {
        out.fill(T::zero());
        for (parameter, factor) in factors.parameters.iter().enumerate() {
            let Some(factor) = factor else { continue };
            let (Factor::Explicit(data) | Factor::Outer { right: data, .. }) = factor;
            if data.is_empty() {
                continue;
            }
            self.gradients.check_gradient(parameter, data, factors.samples)?;
            match (&self.engine, factor) {
                (Engine::Sparse(sparse), Factor::Explicit(gradient)) => {
                    sparse.add(parameter, gradient, factors.samples * self.rows.per_sample, out);
                }
                (Engine::Layers(layers), factor) => layers.add(parameter, factor, factors.samples, out),
                _ => {}
            }
        }
        self.finish(out);
        Ok(())
    }

    fn finish(&self, out: &mut [T]) {
        let scale = self.scale();
        mercer_linalg::simd::dispatch(
            #[inline(always)]
            || out.iter_mut().for_each(|x| *x *= scale),
        );
    }

    /// The features of a dense sketch: gradients are gathered, then multiplied.
    fn gathered(&self, dense: &Dense<T>, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let width = width(&self.gradients);
        let sample = self.gradients.n_seeds() * width;
        let group = dense.group(self.gradients.n_seeds(), self.gradients.grain());
        let mut buffer = vec![T::zero(); group.min(samples) * sample];
        for start in (0..samples).step_by(group) {
            let count = group.min(samples - start);
            let buffer = &mut buffer[..count * sample];
            let own: Vec<&[T]> = inputs
                .iter()
                .map(|data| &data[start * data.len() / samples..(start + count) * data.len() / samples])
                .collect();
            let places: Vec<&mut [T]> = buffer.chunks_mut(self.gradients.grain() * sample.max(1)).collect();
            let places = if sample == 0 { self.gradients.shards(count).map(|_| &mut [][..]).collect() } else { places };
            let gather = |place: &mut [T], factors: &Factors<T>| {
                let mut offset = 0;
                for (parameter, factor) in factors.parameters.iter().enumerate() {
                    let Some(Factor::Explicit(gradient)) = factor else { continue };
                    self.gradients.check_gradient(parameter, gradient, factors.samples)?;
                    let size = self.gradients.numel(parameter);
                    let rows = place.chunks_exact_mut(width.max(1)).zip(gradient.chunks_exact(size.max(1)));
                    rows.for_each(|(row, gradient)| row[offset..offset + size].copy_from_slice(gradient));
                    offset += size;
                }
                Ok(())
            };
            let swept = self.gradients.sweep(&own, count, &self.outer(), places, gather);
            swept.map_err(|error| error.shifted(start))?;
            let out = &mut out[start * self.n_features()..(start + count) * self.n_features()];
            dense.multiply(buffer, count * self.rows.per_sample, out);
            self.finish(out);
        }
        Ok(())
    }
}

impl<T: Real> FeatureMap<T> for Sketch<T> {
    fn n_features(&self) -> usize {
        self.rows.per_sample * self.spec.k
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        assert_eq!(out.len(), samples * self.n_features(), "the place of the features");
        mercer_net::network::check_inputs(self.gradients.graph(), inputs, samples)?;
        match &self.engine {
            Engine::Dense(dense) => self.gathered(dense, inputs, samples, out),
            _ => {
                let places = out.chunks_mut(self.gradients.grain() * self.n_features()).collect();
                let each = |place: &mut [T], factors: &Factors<T>| self.shard(factors, place);
                self.gradients.sweep(inputs, samples, &self.outer(), places, each)
            }
        }
    }

    fn effort(&self) -> Effort {
        let rows = self.rows.per_sample;
        let numbers = (self.gradients.n_seeds() * width(&self.gradients)) as f64;
        let mut shared_bytes = 0;
        let (bytes, flops) = match &self.engine {
            Engine::Dense(dense) => {
                let group = dense.group(self.gradients.n_seeds(), self.gradients.grain());
                let gathered = group * self.gradients.n_seeds() * width(&self.gradients) * size_of::<T>();
                shared_bytes = gathered + group * rows * self.spec.k * size_of::<T>();
                (dense.bytes(), 2.0 * numbers * self.spec.k as f64)
            }
            Engine::Sparse(sparse) => {
                let SketchMethod::SparseJl { nonzeros } = self.spec.method else { unreachable!("a sparse sketch") };
                (sparse.bytes(), 2.0 * numbers * nonzeros as f64)
            }
            Engine::Layers(layers) => (layers.bytes(), layers.flops()),
        };
        let outer = self.outer();
        Effort {
            bytes: self.gradients.bytes(&outer) + bytes,
            shared_bytes,
            shared_sample_bytes: 0,
            flops: self.gradients.flops(&outer) + flops,
        }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": "sketch", "spec": self.spec, "of": self.gradients.identity() })
    }
}

/// Numbers in one gradient.
fn width<T: Real>(gradients: &Gradients<T>) -> usize {
    let chosen = gradients.chosen();
    (0..chosen.len()).filter(|&at| chosen[at]).map(|at| gradients.numel(at)).sum()
}
