//! Rows of data sets, one per input, as kernels and bases take them.

use crate::error::Result;
use mercer_data::Dataset;
use mercer_kernel::{Block, Kernel, Real};
use ndarray::ArrayD;
use std::ops::Range;

/// How many samples there are.
pub(crate) fn count(data: &[Dataset]) -> usize {
    data.first().map_or(0, Dataset::n_samples)
}

/// Some rows of every input, row-major.
pub(crate) fn read<T: Real>(data: &[Dataset], rows: Range<usize>) -> Result<Vec<ArrayD<T>>> {
    data.iter().map(|set| Ok(set.rows::<T>(rows.clone())?.as_standard_layout().into_owned())).collect()
}

/// The same as slices.
pub(crate) fn slices<T>(arrays: &[ArrayD<T>]) -> Vec<&[T]> {
    arrays.iter().map(|array| array.as_slice().unwrap_or(&[])).collect()
}

/// Some rows, prepared.
pub(crate) fn prepare<T: Real>(kernel: &dyn Kernel<T>, data: &[Dataset], rows: Range<usize>) -> Result<Block> {
    let arrays = read(data, rows.clone())?;
    Ok(kernel.prepare(&slices(&arrays), rows.len()).map_err(|error| error.shifted(rows.start))?)
}

/// Consecutive ranges of at most `step` of so many samples.
pub(crate) fn pieces(samples: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..samples).step_by(step.max(1)).map(move |start| start..(start + step).min(samples))
}
