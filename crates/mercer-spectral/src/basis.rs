//! Bases of eigenfunctions.

use crate::error::{Result, SpectralError};
use crate::samples;
use mercer_data::folder::PartWriter;
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::Real;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, s};
use std::fmt::Debug;

/// The functions that are combined linearly into eigenfunctions. Every method provides a basis.
///
/// Inputs are given as for [`Kernel::prepare`](mercer_kernel::Kernel::prepare): one slice per input, `[samples, …]`,
/// row-major. Their sizes have been checked against [`input_shapes`](Self::input_shapes). Results depend only on the
/// samples, not on the number of threads.
pub trait Basis<T: Real>: Debug + Send + Sync {
    /// The shape of a sample, for every input.
    fn input_shapes(&self) -> &[Vec<usize>];

    /// The number of functions.
    fn n_functions(&self) -> usize;

    /// Rows per sample: 1, or the number of outputs of a matrix-valued kernel.
    fn per_sample(&self) -> usize {
        1
    }

    /// Writes `[samples · per_sample, n_functions]`, row-major. Parallel inside.
    fn eval(&self, inputs: &[&[T]], samples: usize, out: &mut [T], context: &Context) -> Result<()>;

    /// Writes the objects that are needed for reading, and returns a description: a JSON object with a `type`. The type
    /// determines the names of the objects; they never come from the description.
    fn write(&self, part: &PartWriter<'_>) -> Result<serde_json::Value>;

    /// The network that computes these functions and its outputs per function, if they come from a network.
    fn network(&self) -> Option<(&mercer_net::Network, usize)> {
        None
    }
}

/// `b(x)·W`, or `b(x)` itself without weights, of samples: `[samples · per_sample, k]`.
pub(crate) fn eval<T: Real>(
    basis: &dyn Basis<T>,
    weights: Option<ArrayView2<'_, T>>,
    inputs: &[&[T]],
    samples: usize,
    context: &Context,
) -> Result<Array2<T>> {
    check_inputs(basis.input_shapes(), inputs, samples)?;
    let (rows, width) = (basis.per_sample(), basis.n_functions());
    let mut out = Array2::zeros((samples * rows, weights.map_or(width, |weights| weights.ncols())));
    let sizes: Vec<usize> = basis.input_shapes().iter().map(|shape| shape.iter().product()).collect();
    let mut values = Vec::new();
    for piece in samples::pieces(samples, step(basis)) {
        let parts: Vec<&[T]> =
            inputs.iter().zip(&sizes).map(|(input, size)| &input[piece.start * size..piece.end * size]).collect();
        values.resize(piece.len() * rows * width, T::zero());
        basis.eval(&parts, piece.len(), &mut values, context)?;
        let values = ArrayView2::from_shape((piece.len() * rows, width), &values).expect("just resized");
        let mut part = out.slice_mut(s![piece.start * rows..piece.end * rows, ..]);
        match weights {
            Some(weights) => mercer_linalg::matmul_into(T::one(), values, weights, false, part),
            None => part.assign(&values),
        }
    }
    Ok(out)
}

/// The same for data sets, one per input, which are read in blocks.
pub(crate) fn eval_data<T: Real>(
    basis: &dyn Basis<T>,
    weights: Option<ArrayView2<'_, T>>,
    data: &[Dataset],
    context: &Context,
) -> Result<Array2<T>> {
    let (samples, rows) = (samples::count(data), basis.per_sample());
    let mut out = Array2::zeros((samples * rows, weights.map_or(basis.n_functions(), |weights| weights.ncols())));
    for piece in samples::pieces(samples, step(basis)) {
        context.check()?;
        let block = RowBlock::<T>::read(data, piece.clone())?;
        let values = eval(basis, weights, &block.slices(), piece.len(), context)?;
        out.slice_mut(s![piece.start * rows..piece.end * rows, ..]).assign(&values);
        context.report(piece.end, samples, "samples");
    }
    Ok(out)
}

/// The number of samples whose basis values are in memory at once. It depends only on the basis, so that results do,
/// too.
pub(crate) fn step<T: Real>(basis: &dyn Basis<T>) -> usize {
    const BYTES: usize = 64 << 20;
    let sample = basis.n_functions() * basis.per_sample() * size_of::<T>();
    (BYTES / sample.max(1)).clamp(1, 8192)
}

/// The values of a basis on data sets, one per input: `[samples · per_sample, n_functions]`.
pub fn on_data<T: Real>(basis: &dyn Basis<T>, data: &[Dataset], context: &Context) -> Result<Array2<T>> {
    eval_data(basis, None, data, context)
}

/// Returns an error unless there are `samples` samples of these shapes.
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
