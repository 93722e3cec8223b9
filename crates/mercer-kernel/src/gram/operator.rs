//! Products with a Gram matrix that is never stored: its tiles are computed, used and dropped.

use crate::error::{KernelError, Result};
use crate::kernel::{Block, Kernel, Real};
use mercer_data::{Dataset, RowBlock};
use mercer_linalg::{LinearOperator, gemm};
use mercer_run::Context;
use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, s};
use rayon::prelude::*;
use std::ops::Range;

/// Samples per block, chosen so that a tile stays in the second-level cache while it is used.
const SIDE: usize = 256;

/// The Gram matrix of a kernel on data, as a linear map. Prepared samples stay in memory; tiles of the upper triangle
/// are computed for every product, in parallel, and added in a fixed order.
#[derive(Debug)]
pub struct GramOperator<'a, T: Real> {
    kernel: &'a dyn Kernel<T>,
    blocks: Vec<Block>,
    rows: usize,
}

impl<'a, T: Real> GramOperator<'a, T> {
    /// Of a data set, one [`Dataset`] per input of the kernel.
    pub fn new(kernel: &'a dyn Kernel<T>, data: &[Dataset], context: &Context) -> Result<Self> {
        let samples = data.first().map_or(0, Dataset::n_samples);
        let mut blocks = Vec::new();
        for start in (0..samples).step_by(SIDE) {
            context.check()?;
            let range = start..(start + SIDE).min(samples);
            let count = range.len();
            let inputs = RowBlock::<T>::read(data, range)?;
            blocks.push(kernel.prepare(&inputs.slices(), count).map_err(|error| error.shifted(start))?);
        }
        Ok(Self { kernel, blocks, rows: samples * kernel.per_sample() })
    }

    /// The diagonal of the matrix.
    pub fn diagonal(&self) -> Array1<T> {
        self.blocks.iter().flat_map(|block| self.kernel.diagonal(block)).collect()
    }

    /// A column of the matrix of a kernel with one row per sample.
    pub fn column(&self, row: usize) -> Result<Array1<T>> {
        if self.kernel.per_sample() != 1 || row >= self.rows {
            let reason = format!("column {row} of {} with {} per sample", self.rows, self.kernel.per_sample());
            return Err(KernelError::Setting(reason));
        }
        let (other, at) = (&self.blocks[row / SIDE], row % SIDE);
        let mut column = Array1::zeros(self.rows);
        for (index, block) in self.blocks.iter().enumerate() {
            let tile = self.tile(block, other);
            let values = tile.iter().skip(at).step_by(other.samples());
            column.iter_mut().skip(index * SIDE).zip(values).for_each(|(to, &from)| *to = from);
        }
        Ok(column)
    }

    fn range(&self, block: usize) -> Range<usize> {
        let per_sample = self.kernel.per_sample();
        let start = block * SIDE * per_sample;
        start..start + self.blocks[block].samples() * per_sample
    }

    /// The sum of all parts.
    fn tile(&self, a: &Block, b: &Block) -> Vec<T> {
        let size = a.samples() * b.samples() * self.kernel.per_sample().pow(2);
        let mut tile = vec![T::zero(); size * self.kernel.parts().len()];
        self.kernel.contract(a, b, &mut tile);
        let (first, others) = tile.split_at_mut(size);
        for part in others.chunks_exact(size) {
            first.iter_mut().zip(part).for_each(|(sum, &value)| *sum += value);
        }
        tile.truncate(size);
        tile
    }

    /// `K_ij·x_j`, and `K_ijᵀ·x_i` beside the diagonal.
    fn products(&self, i: usize, j: usize, x: ArrayView2<'_, T>) -> (Vec<T>, Vec<T>) {
        let tile = self.tile(&self.blocks[i], &self.blocks[j]);
        let (rows, columns, width) = (self.range(i), self.range(j), x.ncols());
        let product = |from: Range<usize>, [m, k]: [usize; 2], strides: (usize, usize)| {
            let part = x.slice(s![from, ..]);
            let part = part.as_standard_layout();
            let mut y = vec![T::zero(); m * width];
            let values = part.as_slice().unwrap_or(&[]);
            gemm([m, width, k], (&tile, strides.0, strides.1), (values, width, 1), false, &mut y);
            y
        };
        let (m, n) = (rows.len(), columns.len());
        let forward = product(columns, [m, n], (n, 1));
        let backward = if i == j { Vec::new() } else { product(rows, [n, m], (1, n)) };
        (forward, backward)
    }
}

impl<T: Real> LinearOperator<T> for GramOperator<'_, T> {
    fn dim(&self) -> usize {
        self.rows
    }

    fn apply(&self, x: ArrayView1<'_, T>, y: ArrayViewMut1<'_, T>) {
        self.apply_block(x.insert_axis(Axis(1)), y.insert_axis(Axis(1)));
    }

    fn apply_block(&self, x: ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) {
        y.fill(T::zero());
        let mut add = |block: usize, values: &[T]| {
            let target = y.slice_mut(s![self.range(block), ..]);
            target.into_iter().zip(values).for_each(|(to, &value)| *to += value);
        };
        for i in 0..self.blocks.len() {
            let found: Vec<(Vec<T>, Vec<T>)> =
                (i..self.blocks.len()).into_par_iter().map(|j| self.products(i, j, x)).collect();
            for (offset, (forward, backward)) in found.iter().enumerate() {
                add(i, forward);
                add(i + offset, backward);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Features, Ntk, NtkKind};
    use mercer_net::arch::Mlp;
    use ndarray::Array2;

    fn check(kernel: &dyn Kernel<f64>, n: usize) {
        let x = Array2::from_shape_fn((n, 3), |(i, j)| ((i * 7 + j * 3) as f64).sin());
        let data = [Dataset::from_array("x", x.into_dyn().view()).unwrap()];
        let parts = crate::gram::Gram::new(kernel, &data).to_arrays(&mercer_run::Context::new()).unwrap();
        let rows = n * kernel.per_sample();
        let matrix =
            parts.iter().fold(Array2::zeros((rows, rows)), |sum, part| sum + part.to_shape((rows, rows)).unwrap());
        let operator = GramOperator::new(kernel, &data, &mercer_run::Context::new()).unwrap();
        let block = Array2::from_shape_fn((rows, 2), |(i, j)| ((i + 5 * j) as f64).cos());
        let mut found = Array2::zeros((rows, 2));
        operator.apply_block(block.view(), found.view_mut());
        let expected = matrix.dot(&block);
        let scale = expected.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        assert!((found - expected).iter().all(|d| d.abs() < 1e-11 * scale));
        let diagonal = operator.diagonal();
        assert!(diagonal.iter().zip(matrix.diag()).all(|(a, b)| (a - b).abs() < 1e-12 * scale));
        if kernel.per_sample() == 1 {
            let column = operator.column(n - 1).unwrap();
            assert!(column.iter().zip(matrix.column(n - 1)).all(|(a, b)| (a - b).abs() < 1e-12 * scale));
        }
    }

    /// Several blocks, a last one that is not full, several outputs: all against the matrix.
    #[test]
    fn products_are_those_of_the_matrix() {
        let network = Mlp::new(3, &[8], 2).build(1).unwrap();
        let ntk = |kind| Ntk::<f64>::new(&network, &[vec![3]], kind).unwrap();
        check(&ntk(NtkKind::Trace), 2 * SIDE + 3);
        check(&ntk(NtkKind::Full), SIDE + 1);
        check(&ntk(NtkKind::Pseudo), 1);
        let conjugate = crate::Conjugate::<f64>::new(&network, &[vec![3]], None).unwrap();
        check(&Features(conjugate), SIDE);
    }
}
