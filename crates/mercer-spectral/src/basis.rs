//! What eigenfunctions are made of.

use crate::error::{Result, SpectralError};
use mercer_data::Existing;
use mercer_kernel::Real;
use ndarray::{Array2, ArrayView2};
use std::fmt::Debug;
use std::path::Path;

/// Functions of which eigenfunctions are linear combinations: what a method has to provide.
///
/// Inputs come as for [`Kernel::prepare`](mercer_kernel::Kernel::prepare): one slice per input, `[samples, …]`, row-major; their
/// sizes have been checked against [`input_shapes`](Self::input_shapes). Results depend on the samples alone, not on the number of
/// threads.
pub trait Basis<T: Real>: Debug + Send + Sync {
    /// The shape of a sample, for every input.
    fn input_shapes(&self) -> &[Vec<usize>];

    /// How many functions there are.
    fn n_functions(&self) -> usize;

    /// Rows per sample: 1, or the number of outputs of a matrix-valued kernel.
    fn per_sample(&self) -> usize {
        1
    }

    /// Writes `[samples · per_sample, n_functions]`, row-major. Parallel inside.
    fn eval(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()>;

    /// Writes the files that reading needs into a folder that exists, and returns the description that finds them again: a
    /// JSON object with a `type`. Names of files are the type's own and never come from the description.
    fn save(&self, folder: &Path, existing: Existing) -> Result<serde_json::Value>;

    /// The network that computes these functions and its outputs per function, if they are a network's.
    fn network(&self) -> Option<(&mercer_net::Network, usize)> {
        None
    }
}

/// `b(x)·W` for a basis `b`.
#[derive(Clone, Debug)]
pub(crate) struct Combined<'a, T: Real> {
    basis: &'a dyn Basis<T>,
    weights: ArrayView2<'a, T>,
}

impl<'a, T: Real> Combined<'a, T> {
    /// The combinations with these weights, `n_functions × k`.
    pub(crate) fn new(basis: &'a dyn Basis<T>, weights: ArrayView2<'a, T>) -> Self {
        Self { basis, weights }
    }

    /// Samples whose values of the basis are in memory at once: it depends on the basis alone, so that results do too.
    pub(crate) fn step(&self) -> usize {
        const BYTES: usize = 64 << 20;
        let sample = self.basis.n_functions() * self.basis.per_sample() * size_of::<T>();
        (BYTES / sample.max(1)).clamp(1, 8192)
    }

    /// `[samples · per_sample, k]`.
    pub(crate) fn eval(&self, inputs: &[&[T]], samples: usize) -> Result<Array2<T>> {
        check_inputs(self.basis.input_shapes(), inputs, samples)?;
        let (rows, width) = (self.basis.per_sample(), self.basis.n_functions());
        let mut out = Array2::zeros((samples * rows, self.weights.ncols()));
        let step = self.step();
        let mut values = Vec::new();
        for start in (0..samples).step_by(step) {
            let count = step.min(samples - start);
            values.resize(count * rows * width, T::zero());
            let part: Vec<&[T]> = inputs
                .iter()
                .zip(self.basis.input_shapes())
                .map(|(input, shape)| {
                    let size: usize = shape.iter().product();
                    &input[start * size..(start + count) * size]
                })
                .collect();
            self.basis.eval(&part, count, &mut values)?;
            let values = ArrayView2::from_shape((count * rows, width), &values).expect("just resized");
            let part = out.slice_mut(ndarray::s![start * rows..(start + count) * rows, ..]);
            mercer_linalg::matmul_into(T::one(), values, self.weights, false, part);
        }
        Ok(out)
    }
}

/// An error unless there are `samples` samples of these shapes.
pub(crate) fn check_inputs<T>(shapes: &[Vec<usize>], inputs: &[&[T]], samples: usize) -> Result<()> {
    if inputs.len() != shapes.len() {
        return Err(SpectralError::Inputs { found: inputs.len(), expected: shapes.len() });
    }
    for (input, (data, shape)) in inputs.iter().zip(shapes).enumerate() {
        let size: usize = shape.iter().product();
        if data.len() != size * samples {
            return Err(SpectralError::Input { input, found: data.len(), samples, expected: shape.clone() });
        }
    }
    Ok(())
}
