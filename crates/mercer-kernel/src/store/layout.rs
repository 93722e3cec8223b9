//! The layout of the arrays of a store, and their division into tiles.

use super::chunk::CHECKSUM;
use super::error::{Result, StoreError};
use super::set::Tiles;
use mercer_data::DType;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The maximum number of tiles. More make a store unwieldy, and damaged descriptions have far larger numbers.
const MOST_TILES: usize = 1 << 24;

/// The maximum number of arrays, more than any network has layers.
const MOST_ARRAYS: usize = 4096;

/// The layout of the arrays of a store. All have the same shape, tiles and scalar.
///
/// | | shape | chunk |
/// |---|---|---|
/// | scalar kernel | N × M | t × t |
/// | matrix-valued kernel, C outputs | N × C × M × C | t × C × t × C |
/// | features | N × K | t × K |
/// | features of C outputs | N × C × K | t × C × K |
///
/// A chunk never exceeds the array. In memory a tile is a row-major matrix of (samples · C) rows either way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreLayout {
    /// The names of the arrays; their folders have the same names with other characters than letters and digits replaced.
    pub arrays: Vec<String>,
    /// The samples N that rows belong to.
    pub rows: usize,
    /// What the columns are.
    pub columns: StoreColumns,
    /// The outputs C of a matrix-valued kernel; 1 for a scalar one.
    pub per_sample: usize,
    /// The samples t of a tile.
    pub tile: usize,
    /// `f32` or `f64`.
    pub precision: DType,
}

/// What the columns of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum StoreColumns {
    /// Samples, as of a Gram matrix.
    Samples {
        /// Their number M.
        count: usize,
        /// Whether they are the samples of the rows and the kernel is symmetric, so that half of the tiles are mirror
        /// images.
        symmetric: bool,
    },
    /// Features, whose number is K.
    Features(usize),
}

/// The position of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TilePlace {
    /// The block of rows.
    pub row_block: usize,
    /// The block of columns; not before that of the rows if the matrix is symmetric.
    pub column_block: usize,
    /// The samples of the rows.
    pub rows: Range<usize>,
    /// The samples of the columns, or the features.
    pub columns: Range<usize>,
}

impl StoreLayout {
    /// Rejects layouts that cannot be stored or addressed.
    pub fn check(&self) -> Result<()> {
        let refuse = |reason: &str| Err(StoreError::Layout { reason: reason.to_owned() });
        if self.arrays.is_empty() || self.arrays.len() > MOST_ARRAYS {
            return refuse("the number of arrays must be between 1 and 4096");
        }
        let mut names: Vec<&String> = self.arrays.iter().collect();
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return refuse("two arrays have the same name");
        }
        if !matches!(self.precision, DType::F32 | DType::F64) {
            return refuse("numbers are stored as f32 or f64");
        }
        if self.rows == 0 || self.n_columns() == 0 || self.per_sample == 0 || self.tile == 0 {
            return refuse("rows, columns, outputs and tiles must not be empty");
        }
        if self.is_symmetric() && self.n_columns() != self.rows {
            return refuse("a symmetric matrix has as many columns as rows");
        }
        let bytes = self.shape().into_iter().try_fold(self.precision.size(), usize::checked_mul);
        if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return refuse("the arrays are too large to address");
        }
        if self.row_blocks().checked_mul(self.column_blocks()).is_none_or(|chunks| chunks > 2 * MOST_TILES) {
            return refuse("there are too many tiles for a folder of files; a single file, .npy, may have as many");
        }
        Ok(())
    }

    /// Whether only the upper triangle is computed.
    pub fn is_symmetric(&self) -> bool {
        matches!(self.columns, StoreColumns::Samples { symmetric: true, .. })
    }

    /// The samples of the columns, or the features.
    pub fn n_columns(&self) -> usize {
        match self.columns {
            StoreColumns::Samples { count, .. } => count,
            StoreColumns::Features(count) => count,
        }
    }

    /// The shape of each array.
    pub fn shape(&self) -> Vec<usize> {
        self.with_outputs(self.rows, self.n_columns())
    }

    /// The shape of a chunk, which is a tile padded to its full size.
    pub(super) fn chunk_shape(&self) -> Vec<usize> {
        self.with_outputs(self.row_extent(), self.column_extent())
    }

    /// The number of chunks along each axis.
    pub(super) fn grid(&self) -> Vec<usize> {
        self.shape().iter().zip(self.chunk_shape()).map(|(length, extent)| length.div_ceil(extent)).collect()
    }

    /// The place of a chunk in the grid: its blocks where samples or features are counted, 0 where outputs are.
    pub(super) fn key(&self, row_block: usize, column_block: usize) -> Vec<usize> {
        match (self.columns, self.per_sample) {
            (_, 1) => vec![row_block, column_block],
            (StoreColumns::Samples { .. }, _) => vec![row_block, 0, column_block, 0],
            (StoreColumns::Features(_), _) => vec![row_block, 0, column_block],
        }
    }

    /// The blocks of a place in the grid.
    pub(super) fn blocks(&self, key: &[usize]) -> (usize, usize) {
        (key[0], if self.per_sample == 1 { key[1] } else { key[2] })
    }

    /// What the axes are called.
    pub(super) fn axis_names(&self) -> Vec<&'static str> {
        match (self.columns, self.per_sample) {
            (StoreColumns::Samples { .. }, 1) => vec!["row", "column"],
            (StoreColumns::Samples { .. }, _) => vec!["row", "row_output", "column", "column_output"],
            (StoreColumns::Features(_), 1) => vec!["row", "feature"],
            (StoreColumns::Features(_), _) => vec!["row", "row_output", "feature"],
        }
    }

    fn with_outputs(&self, rows: usize, columns: usize) -> Vec<usize> {
        match (self.columns, self.per_sample) {
            (_, 1) => vec![rows, columns],
            (StoreColumns::Samples { .. }, outputs) => vec![rows, outputs, columns, outputs],
            (StoreColumns::Features(_), outputs) => vec![rows, outputs, columns],
        }
    }

    fn row_extent(&self) -> usize {
        self.tile.min(self.rows).max(1)
    }

    fn column_extent(&self) -> usize {
        match self.columns {
            StoreColumns::Samples { count, .. } => self.tile.min(count).max(1),
            StoreColumns::Features(count) => count.max(1),
        }
    }

    /// The number of blocks of rows.
    pub fn row_blocks(&self) -> usize {
        self.rows.div_ceil(self.row_extent())
    }

    /// The number of blocks of columns; features are never cut.
    pub fn column_blocks(&self) -> usize {
        self.n_columns().div_ceil(self.column_extent())
    }

    /// All tiles.
    pub fn all_tiles(&self) -> Tiles {
        Tiles::range(0..self.n_tiles())
    }

    /// The bytes of the numbers of all arrays.
    pub fn bytes(&self) -> u64 {
        let sizes = self.shape().into_iter().chain([self.arrays.len(), self.precision.size()]);
        sizes.fold(1, |all: u64, size| all.saturating_mul(size as u64))
    }

    /// The bytes of some tiles in a store: whole chunks with their checksums, and their mirror images.
    pub fn stored_bytes(&self, tiles: &Tiles) -> u64 {
        let mut chunks = tiles.len() as u64;
        if self.is_symmetric() {
            let on_diagonal = (0..self.row_blocks()).filter(|&block| tiles.contains(self.first_of_row(block))).count();
            chunks = chunks.saturating_mul(2) - on_diagonal as u64;
        }
        chunks.saturating_mul(self.chunk_bytes() as u64).saturating_mul(self.arrays.len() as u64)
    }

    /// The bytes of the file of a chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        let (rows, columns) = self.chunk_matrix();
        rows * columns * self.precision.size() + CHECKSUM
    }

    /// The number of tiles to compute.
    pub fn n_tiles(&self) -> usize {
        if self.is_symmetric() {
            self.first_of_row(self.row_blocks())
        } else {
            self.row_blocks() * self.column_blocks()
        }
    }

    /// The number of the first tile of a block of rows.
    ///
    /// Tiles are counted row by row. A symmetric matrix has only the diagonal and the tiles to its right, so row `i` of
    /// `B` blocks begins at `i·B − i(i − 1)/2`.
    pub(crate) fn first_of_row(&self, block: usize) -> usize {
        let whole = block * self.column_blocks();
        if self.is_symmetric() { whole - block * block.saturating_sub(1) / 2 } else { whole }
    }

    /// The position of a tile, if it exists.
    pub fn tile(&self, index: usize) -> Option<TilePlace> {
        if index >= self.n_tiles() {
            return None;
        }
        // The last row that does not begin after the tile.
        let (mut row, mut end) = (0, self.row_blocks());
        while end - row > 1 {
            let middle = row + (end - row) / 2;
            if self.first_of_row(middle) <= index { row = middle } else { end = middle }
        }
        let column = index - self.first_of_row(row) + if self.is_symmetric() { row } else { 0 };
        Some(self.place(row, column))
    }

    /// The tile that holds a chunk: below the diagonal of a symmetric matrix, that of the mirror image.
    pub(crate) fn tile_of(&self, row_block: usize, column_block: usize) -> usize {
        match self.is_symmetric() {
            true if column_block < row_block => self.tile_of(column_block, row_block),
            true => self.first_of_row(row_block) + column_block - row_block,
            false => self.first_of_row(row_block) + column_block,
        }
    }

    /// The position of a chunk.
    pub(super) fn place(&self, row_block: usize, column_block: usize) -> TilePlace {
        let range = |block: usize, extent: usize, length: usize| block * extent..length.min((block + 1) * extent);
        TilePlace {
            row_block,
            column_block,
            rows: range(row_block, self.row_extent(), self.rows),
            columns: range(column_block, self.column_extent(), self.n_columns()),
        }
    }

    /// The samples of some blocks of rows or columns, out of this many.
    pub(crate) fn samples(&self, blocks: &Tiles, of: usize) -> usize {
        let end = |block: usize| block.saturating_mul(self.tile).min(of);
        blocks.runs().iter().map(|run| end(run.end) - end(run.start)).sum()
    }

    /// Rows and columns of a tile as a matrix, outputs included.
    pub fn tile_shape(&self, place: &TilePlace) -> (usize, usize) {
        self.as_matrix(place.rows.len(), place.columns.len())
    }

    /// Rows and columns of a whole chunk as a matrix.
    pub(super) fn chunk_matrix(&self) -> (usize, usize) {
        self.as_matrix(self.row_extent(), self.column_extent())
    }

    /// The matrix shape of this many rows and columns of samples.
    pub(super) fn as_matrix(&self, rows: usize, columns: usize) -> (usize, usize) {
        let per_column = if matches!(self.columns, StoreColumns::Samples { .. }) { self.per_sample } else { 1 };
        (rows * self.per_sample, columns * per_column)
    }

    /// The folders of the arrays, in their order: their names with everything but letters, digits, `.`, `-` and `_`
    /// replaced, and a number where two would be the same.
    pub fn folders(&self) -> Vec<String> {
        const LONGEST: usize = 100;
        let safe = |letter: char| if letter.is_ascii_alphanumeric() || ".-_".contains(letter) { letter } else { '_' };
        let mut taken = std::collections::HashSet::new();
        let mut folders = Vec::with_capacity(self.arrays.len());
        for array in &self.arrays {
            let mut name: String = array.chars().take(LONGEST).map(safe).collect();
            // Hidden names, and names reserved by Zarr.
            if name.is_empty()
                || name.starts_with('.')
                || name.starts_with("__")
                || name.eq_ignore_ascii_case("zarr.json")
            {
                name.insert_str(0, "array-");
            }
            let unique = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}-{number}")));
            // Some file systems are case-insensitive.
            let name = unique.into_iter().find(|name| taken.insert(name.to_ascii_lowercase())).unwrap_or(name);
            folders.push(name);
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn layout(rows: usize, columns: StoreColumns, per_sample: usize, tile: usize) -> StoreLayout {
        StoreLayout { arrays: vec!["kernel".to_owned()], rows, columns, per_sample, tile, precision: DType::F32 }
    }

    /// Every entry is in exactly one chunk, and every chunk has its tile.
    #[test]
    fn tiles_cover_the_matrix_once() {
        for (rows, count, symmetric, tile) in [
            (10, 10, true, 4),
            (10, 10, false, 4),
            (3, 11, false, 4),
            (7, 7, true, 7),
            (5, 5, true, 9),
            (9, 9, true, 1),
        ] {
            let layout = layout(rows, StoreColumns::Samples { count, symmetric }, 1, tile);
            let mut seen = vec![0; rows * count];
            for index in 0..layout.n_tiles() {
                let place = layout.tile(index).unwrap();
                assert_eq!(layout.tile_of(place.row_block, place.column_block), index);
                assert_eq!(
                    layout.tile_of(place.column_block, place.row_block) == index,
                    symmetric || place.row_block == place.column_block
                );
                for row in place.rows.clone() {
                    for column in place.columns.clone() {
                        seen[row * count + column] += 1;
                        if symmetric && place.row_block != place.column_block {
                            seen[column * count + row] += 1;
                        }
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{rows} {count} {symmetric} {tile}: {seen:?}");
            assert_eq!(layout.tile(layout.n_tiles()), None);
        }
    }

    #[test]
    fn the_order_is_row_by_row() {
        let layout = layout(9, StoreColumns::Samples { count: 9, symmetric: true }, 1, 3);
        let blocks: Vec<_> =
            (0..6).filter_map(|index| layout.tile(index)).map(|p| (p.row_block, p.column_block)).collect();
        assert_eq!(blocks, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]);
    }

    #[test]
    fn folders_are_safe_and_differ() {
        let mut layout = layout(1, StoreColumns::Features(1), 1, 1);
        layout.arrays =
            ["a/b", "a b", "A_B", "../..", "", "zarr.json", "__x", "naïve", "c"].map(str::to_owned).to_vec();
        let folders = layout.folders();
        assert_eq!(
            folders,
            ["a_b", "a_b-2", "A_B-3", "array-.._..", "array-", "array-zarr.json", "array-__x", "na_ve", "c"]
        );
    }

    #[test]
    fn impossible_layouts() {
        let square = |rows, count| layout(rows, StoreColumns::Samples { count, symmetric: true }, 1, 4);
        assert!(square(5, 5).check().is_ok());
        let cases = [
            (square(0, 0), "empty"),
            (square(5, 6), "symmetric"),
            (layout(5, StoreColumns::Features(usize::MAX), 1, 4), "address"),
            (layout(usize::MAX, StoreColumns::Samples { count: usize::MAX, symmetric: true }, 1, 1), "address"),
            (layout(1 << 20, StoreColumns::Samples { count: 1 << 20, symmetric: true }, 1, 1), "too many"),
            (layout(5, StoreColumns::Features(3), 0, 4), "empty"),
            (StoreLayout { precision: DType::I32, ..square(5, 5) }, "f32"),
            (StoreLayout { arrays: vec![], ..square(5, 5) }, "arrays"),
            (StoreLayout { arrays: vec!["a".into(), "a".into()], ..square(5, 5) }, "same name"),
        ];
        for (layout, word) in cases {
            let error = layout.check().unwrap_err().to_string();
            assert!(error.contains(word), "{layout:?}: {error}");
        }
    }
}
