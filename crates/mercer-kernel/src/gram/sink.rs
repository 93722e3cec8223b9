//! Where tiles go: memory, `.npy` files, or a store.

use crate::error::Result;
use crate::kernel::Real;
use crate::store::{Store, StoreLayout, TilePlace, transpose};
use mercer_data::{Existing, NpyGrid};
use ndarray::{ArrayD, IxDyn};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Receives finished tiles from several threads.
pub trait Sink<T: Real>: Sync {
    /// Stores a tile: one row-major matrix per array. For a symmetric matrix, its mirror image is implied.
    fn write(&self, index: usize, place: &TilePlace, matrices: &[&[T]]) -> Result<()>;
}

impl<T: Real> Sink<T> for Store {
    fn write(&self, index: usize, _: &TilePlace, matrices: &[&[T]]) -> Result<()> {
        Ok(Store::write(self, index, matrices)?)
    }
}

/// Tiles in memory.
#[derive(Debug)]
pub struct InMemory<T> {
    layout: StoreLayout,
    arrays: Mutex<Vec<Vec<T>>>,
}

impl<T: Real> InMemory<T> {
    /// Arrays of zeros.
    pub fn new(layout: StoreLayout) -> Self {
        let size: usize = layout.shape().iter().product();
        let arrays = layout.arrays.iter().map(|_| mercer_linalg::memory::zeros(size)).collect();
        Self { layout, arrays: Mutex::new(arrays) }
    }

    /// The arrays, in the layout's order and shape.
    pub fn into_arrays(self) -> Vec<ArrayD<T>> {
        let shape = IxDyn(&self.layout.shape());
        let arrays = self.arrays.into_inner().unwrap_or_else(PoisonError::into_inner);
        arrays
            .into_iter()
            .map(|array| ArrayD::from_shape_vec(shape.clone(), array).expect("made with this shape"))
            .collect()
    }
}

impl<T: Real> Sink<T> for InMemory<T> {
    fn write(&self, _: usize, place: &TilePlace, matrices: &[&[T]]) -> Result<()> {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        for (array, matrix) in arrays.iter_mut().zip(matrices) {
            rectangles(&self.layout, place, matrix, |row, column, width, block| {
                for (at, line) in block.chunks_exact(width).enumerate() {
                    let from = (row + at) * matrix_width(&self.layout) + column;
                    array[from..from + width].copy_from_slice(line);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// One `.npy` file per array. A file gets its name when it is finished; its tiles are never in memory together.
pub struct NpyFiles<T> {
    layout: StoreLayout,
    files: Vec<Mutex<NpyGrid<T>>>,
}

impl<T: Real> NpyFiles<T> {
    /// Begins a file per array of the layout.
    pub fn create(layout: StoreLayout, paths: &[PathBuf], existing: Existing) -> Result<Self> {
        let (shape, width) = (layout.shape(), matrix_width(&layout));
        let create = |path: &PathBuf| Ok(Mutex::new(NpyGrid::create(path, &shape, width, existing)?));
        let files = paths.iter().map(create).collect::<Result<_>>()?;
        Ok(Self { layout, files })
    }

    /// Completes the files and renames them into place.
    pub fn finish(self) -> Result<()> {
        for file in self.files {
            file.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        }
        Ok(())
    }
}

impl<T: Real> Sink<T> for NpyFiles<T> {
    fn write(&self, _: usize, place: &TilePlace, matrices: &[&[T]]) -> Result<()> {
        for (file, matrix) in self.files.iter().zip(matrices) {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            rectangles(&self.layout, place, matrix, |row, column, width, block| {
                Ok(file.write(row, column, width, block)?)
            })?;
        }
        Ok(())
    }
}

/// StoreColumns of an array as a matrix.
fn matrix_width(layout: &StoreLayout) -> usize {
    let shape = layout.shape();
    shape[shape.len() / 2..].iter().product()
}

/// The rectangles of an array that a tile fills: its own and, for a symmetric matrix, its mirror image.
pub(super) fn rectangles<T: Real>(
    layout: &StoreLayout,
    place: &TilePlace,
    matrix: &[T],
    mut each: impl FnMut(usize, usize, usize, &[T]) -> Result<()>,
) -> Result<()> {
    let (height, width) = layout.tile_shape(place);
    let (row, column) =
        (place.rows.start * layout.per_sample, place.columns.start * (width / place.columns.len().max(1)));
    each(row, column, width, matrix)?;
    if !layout.is_symmetric() || place.row_block == place.column_block {
        return Ok(());
    }
    each(column, row, height, &transpose(matrix, (height, width)))
}
