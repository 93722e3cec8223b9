//! Rows of data sets, one per input, in the form that kernels and bases take.

use crate::error::Result;
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::{Block, Kernel, Real};
use std::ops::Range;

/// The number of samples.
pub(crate) fn count(data: &[Dataset]) -> usize {
    data.first().map_or(0, Dataset::n_samples)
}

/// Some rows, prepared.
pub(crate) fn prepare<T: Real>(kernel: &dyn Kernel<T>, data: &[Dataset], rows: Range<usize>) -> Result<Block> {
    let block = RowBlock::<T>::read(data, rows.clone())?;
    Ok(kernel.prepare(&block.slices(), rows.len()).map_err(|error| error.shifted(rows.start))?)
}

/// Splits the samples into consecutive ranges of at most `step`.
pub(crate) fn pieces(samples: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..samples).step_by(step.max(1)).map(move |start| start..(start + step).min(samples))
}

/// The tile of two blocks: the sum of the kernel's parts, without the matrices beside them.
pub(crate) fn whole<T: Real>(kernel: &dyn Kernel<T>, a: &Block, b: &Block, size: usize) -> Vec<T> {
    let n_parts = kernel.parts().len();
    let mut tile = vec![T::zero(); size * (n_parts + kernel.beside().len())];
    kernel.contract(a, b, &mut tile);
    let (sum, others) = tile.split_at_mut(size);
    for part in others.chunks_exact(size.max(1)).take(n_parts - 1) {
        sum.iter_mut().zip(part).for_each(|(to, &x)| *to += x);
    }
    tile.truncate(size);
    tile
}
