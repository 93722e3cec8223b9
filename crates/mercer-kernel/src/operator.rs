//! Products of the tangent kernel with vectors, without its Gram matrix.
//!
//! `Θ = J Jᵀ`, so `Θ v = J (Jᵀ v)`: one reverse pass over all samples, with `v` at the outputs and the gradients summed,
//! gives `w = Jᵀ v` in parameter space, and forward mode along `w` gives `J w`. The trace kernel is `Σ_c J_c J_cᵀ` and
//! takes a pair of passes per output, because no single `w` can serve two outputs. Memory holds one shard and one
//! gradient per thread; the `N·C × N·C` matrix is never formed. With Lanczos and conjugate gradients this gives spectra
//! and solutions (see Novak, Sohl-Dickstein and Schoenholz 2022, arXiv 2206.08720, for this and other ways to the
//! product).

use crate::empirical::{Gradients, NtkKind, Selection};
use crate::error::{KernelError, Result};
use crate::kernel::Real;
use crate::shards::Shards;
use mercer_data::{Dataset, RowBlock};
use mercer_linalg::simd::dispatch;
use mercer_linalg::{Lanczos, LinearOperator, Solution, TopEigen, conjugate_gradient, gemm};
use mercer_net::Network;
use mercer_net::run::{Keep, Reverse, Tangent, Target, Workspace};
use mercer_run::Context;
use ndarray::{ArrayView1, ArrayViewMut1};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The tangent kernel of a network on a data set, as a linear map. Its rows are those of the Gram matrix of an
/// [`Ntk`](crate::Ntk): one per sample, or for the full kernel one per sample and output.
///
/// As a [`LinearOperator`] it cannot return errors. It stores the first one, and [`top_eigen`](Self::top_eigen) and
/// [`solve`](Self::solve) return it.
///
/// ```
/// use mercer_data::{Dataset, RowBlock};
/// use mercer_kernel::{NtkKind, NtkOperator, Selection};
/// use mercer_linalg::Lanczos;
///
/// let network = mercer_net::arch::Mlp::new(2, &[16], 3).build(1)?;
/// let x = ndarray::Array2::from_shape_fn((50, 2), |(row, column)| (row as f64 / (1 + column) as f64).sin());
/// let data = Dataset::from_array("x", x.into_dyn().view())?;
/// let kernel = NtkOperator::<f64>::new(&network, &[data], NtkKind::Full, &Selection::default(), &mercer_run::Context::new())?;
/// let largest = kernel.top_eigen(&Lanczos::new(2))?.values;
/// assert!(largest[0] >= largest[1] && largest[1] > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NtkOperator<T> {
    gradients: Gradients<T>,
    /// Whether the kernels of the outputs are summed.
    trace: bool,
    data: Vec<Dataset>,
    n_samples: usize,
    /// The chosen parameters and their offsets in a direction.
    offsets: Vec<(usize, usize)>,
    /// The length of a direction.
    n_parameters: usize,
    shards: Shards<Passes<T>>,
    failure: Mutex<Option<KernelError>>,
    context: Context,
}

/// The memory of one thread.
#[derive(Debug)]
struct Passes<T> {
    workspace: Workspace<T>,
    reverse: Reverse<T>,
    tangent: Tangent<T>,
    cotangent: Vec<T>,
}

impl<T: Real> NtkOperator<T> {
    /// The kernel of a part of a network on the samples of these data sets, one per input.
    ///
    /// Every product asks the context whether to continue.
    pub fn new(
        network: &Network,
        data: &[Dataset],
        kind: NtkKind,
        selection: &Selection,
        context: &Context,
    ) -> Result<Self> {
        let shapes: Vec<Vec<usize>> = data.iter().map(|set| set.sample_shape().to_vec()).collect();
        let gradients = Gradients::new(network, &shapes, kind, selection)?;
        let n_samples = data.first().map_or(0, Dataset::n_samples);
        if let Some(other) = data.iter().find(|set| set.n_samples() != n_samples) {
            let (name, count) = (other.name(), other.n_samples());
            let first = data[0].name();
            return Err(KernelError::Setting(format!("{name} has {count} samples, but {first} has {n_samples}")));
        }
        let mut n_parameters = 0;
        let mut offsets = Vec::new();
        for at in (0..gradients.chosen().len()).filter(|&at| gradients.chosen()[at]) {
            offsets.push((at, n_parameters));
            n_parameters += gradients.numel(at);
        }
        let shards = Shards::new(gradients.graph());
        let (trace, data, failure) = (kind == NtkKind::Trace, data.to_vec(), Mutex::default());
        Ok(Self { gradients, trace, data, n_samples, offsets, n_parameters, shards, failure, context: context.clone() })
    }

    /// Rows per sample.
    pub fn per_sample(&self) -> usize {
        if self.trace { 1 } else { self.gradients.n_seeds() }
    }

    /// Directions in parameter space per product: one, or for the trace kernel one per output.
    fn rounds(&self) -> usize {
        if self.trace { self.gradients.n_seeds() } else { 1 }
    }

    /// Bytes that a product needs with this many threads: passes and gradients for each, and a gradient for all.
    pub fn bytes(&self, threads: usize) -> usize {
        let Passes { workspace, reverse, .. } = self.passes();
        let values: usize = self.gradients.graph().values().iter().map(|value| value.meta.numel()).sum();
        let passes = self.shards.grain() * (workspace.elements_per_sample() + reverse.elements_per_seed() + values);
        (threads * passes + (threads + 1) * self.rounds() * self.n_parameters) * size_of::<T>()
    }

    /// Operations of a product: two forward passes, and for every direction a reverse and a forward-mode pass.
    pub fn flops(&self) -> f64 {
        let passes = 2.0 + 4.0 * self.rounds() as f64;
        self.gradients.graph().flops() as f64 * passes * self.n_samples as f64
    }

    /// `Θ v`; the same bits for any number of threads.
    ///
    /// # Panics
    /// If the length of the vector differs from [`dim`](LinearOperator::dim).
    pub fn multiply(&self, v: &[T]) -> Result<Vec<T>> {
        assert_eq!(v.len(), self.dim(), "length of a vector");
        let direction = self.pull(v)?;
        self.push(&direction)
    }

    /// The largest eigenvalues and their vectors.
    pub fn top_eigen(&self, lanczos: &Lanczos) -> Result<TopEigen<T>> {
        self.finish(lanczos.run(self))
    }

    /// Solves `(Θ + shift·I) x = rhs` by conjugate gradients.
    pub fn solve(
        &self,
        rhs: ArrayView1<'_, T>,
        shift: T,
        tolerance: f64,
        max_iterations: usize,
    ) -> Result<Solution<T>> {
        self.finish(conjugate_gradient(self, rhs, shift, tolerance, max_iterations))
    }

    /// The error of a failed product since the last call, for other methods that see only numbers.
    pub fn failure(&self) -> Option<KernelError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn finish<R>(&self, result: mercer_linalg::Result<R>) -> Result<R> {
        let failure = self.failure();
        result.map_err(|error| failure.unwrap_or_else(|| error.into()))
    }

    fn passes(&self) -> Passes<T> {
        let graph = self.gradients.graph();
        let parameters = self.gradients.chosen().to_vec();
        let target = Target { output: self.gradients.output(), parameters, inputs: false };
        Passes {
            workspace: Workspace::new(Arc::clone(graph), &Keep::All),
            reverse: Reverse::new(Arc::clone(graph), target),
            tangent: Tangent::new(Arc::clone(graph)),
            cotangent: Vec::new(),
        }
    }

    /// One shard per thread is in memory at once; the results do not depend on their number.
    fn waves(&self) -> impl Iterator<Item = Range<usize>> {
        let (n, step) = (self.n_samples, self.shards.grain() * rayon::current_num_threads().max(1));
        (0..n).step_by(step).map(move |start| start..(start + step).min(n))
    }

    /// Calls `work(passes, samples, place)` for every shard of some rows, after a forward pass.
    fn sweep<Q: Send, R: Send>(
        &self,
        rows: Range<usize>,
        places: impl IntoIterator<Item = Q>,
        work: impl Fn(&mut Passes<T>, usize, Q) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.context.check()?;
        let block = RowBlock::<T>::read(&self.data, rows.clone())?;
        let inputs = block.slices();
        let swept = self.shards.sweep(
            (self.gradients.graph(), &inputs, rows.len()),
            places,
            || self.passes(),
            |passes, inputs, samples, place| {
                passes.workspace.forward(self.gradients.weights(), inputs, samples)?;
                self.gradients.check(&passes.workspace)?;
                Ok(work(passes, samples, place))
            },
        );
        swept.map_err(|error| error.shifted(rows.start))
    }

    /// `w = Jᵀ v`: `[rounds, parameters]`, summed over shards in their order.
    fn pull(&self, v: &[T]) -> Result<Vec<T>> {
        let mut total = vec![T::zero(); self.rounds() * self.n_parameters];
        let per_sample = self.per_sample();
        for rows in self.waves() {
            let v = &v[rows.start * per_sample..rows.end * per_sample];
            let places = v.chunks(self.shards.grain() * per_sample);
            for gradient in self.sweep(rows, places, |passes, samples, v| self.pull_shard(passes, samples, v))? {
                const PIECE: usize = 1 << 14;
                total.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE)).for_each(|(total, gradient)| {
                    dispatch(
                        #[inline(always)]
                        || total.iter_mut().zip(gradient).for_each(|(sum, &x)| *sum += x),
                    );
                });
            }
        }
        Ok(total)
    }

    fn pull_shard(&self, passes: &mut Passes<T>, samples: usize, v: &[T]) -> Vec<T> {
        let mut gradients = vec![T::zero(); self.rounds() * self.n_parameters];
        let Passes { workspace, reverse, cotangent, .. } = passes;
        for round in 0..self.rounds() {
            let (seeds, per_sample, size) = self.seeds(round);
            cotangent.resize(samples * size, T::zero());
            gemm([samples, size, per_sample], (v, per_sample, 1), (seeds, size, 1), false, cotangent);
            reverse.summed(workspace, self.gradients.weights(), cotangent);
            for &(parameter, offset) in &self.offsets {
                let gradient = reverse.gradient(parameter);
                gradients[round * self.n_parameters + offset..][..gradient.len()].copy_from_slice(gradient);
            }
        }
        gradients
    }

    /// `J w`.
    fn push(&self, w: &[T]) -> Result<Vec<T>> {
        let per_sample = self.per_sample();
        let mut out = vec![T::zero(); self.dim()];
        for rows in self.waves() {
            let out = &mut out[rows.start * per_sample..rows.end * per_sample];
            let places = out.chunks_mut(self.shards.grain() * per_sample);
            self.sweep(rows, places, |passes, samples, out| self.push_shard(passes, samples, w, out))?;
        }
        Ok(out)
    }

    fn push_shard(&self, passes: &mut Passes<T>, samples: usize, w: &[T], out: &mut [T]) {
        let Passes { workspace, tangent, .. } = passes;
        for round in 0..self.rounds() {
            let mut direction: Vec<&[T]> = vec![&[]; self.gradients.chosen().len()];
            for &(parameter, offset) in &self.offsets {
                direction[parameter] = &w[round * self.n_parameters + offset..][..self.gradients.numel(parameter)];
            }
            tangent.run(workspace, self.gradients.weights(), &direction, &[]);
            let derivative = tangent.get(self.gradients.output());
            let (seeds, per_sample, size) = self.seeds(round);
            if !derivative.is_empty() {
                gemm([samples, per_sample, size], (derivative, size, 1), (seeds, 1, size), round > 0, out);
            }
        }
    }

    /// The seeds of a round, `[rows per sample, size of the output]`, and these sizes.
    fn seeds(&self, round: usize) -> (&[T], usize, usize) {
        let (seeds, per_sample) = (self.gradients.seeds(), self.per_sample());
        let size = seeds.len() / self.gradients.n_seeds().max(1);
        (&seeds[round * per_sample * size..][..per_sample * size], per_sample, size)
    }
}

impl<T: Real> LinearOperator<T> for NtkOperator<T> {
    fn dim(&self) -> usize {
        self.n_samples * self.per_sample()
    }

    fn apply(&self, x: ArrayView1<'_, T>, mut y: ArrayViewMut1<'_, T>) {
        match self.multiply(&x.to_vec()) {
            Ok(product) => y.iter_mut().zip(product).for_each(|(y, value)| *y = value),
            Err(error) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                y.fill(T::nan());
            }
        }
    }
}
