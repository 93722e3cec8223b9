//! Tiles: listing, writing and reading.

use super::error::{Result, StoreError, io_error};
use super::layout::TilePlace;
use super::set::Tiles;
use super::{Store, chunk, files, metadata};
use mercer_data::DataScalar;
use std::io::Read;
use std::path::PathBuf;

impl Store {
    /// The number of tiles to compute.
    pub fn n_tiles(&self) -> usize {
        self.layout().n_tiles()
    }

    /// The position of a tile. Tiles are counted row by row; for a symmetric matrix, only in the upper triangle.
    pub fn tile(&self, index: usize) -> Result<TilePlace> {
        let (place, n_tiles) = (self.place(), self.n_tiles());
        self.layout().tile(index).ok_or(StoreError::UnknownTile { place, tile: index, n_tiles })
    }

    /// Whether a tile exists, with its mirror image, in all arrays.
    pub fn is_done(&self, index: usize) -> Result<bool> {
        for (row, column) in self.chunks_of(&self.tile(index)?) {
            for array in 0..self.folders.len() {
                let (folders, name) = self.key(row, column);
                if files::open(&self.folders[array], &folders, &name)?.is_none() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The missing tiles. Folders are listed instead of checking files one by one.
    ///
    /// Other processes may finish some of them right afterwards.
    pub fn missing(&self) -> Result<Tiles> {
        let layout = self.layout();
        let mut done = vec![true; self.n_tiles()];
        for folder in &self.folders {
            // Per tile, whether it exists, and whether its mirror image does; a diagonal tile is its own mirror image.
            let (whole, mirror) = (if layout.is_symmetric() { 3 } else { 1 }, 2);
            let mut seen = vec![0u8; self.n_tiles()];
            files::list(&folder.join("c"), &layout.grid(), &mut |key| {
                let (row, column) = layout.blocks(key);
                let seen = &mut seen[layout.tile_of(row, column)];
                *seen |= u8::from(row <= column || !layout.is_symmetric());
                *seen |= if row >= column && layout.is_symmetric() { mirror } else { 0 };
            })?;
            done.iter_mut().zip(seen).for_each(|(done, seen)| *done &= seen == whole);
        }
        Ok((0..self.n_tiles()).filter(|&tile| !done[tile]).collect())
    }

    /// An error if tiles that were written have been removed.
    pub fn check_written(&self, tiles: &Tiles) -> Result<()> {
        let gone = self.missing()?.common(tiles);
        match gone.iter().next() {
            None => Ok(()),
            Some(first) => Err(StoreError::Vanished { place: self.place(), count: gone.len(), first }),
        }
    }

    /// Writes a tile: per array its entries as a row-major matrix of [`StoreLayout::tile_shape`](super::StoreLayout::tile_shape).
    ///
    /// For a symmetric matrix the mirror image is written too; a diagonal tile is stored as given. Threads and
    /// processes may write at the same time, even the same tile.
    ///
    /// A store that has been replaced by one of other inputs since it was opened gets no tile: the rest of a run that
    /// nobody waits for cannot damage the next one.
    pub fn write<T: DataScalar>(&self, index: usize, matrices: &[&[T]]) -> Result<()> {
        let (layout, tile) = (self.layout(), self.tile(index)?);
        let misfit = |reason: String| Err(StoreError::Misfit { place: self.place(), tile: index, reason });
        if T::DTYPE != layout.precision {
            return misfit(format!("the store holds {}, not {}", layout.precision, T::DTYPE));
        }
        if matrices.len() != layout.arrays.len() {
            return misfit(format!("{} matrices are given for {} arrays", matrices.len(), layout.arrays.len()));
        }
        let (rows, columns) = layout.tile_shape(&tile);
        for (values, name) in matrices.iter().zip(&layout.arrays) {
            if values.len() != rows * columns {
                let expected = format!("{} entries are given for {rows} × {columns}", values.len());
                return misfit(format!("array {name:?}: {expected}"));
            }
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let (row, column) = (at / columns, at % columns);
                return misfit(format!("array {name:?} is {} at row {row}, column {column} of the tile", values[at]));
            }
        }
        for (values, folder) in matrices.iter().zip(&self.folders) {
            let chunk_shape = layout.chunk_matrix();
            for (row, column) in self.chunks_of(&tile) {
                let (bytes, checksum) = if row == tile.row_block {
                    chunk::encode(values, (rows, columns), chunk_shape)
                } else {
                    chunk::encode(&chunk::transpose(values, (rows, columns)), (columns, rows), chunk_shape)
                };
                self.check_not_replaced()?;
                // Written before the chunk, so that no chunk exists without its place.
                if self.places {
                    files::keep_place(folder, (row, column), checksum)?;
                }
                let (folders, name) = self.key(row, column);
                files::write(folder, &folders, &name, &[&bytes, &checksum.to_le_bytes()])?;
                // Replaced in this moment: without its place, the chunk counts as damaged.
                if let Err(error) = self.check_not_replaced() {
                    files::forget_place(folder, (row, column), checksum);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// An error if another store has taken the place of this one.
    fn check_not_replaced(&self) -> Result<()> {
        let now = metadata::read(self.path())?;
        match self.manifest().differences(&now).is_empty() {
            true => Ok(()),
            false => Err(StoreError::Replaced { place: self.place() }),
        }
    }

    /// Reads a tile of an array as written. `T` may be wider than the stored type.
    pub fn read<T: DataScalar>(&self, array: &str, index: usize) -> Result<Vec<T>> {
        let (array, place) = (self.array(array)?, self.tile(index)?);
        self.check_width::<T>()?;
        self.read_chunk(array, &place)
    }

    /// The numbers of a chunk that belong to the array.
    pub(super) fn read_chunk<T: DataScalar>(&self, array: usize, place: &TilePlace) -> Result<Vec<T>> {
        let layout = self.layout();
        let bytes = self.load(array, place.row_block, place.column_block)?;
        Ok(chunk::decode(&bytes, layout.precision, layout.tile_shape(place), layout.chunk_matrix()))
    }

    /// The bytes of a whole chunk, checked and without their checksum.
    pub(super) fn load(&self, array: usize, row_block: usize, column_block: usize) -> Result<Vec<u8>> {
        let layout = self.layout();
        let tile = layout.tile_of(row_block, column_block);
        let name = || layout.arrays[array].clone();
        let path = self.chunk_path(array, row_block, column_block);
        let damaged = |why: String| StoreError::Damaged { array: name(), tile, file: path.display().to_string(), why };
        let (folders, file_name) = self.key(row_block, column_block);
        let Some(file) = files::open(&self.folders[array], &folders, &file_name)? else {
            return Err(StoreError::Missing { place: self.place(), array: name(), tile });
        };
        let (expected, found) = (layout.chunk_bytes(), file.metadata().map_err(io_error(&path))?.len());
        if found != expected as u64 {
            return Err(damaged(format!("it has {found} bytes instead of {expected}")));
        }
        let mut bytes = self.reserve(expected)?;
        file.take(expected as u64).read_to_end(&mut bytes).map_err(io_error(&path))?;
        let (bytes, checksum) = chunk::check(bytes).map_err(damaged)?;
        if self.places && !files::has_place(&self.folders[array], (row_block, column_block), checksum)? {
            return Err(damaged(
                "it is sound, but was not written for this place: it was swapped or copied".to_owned(),
            ));
        }
        Ok(bytes)
    }

    /// A buffer of this length, or an error.
    pub(super) fn reserve<T>(&self, count: usize) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let bytes = count.saturating_mul(size_of::<T>());
        values.try_reserve_exact(count).map_err(|_| StoreError::Memory { place: self.place(), bytes })?;
        Ok(values)
    }

    /// The chunks of a tile: itself, and its mirror image if it has one.
    pub(super) fn chunks_of(&self, place: &TilePlace) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (row, column) = (place.row_block, place.column_block);
        let mirror = (self.layout().is_symmetric() && row != column).then_some((column, row));
        std::iter::once((row, column)).chain(mirror)
    }

    /// The file of a chunk.
    pub(super) fn chunk_path(&self, array: usize, row_block: usize, column_block: usize) -> PathBuf {
        let (folders, name) = self.key(row_block, column_block);
        self.folders[array].join(folders.iter().collect::<PathBuf>()).join(name)
    }

    /// The folders and the name of a chunk's file in the folder of its array: `c/3/5`.
    fn key(&self, row_block: usize, column_block: usize) -> (Vec<String>, String) {
        let mut parts: Vec<String> = self.layout().key(row_block, column_block).iter().map(usize::to_string).collect();
        let name = parts.pop().unwrap_or_default();
        parts.insert(0, "c".to_owned());
        (parts, name)
    }

    /// The number of an array.
    pub(super) fn array(&self, name: &str) -> Result<usize> {
        let available = &self.layout().arrays;
        available.iter().position(|own| own == name).ok_or_else(|| StoreError::UnknownArray {
            place: self.place(),
            name: name.to_owned(),
            available: available.clone(),
        })
    }

    /// Rejects reading into a narrower type.
    pub(super) fn check_width<T: DataScalar>(&self) -> Result<()> {
        let stored = self.layout().precision;
        if T::DTYPE.size() < stored.size() {
            let (stored, asked) = (stored.to_string(), T::DTYPE.to_string());
            return Err(StoreError::Narrower { place: self.place(), stored, asked });
        }
        Ok(())
    }
}
