//! Stores made, interrupted, damaged and read.

mod damage;
mod matrices;
mod resume;

use super::{Manifest, Store, StoreColumns, StoreLayout};
use mercer_data::{DType, DataScalar};
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A layout of one array.
fn layout(rows: usize, columns: StoreColumns, per_sample: usize, tile: usize, precision: DType) -> StoreLayout {
    StoreLayout { arrays: vec!["kernel".to_owned()], rows, columns, per_sample, tile, precision }
}

/// A symmetric scalar kernel of 7 samples in tiles of 3, in `f32`.
fn small() -> Manifest {
    manifest(layout(7, StoreColumns::Samples { count: 7, symmetric: true }, 1, 3, DType::F32))
}

fn manifest(layout: StoreLayout) -> Manifest {
    Manifest::new(layout)
        .fact("kernel", json!({"name": "ntk", "kind": "trace", "scale": 0.1}))
        .fact("network", "aa00")
        .fact("data", "bb11")
        .note("network file", "net.onnx")
}

/// A place for a store.
fn fresh() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gram.zarr");
    (folder, path)
}

/// An entry of a matrix: symmetric if the layout is, and different everywhere else.
fn entry<T: DataScalar>(layout: &StoreLayout, array: usize, row: usize, column: usize) -> T {
    let (row, column) = if layout.is_symmetric() { (row.min(column), row.max(column)) } else { (row, column) };
    T::narrow(1000.0 * array as f64 + 31.0 * row as f64 + column as f64 + 0.25)
}

/// The tile of each array, entry by entry.
fn tile<T: DataScalar>(store: &Store, index: usize) -> Vec<Vec<T>> {
    let (layout, place) = (store.layout(), store.tile(index).unwrap());
    let (n_rows, n_columns) = layout.tile_shape(&place);
    let (first_row, first_column) =
        (place.rows.start * n_rows / place.rows.len(), place.columns.start * n_columns / place.columns.len());
    let array = |array: usize| {
        let row =
            |row: usize| (0..n_columns).map(move |column| entry(layout, array, first_row + row, first_column + column));
        (0..n_rows).flat_map(row).collect()
    };
    (0..layout.arrays.len()).map(array).collect()
}

fn fill<T: DataScalar>(store: &Store, tiles: impl IntoIterator<Item = usize>) {
    for index in tiles {
        let matrices = tile::<T>(store, index);
        store.write(index, &matrices.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    }
}

/// A complete store of this layout.
fn complete<T: DataScalar>(path: &Path, layout: StoreLayout) -> Store {
    let store = Store::create(path, manifest(layout)).unwrap();
    fill::<T>(&store, 0..store.n_tiles());
    store
}

/// All files below a folder, but for the empty ones that keep places.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with(".places") {
            found.extend(files(&path))
        } else if path.is_file() {
            found.push(path)
        }
    }
    found.sort();
    found
}
