//! Kernel values in double precision, whole or in strips of whole rows.
//!
//! A strip holds all columns of some rows, for work that needs every kernel value of a sample at once. Strips consist
//! of whole blocks of rows, so that their numbers do not depend on how many rows a strip has.

use super::Gram;
use super::sink::{Sink, rectangles};
use crate::error::{KernelError, Result};
use crate::kernel::Real;
use crate::store::{StoreLayout, TilePlace, Tiles};
use mercer_run::Context;
use ndarray::{Array2, Array3, Axis};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Matrices of some rows in double precision, one per part.
struct WideRows<'a> {
    layout: &'a StoreLayout,
    first: usize,
    /// Whether the parts are added up.
    sum: bool,
    parts: Mutex<Array3<f64>>,
}

impl<T: Real> Sink<T> for WideRows<'_> {
    fn write(&self, _: usize, place: &TilePlace, matrices: &[&[T]]) -> Result<()> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, matrix) in matrices.iter().enumerate() {
            let mut part = match self.sum {
                true => parts.index_axis_mut(Axis(0), 0),
                false => parts.index_axis_mut(Axis(0), at),
            };
            rectangles(self.layout, place, matrix, |row, column, width, block| {
                for (line, values) in block.chunks_exact(width).enumerate() {
                    let mut target = part.row_mut(row - self.first + line);
                    let target = target.as_slice_mut().unwrap_or_default();
                    for (slot, value) in target[column..column + width].iter_mut().zip(values) {
                        *slot += value.wide();
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl<T: Real> Gram<'_, T> {
    /// The kernel itself in memory, in double precision whatever it was computed in: the sum of its parts.
    ///
    /// # Errors
    /// For a kernel with a matrix per pair of samples, and if the memory does not suffice.
    pub fn to_wide_kernel(&self, context: &Context) -> Result<Array2<f64>> {
        let layout = self.scalar_layout()?;
        let strip = self.wide_rows(&layout, 0..layout.row_blocks(), true, context)?;
        Ok(strip.index_axis_move(Axis(0), 0))
    }

    /// The blocks of rows that a strip of this many bytes can hold, at least one.
    ///
    /// # Errors
    /// For a kernel with a matrix per pair of samples.
    pub fn strips(&self, parts: usize, bytes: usize) -> Result<Vec<Range<usize>>> {
        let layout = self.scalar_layout()?;
        let block = layout.tile.saturating_mul(layout.n_columns()).saturating_mul(parts * size_of::<f64>());
        let (count, blocks) = ((bytes / block.max(1)).max(1), layout.row_blocks());
        Ok((0..blocks).step_by(count).map(|start| start..(start + count).min(blocks)).collect())
    }

    /// The kernel values of some blocks of rows, `[1 or parts, rows, columns]`, and the rows.
    ///
    /// # Errors
    /// As [`to_wide_kernel`](Self::to_wide_kernel); the matrix must have other samples as columns.
    pub fn strip(&self, blocks: Range<usize>, sum: bool, context: &Context) -> Result<(Range<usize>, Array3<f64>)> {
        let layout = self.scalar_layout()?;
        if layout.is_symmetric() {
            return Err(KernelError::Setting("strips are of a matrix between two sets of samples".to_owned()));
        }
        let rows = blocks.start * layout.tile..(blocks.end * layout.tile).min(layout.rows);
        Ok((rows, self.wide_rows(&layout, blocks, sum, context)?))
    }

    fn wide_rows(
        &self,
        layout: &StoreLayout,
        blocks: Range<usize>,
        sum: bool,
        context: &Context,
    ) -> Result<Array3<f64>> {
        let first = blocks.start * layout.tile;
        let n_rows = (blocks.end * layout.tile).min(layout.rows) - first;
        let n_parts = if sum { 1 } else { layout.arrays.len() };
        let held = n_parts.saturating_mul(n_rows).saturating_mul(layout.n_columns()).saturating_mul(size_of::<f64>());
        let memory = context.memory();
        let left = context.with_memory(memory.saturating_sub(held));
        let tiles = Tiles::range(layout.first_of_row(blocks.start)..layout.first_of_row(blocks.end));
        self.plan(&tiles, &left).map_err(|error| match error {
            KernelError::Memory { needed, .. } => {
                KernelError::Memory { allowed: memory, needed: needed.saturating_add(held) }
            }
            other => other,
        })?;
        let parts = Array3::zeros((n_parts, n_rows, layout.n_columns()));
        let sink = WideRows { layout, first, sum, parts: Mutex::new(parts) };
        self.run(&tiles, &sink, &left)?;
        Ok(sink.parts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The layout of a kernel with one number per pair of samples, without matrices beside it.
    fn scalar_layout(&self) -> Result<StoreLayout> {
        let layout = self.layout();
        if layout.per_sample != 1 {
            let text = "this kernel has a matrix per pair of samples; one number is needed, as of trace or pseudo";
            return Err(KernelError::Setting(text.to_owned()));
        }
        if !self.kernel.beside().is_empty() {
            return Err(KernelError::Setting("this kernel has standard errors beside it".to_owned()));
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::{Classic, Formula};
    use mercer_data::Dataset;

    /// Strips of any size are rows of the same matrix, bit for bit; parts are separate or added up.
    #[test]
    fn strips_are_rows_of_the_matrix() {
        let points = |n: usize, shift: f64| {
            let values = Array2::from_shape_fn((n, 2), |(i, j)| ((i * 7 + j * 3) % 31) as f32 / 31.0 + shift as f32);
            [Dataset::from_array("points", values.view().into_dyn()).expect("a set")]
        };
        let formula: Formula = "rbf(lengthscale=0.7) + linear()".parse().expect("a formula");
        let kernel = Classic::<f32>::new(&formula, 2).expect("a kernel");
        let (rows, columns) = (points(1500, 0.0), points(700, 0.1));
        let gram = Gram::new(&kernel, &rows).against(&columns);
        let context = Context::new();
        let whole = gram.to_kernel(&context).expect("computes").mapv(f64::from);
        let all = gram.strips(1, usize::MAX).expect("strips");
        let single = gram.strips(1, 1).expect("strips");
        assert!(all.len() == 1 && single.len() > 1, "{all:?} {single:?}");
        for strips in [all, single] {
            let mut next = 0;
            for blocks in strips {
                let (range, strip) = gram.strip(blocks, true, &context).expect("computes");
                assert_eq!((range.start, strip.dim()), (next, (1, range.len(), 700)));
                for (at, row) in range.clone().zip(strip.index_axis(Axis(0), 0).outer_iter()) {
                    assert!(row.iter().zip(whole.index_axis(Axis(0), at)).all(|(a, b)| a == b));
                }
                next = range.end;
            }
            assert_eq!(next, 1500);
        }
        let square = Gram::new(&kernel, &columns);
        let wide = square.to_wide_kernel(&context).expect("computes");
        assert_eq!(wide.into_dyn(), square.to_kernel(&context).expect("computes").mapv(f64::from));
        assert!(square.strip(0..1, true, &context).is_err(), "strips are between two sets");
    }
}
