//! Features of the tangent kernel from random directions in parameter space.
//!
//! With `E[v vᵀ] = I`, `E[(J(x) v)(J(x') v)ᵀ] = J(x) J(x')ᵀ`, so the kernel of the features `φₛ(x) = J(x) vₛ / √S` is
//! the tangent kernel in expectation (Deng et al. 2022, NeuralEF, arXiv 2205.00165, equation 20). We compute `J v`
//! exactly, by forward mode; the paper's difference quotient `(f(x, θ + εv) − f(x, θ)) / ε` is available for
//! comparison. The error of a kernel value falls as `1/√S`.
//!
//! ```
//! use mercer_kernel::{Directions, FeatureMap, NtkKind, Selection};
//! use mercer_net::arch::Mlp;
//!
//! let network = Mlp::new(2, &[8], 1).build(0)?;
//! let directions = Directions::<f64>::new(&network, &[vec![2]], NtkKind::Trace, &Selection::default(), 100, 0)?;
//! let mut features = vec![0.0; 2 * 100];
//! directions.features(&[&[1.0, 0.0, 0.5, -1.0]], 2, &mut features)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::empirical::{Gradients, NtkKind, Selection};
use crate::error::{KernelError, Result};
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use crate::products::all_finite;
use crate::shards::Shards;
use mercer_data::random::stream;
use mercer_linalg::gemm_rows;
use mercer_net::Network;
use mercer_net::graph::ValueId;
use mercer_net::run::{Keep, Tangent, Weights, Workspace};
use rand::RngExt;
use rand_distr::StandardNormal;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Derivatives of a network's outputs along random directions, `[samples, directions · outputs]`.
///
/// The kinds with one scalar per sample (pseudo, logit, and all kinds of a [combination](Selection::combine)) have one
/// feature per direction, the trace kernel one per direction and output. The full kernel has one per direction for every output,
/// `∂g_c·v_s/√S` in row `c` and column `s`, as equation 20 is printed. Directions are determined by the seed and
/// their number, so new data can be compared without the old data. They are drawn in groups and are never all in memory
/// at once.
#[derive(Debug)]
pub struct Directions<T> {
    gradients: Gradients<T>,
    /// `[outputs, size of the value]`, over √S.
    seeds: Vec<T>,
    kind: NtkKind,
    n_directions: usize,
    seed: u64,
    signs: bool,
    step: Option<f64>,
    shards: Shards<Passes<T>>,
}

/// The memory of one thread.
#[derive(Debug)]
struct Passes<T> {
    workspace: Workspace<T>,
    tangent: Tangent<T>,
    base: Vec<T>,
    quotient: Vec<T>,
}

/// A prepared direction.
enum Step<T> {
    /// Per parameter; empty if the parameter is not chosen.
    Exact(Vec<Vec<T>>),
    /// The weights after the step, and its length.
    Difference(Weights<T>, T),
}

/// The maximum total size of the directions in memory at once, unless a single direction is larger.
const GROUP_ELEMENTS: usize = 1 << 22;

impl<T: Real> Directions<T> {
    /// Directions drawn from the normal distribution, for samples of these shapes (one per input).
    pub fn new(
        network: &Network,
        samples: &[Vec<usize>],
        kind: NtkKind,
        selection: &Selection,
        n_directions: usize,
        seed: u64,
    ) -> Result<Self> {
        if n_directions == 0 {
            return Err(KernelError::Setting("features from no directions".to_owned()));
        }
        let gradients = Gradients::new(network, samples, kind, selection)?;
        let scale = T::narrow(1.0 / (n_directions as f64).sqrt());
        let seeds = gradients.seeds().iter().map(|&x| scale * x).collect();
        let shards = Shards::new(gradients.graph());
        Ok(Self { gradients, seeds, kind, n_directions, seed, signs: false, step: None, shards })
    }

    /// Uses directions of random signs instead, as in the paper's experiments; their features vary less.
    pub fn signs(self) -> Self {
        Self { signs: true, ..self }
    }

    /// Uses the difference quotient instead of the derivative, with a step of this length relative to the parameters:
    /// `ε = step · ‖θ‖ / ‖v‖` (`step / ‖v‖` if all parameters are zero). The square root of the scalar's precision
    /// (1e-8, or 3e-4 in single precision) balances the error of the quotient with rounding.
    pub fn by_differences(self, step: f64) -> Result<Self> {
        if step.is_finite() && step > 0.0 {
            return Ok(Self { step: Some(step), ..self });
        }
        Err(KernelError::Setting(format!("the step of a difference quotient must be positive, not {step}")))
    }

    /// The entries of a direction, per parameter; none if a parameter is not chosen.
    fn draw(&self, direction: usize) -> Vec<Vec<T>> {
        let graph = self.gradients.graph();
        let one = |(at, &id): (usize, &ValueId)| {
            if !self.gradients.chosen()[at] {
                return Vec::new();
            }
            let mut random = stream(self.seed, &format!("directions/{}/{direction}", graph.value(id).name));
            let next = |_| {
                T::narrow(if !self.signs {
                    random.sample::<f64, _>(StandardNormal)
                } else if random.random::<bool>() {
                    1.0
                } else {
                    -1.0
                })
            };
            (0..self.gradients.numel(at)).map(next).collect()
        };
        graph.parameters().iter().enumerate().map(one).collect()
    }

    fn step(&self, direction: usize) -> Step<T> {
        let drawn = self.draw(direction);
        let Some(step) = self.step else { return Step::Exact(drawn) };
        let square = |arrays: &mut dyn Iterator<Item = &T>| arrays.map(|x| x.wide() * x.wide()).sum::<f64>();
        let mut weights = self.gradients.weights().clone();
        let chosen = weights.parameters.iter().zip(&drawn).filter(|(_, v)| !v.is_empty());
        let (size, length) =
            (square(&mut chosen.flat_map(|(theta, _)| theta)).sqrt(), square(&mut drawn.iter().flatten()).sqrt());
        let length = if length > 0.0 { length } else { 1.0 };
        let epsilon = T::narrow(step * if size > 0.0 { size } else { 1.0 } / length);
        for (theta, v) in weights.parameters.iter_mut().zip(&drawn) {
            theta.iter_mut().zip(v).for_each(|(theta, &v)| *theta += epsilon * v);
        }
        Step::Difference(weights, epsilon)
    }

    /// The numbers of one direction.
    fn elements(&self) -> usize {
        let chosen = self.gradients.chosen();
        (0..chosen.len()).filter(|&at| chosen[at]).map(|at| self.gradients.numel(at)).sum()
    }

    /// The number of directions to draw at once.
    fn group(&self) -> usize {
        (GROUP_ELEMENTS / self.elements().max(1)).clamp(1, self.n_directions)
    }

    fn passes(&self) -> Passes<T> {
        let graph = self.gradients.graph();
        let keep = if self.step.is_some() { Keep::Only(vec![self.gradients.output()]) } else { Keep::All };
        let workspace = Workspace::new(Arc::clone(graph), &keep);
        Passes { workspace, tangent: Tangent::new(Arc::clone(graph)), base: Vec::new(), quotient: Vec::new() }
    }

    /// The features of some samples along some directions, into rows of all features.
    fn shard(
        &self,
        passes: &mut Passes<T>,
        (inputs, samples): (&[&[T]], usize),
        (directions, steps): (Range<usize>, &[Step<T>]),
        out: &mut [T],
    ) -> Result<()> {
        let Passes { workspace, tangent, base, quotient } = passes;
        let (weights, output) = (self.gradients.weights(), self.gradients.output());
        let (size, outputs, width) = (self.seeds.len() / self.outputs(), self.outputs(), self.n_features());
        workspace.forward(weights, inputs, samples)?;
        self.gradients.check(workspace)?;
        base.clear();
        base.extend_from_slice(workspace.get(weights, output));
        for (direction, step) in directions.zip(steps) {
            let derivative: &[T] = match step {
                Step::Exact(drawn) => {
                    let drawn: Vec<&[T]> = drawn.iter().map(Vec::as_slice).collect();
                    tangent.run(workspace, weights, &drawn, &[]);
                    tangent.get(output)
                }
                Step::Difference(moved, epsilon) => {
                    workspace.forward(moved, inputs, samples)?;
                    quotient.clear();
                    let moved = workspace.get(moved, output).iter().zip(base.iter());
                    quotient.extend(moved.map(|(&moved, &base)| (moved - base) / *epsilon));
                    quotient
                }
            };
            if !all_finite(derivative) {
                let at = derivative.iter().position(|x| !x.is_finite()).unwrap_or(0);
                let place = format!("the derivative along direction {direction}");
                return Err(KernelError::NotFinite { place, sample: at / size.max(1) });
            }
            if !derivative.is_empty() {
                // All outputs of a direction side by side, or those of a row each.
                let rows = self.per_sample();
                for row in 0..rows {
                    let to = &mut out[row * self.n_directions + direction * (outputs / rows)..];
                    let seeds = &self.seeds[row * size..];
                    gemm_rows(
                        [samples, outputs / rows, size],
                        (derivative, size, 1),
                        (seeds, 1, size),
                        false,
                        to,
                        width,
                    );
                }
            }
        }
        Ok(())
    }

    fn outputs(&self) -> usize {
        self.gradients.n_seeds()
    }
}

impl<T: Real> FeatureMap<T> for Directions<T> {
    fn per_sample(&self) -> usize {
        if self.kind == NtkKind::Full { self.outputs() } else { 1 }
    }

    fn n_features(&self) -> usize {
        self.n_directions * self.outputs()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let (width, group) = (self.n_features(), self.group());
        for start in (0..self.n_directions).step_by(group) {
            let directions = start..(start + group).min(self.n_directions);
            let steps: Vec<Step<T>> = directions.clone().into_par_iter().map(|at| self.step(at)).collect();
            let places = out.chunks_mut(self.shards.grain() * width);
            self.shards.sweep(
                (self.gradients.graph(), inputs, samples),
                places,
                || self.passes(),
                |passes, inputs, samples, out| self.shard(passes, (inputs, samples), (directions.clone(), &steps), out),
            )?;
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        let graph = self.gradients.graph();
        let values: usize = graph.values().iter().map(|value| value.meta.numel()).sum();
        let forward = self.passes().workspace.elements_per_sample();
        let tangents = if self.step.is_some() { 0 } else { values };
        // The group is shared by all threads, but is counted for each of them.
        let elements = self.shards.grain() * (forward + tangents) + self.group() * self.elements();
        let passes = if self.step.is_some() { 1.0 } else { 2.0 } * self.n_directions as f64;
        Effort { bytes: elements * size_of::<T>(), flops: graph.flops() as f64 * (1.0 + passes), ..Effort::default() }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({
            "kernel": "directions", "kind": self.kind.name(), "directions": self.n_directions, "seed": self.seed,
            "signs": self.signs, "step": self.step, "of": self.gradients.identity(),
        })
    }
}
