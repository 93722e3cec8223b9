//! Stores, and the same matrices as `.npy`, which `tests/python/test_store.py` reads.

use mercer_data::{DataScalar, Existing};
use mercer_kernel::store::{Manifest, Store, StoreColumns, StoreLayout};
use mercer_run::Context;
use std::path::Path;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A tile of `sin(31·row + column)`, or of the product of both sines for a symmetric matrix.
fn tile<T: DataScalar>(store: &Store, index: usize) -> Result<Vec<T>, Box<dyn std::error::Error>> {
    let (layout, place) = (store.layout(), store.tile(index)?);
    let (rows, columns) = layout.tile_shape(&place);
    let (first_row, first_column) =
        (place.rows.start * (rows / place.rows.len()), place.columns.start * (columns / place.columns.len()));
    let value = |row: usize, column: usize| match layout.is_symmetric() {
        true => (row as f64).sin() * (column as f64).sin(),
        false => ((31 * row + column) as f64).sin(),
    };
    let row = |row: usize| (0..columns).map(move |column| T::narrow(value(first_row + row, first_column + column)));
    Ok((0..rows).flat_map(row).collect())
}

fn write<T: DataScalar>(folder: &Path, name: &str, columns: StoreColumns, per_sample: usize) -> Outcome {
    let layout =
        StoreLayout { arrays: vec!["kernel".to_owned()], rows: 11, columns, per_sample, tile: 4, precision: T::DTYPE };
    let manifest = Manifest::new(layout).fact("kernel", name);
    let store = Store::create(&folder.join(format!("{name}.zarr")), manifest.clone())?;
    for index in 0..store.n_tiles() {
        store.write(index, &[&tile::<T>(&store, index)?])?;
    }
    store.to_npy("kernel", &folder.join(format!("{name}.npy")), Existing::Refuse, &Context::new())?;
    // The same without its last tile.
    let partial = Store::create(&folder.join(format!("{name}-partial.zarr")), manifest)?;
    for index in 0..partial.n_tiles() - 1 {
        partial.write(index, &[&tile::<T>(&partial, index)?])?;
    }
    Ok(())
}

#[test]
fn stores_for_python() -> Outcome {
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("stores");
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let samples = |count, symmetric| StoreColumns::Samples { count, symmetric };
    write::<f32>(folder, "symmetric", samples(11, true), 1)?;
    write::<f64>(folder, "rectangular", samples(7, false), 1)?;
    write::<f32>(folder, "matrix-valued", samples(11, true), 3)?;
    write::<f64>(folder, "features", StoreColumns::Features(5), 1)?;
    Ok(())
}
