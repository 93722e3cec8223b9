//! Whole matrices from tiles.

use super::Store;
use super::error::{Result, StoreError};
use mercer_data::{DType, DataScalar, Existing, NpyWriter};
use mercer_run::Context;
use ndarray::{ArrayD, ArrayViewD};
use std::path::Path;

impl Store {
    /// Reads an array as a whole, which must be complete.
    pub fn read_all<T: DataScalar>(&self, array: &str) -> Result<ArrayD<T>> {
        self.read_watched(array, &Context::new())
    }

    /// The same, unless the context cancels it.
    pub(crate) fn read_watched<T: DataScalar>(&self, array: &str, context: &Context) -> Result<ArrayD<T>> {
        self.check_complete()?;
        let shape = self.layout().shape();
        let mut values = self.reserve(shape.iter().product())?;
        for block in 0..self.layout().row_blocks() {
            if context.cancelled() {
                return Err(StoreError::Cancelled);
            }
            values.extend(self.read_rows::<T>(array, block)?);
        }
        ArrayD::from_shape_vec(shape.clone(), values).map_err(|_| self.wrong_shape(&shape))
    }

    /// Reads one block of rows of an array over all columns; the other rows need not be complete.
    pub fn read_row_block<T: DataScalar>(&self, array: &str, block: usize) -> Result<ArrayD<T>> {
        let shape = self.block_shape(block);
        let values = self.read_rows(array, block)?;
        ArrayD::from_shape_vec(shape.clone(), values).map_err(|_| self.wrong_shape(&shape))
    }

    /// Writes an array as `.npy`, a block of rows at a time; it must be complete.
    pub fn to_npy(&self, array: &str, path: &Path, existing: Existing, context: &Context) -> Result<()> {
        self.check_complete()?;
        match self.layout().precision {
            DType::F64 => self.copy_rows::<f64>(array, path, existing, context),
            _ => self.copy_rows::<f32>(array, path, existing, context),
        }
    }

    fn copy_rows<T: DataScalar>(&self, array: &str, path: &Path, existing: Existing, context: &Context) -> Result<()> {
        let mut writer = NpyWriter::<T>::create(path, &self.layout().shape()[1..], existing)?;
        let n_blocks = self.layout().row_blocks();
        for block in 0..n_blocks {
            if context.cancelled() {
                return Err(StoreError::Cancelled);
            }
            let shape = self.block_shape(block);
            let values = self.read_rows::<T>(array, block)?;
            writer.append(ArrayViewD::from_shape(shape.clone(), &values).map_err(|_| self.wrong_shape(&shape))?)?;
            context.report(block + 1, n_blocks, "blocks of rows");
        }
        Ok(writer.finish()?)
    }

    /// The entries of a block of rows, row by row.
    fn read_rows<T: DataScalar>(&self, array: &str, block: usize) -> Result<Vec<T>> {
        let (array, layout) = (self.array(array)?, self.layout());
        self.check_width::<T>()?;
        if block >= layout.row_blocks() {
            let tile = layout.n_tiles();
            return Err(StoreError::UnknownTile { place: self.place(), tile, n_tiles: tile });
        }
        let (n_rows, width) = layout.as_matrix(layout.place(block, 0).rows.len(), layout.n_columns());
        let mut values = self.reserve(n_rows * width)?;
        values.resize(n_rows * width, T::zero());
        for column_block in 0..layout.column_blocks() {
            let place = layout.place(block, column_block);
            let tile = self.read_chunk::<T>(array, &place)?;
            let (start, tile_width) = (layout.as_matrix(1, place.columns.start).1, layout.tile_shape(&place).1);
            for (row, tile_row) in values.chunks_exact_mut(width).zip(tile.chunks_exact(tile_width)) {
                row[start..start + tile_width].copy_from_slice(tile_row);
            }
        }
        Ok(values)
    }

    fn block_shape(&self, block: usize) -> Vec<usize> {
        let mut shape = self.layout().shape();
        shape[0] = self.layout().place(block.min(self.layout().row_blocks()), 0).rows.len();
        shape
    }

    pub(crate) fn check_complete(&self) -> Result<()> {
        let (n_tiles, missing) = (self.n_tiles(), self.missing()?.len());
        match missing {
            0 => Ok(()),
            _ => Err(StoreError::Incomplete { place: self.place(), done: n_tiles - missing, n_tiles }),
        }
    }

    /// Cannot happen: the layout was checked.
    fn wrong_shape(&self, shape: &[usize]) -> StoreError {
        StoreError::Layout { reason: format!("{shape:?} cannot be addressed") }
    }
}
