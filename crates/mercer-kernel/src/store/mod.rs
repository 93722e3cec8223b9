//! Gram matrices and features on disk: a Zarr v3 store that is filled tile by tile, by any number of processes.
//!
//! ```text
//! OUT.zarr/zarr.json              the group; its attribute "mercer" is the manifest
//! OUT.zarr/kernel/zarr.json       an array, one per matrix
//! OUT.zarr/kernel/c/3/5           the tile of row block 3 and column block 5: numbers, little endian, and their crc32c
//! OUT.zarr/kernel/.places/3/5.1a2b3c4d    an empty file: the tile there was written with this checksum
//! OUT.zarr/kernel/.parts/         temporaries of writers
//! ```
//!
//! `zarr` and `dask.array` open it in Python; a missing tile reads as NaN. The chunk is the tile. Tiles at the edge are
//! stored whole, padded with NaN, as the format requires. For a symmetric matrix the upper triangle is computed,
//! and every tile is stored a second time as its mirror image, so that other readers see a full matrix; a tile is done
//! when both exist in all arrays.
//!
//! A tile is complete and flushed to the disk, or absent, and all writers of a tile write the same bytes, so no locks
//! are needed: processes may start, stop and die at any time, also on other machines that share the file system. The
//! [`Manifest`] says what the numbers were computed from; [`Store::resume`] refuses anything else and says what
//! differs. CRC-32C finds every change of up to 32 neighbouring bits, so no flipped byte goes unseen by
//! [`Store::verify`]. A checksum does not tell whose it is, so the name of an empty file binds it to the tile's place:
//! tiles that were swapped or copied are found. Stores of earlier versions have no such files; their places are not
//! checked.
//!
//! We write the small part of the format that we need ourselves: the `zarrs` crate (0.23) brings 124 crates with it, 108
//! without its default features, and writes chunks in place; this folder needs `crc32c`, which has no dependencies.

mod chunk;
mod error;
mod files;
mod gather;
mod layout;
mod manifest;
mod metadata;
mod set;
#[cfg(test)]
mod tests;
mod tiles;
mod verify;

pub(crate) use chunk::transpose;
pub use error::{Difference, Result, StoreError};
pub use layout::{StoreColumns, StoreLayout, TilePlace};
pub use manifest::Manifest;
pub use set::Tiles;
pub use verify::{Damage, Report};

use error::io_error;
use std::path::{Path, PathBuf};

/// An open store. Threads may share it, and processes may open the same one.
///
/// ```
/// use mercer_data::DType;
/// use mercer_kernel::store::{StoreColumns, StoreLayout, Manifest, Store};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("gram.zarr");
/// let columns = StoreColumns::Samples { count: 3, symmetric: true };
/// let layout =
///     StoreLayout { arrays: vec!["kernel".into()], rows: 3, columns, per_sample: 1, tile: 2, precision: DType::F64 };
/// let manifest = Manifest::new(layout).fact("kernel", "products of row and column, counted from 1");
///
/// let store = Store::create(&path, manifest.clone())?;
/// store.write(1, &[&[3.0, 6.0]])?;
/// assert_eq!(store.missing()?.runs(), [0..1, 2..3]);
///
/// let store = Store::resume(&path, &manifest)?;
/// for tile in store.missing()?.iter() {
///     let place = store.tile(tile)?;
///     let product = |row: usize, column: usize| ((row + 1) * (column + 1)) as f64;
///     let entries = place.rows.flat_map(|row| place.columns.clone().map(move |column| product(row, column)));
///     store.write(tile, &[&entries.collect::<Vec<_>>()])?;
/// }
/// assert_eq!(store.read_all::<f64>("kernel")?, ndarray::array![[1., 2., 3.], [2., 4., 6.], [3., 6., 9.]].into_dyn());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    manifest: Manifest,
    /// The folders of the arrays, in their order.
    folders: Vec<PathBuf>,
    /// Whether checksums are bound to their places, in all arrays.
    places: bool,
}

impl Store {
    /// Creates an empty store, which appears under its name when it is complete. An existing path is rejected, also if
    /// another process has just created it; in that case [`resume`](Self::resume) it.
    pub fn create(path: &Path, manifest: Manifest) -> Result<Self> {
        manifest.layout.check()?;
        let exists = || StoreError::Exists { place: path.display().to_string() };
        if path.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let parent = parent_of(path);
        let temporary = files::temporary(0o777).tempdir_in(parent).map_err(io_error(path))?;
        for (name, folder) in manifest.layout.arrays.iter().zip(manifest.layout.folders()) {
            let folder = temporary.path().join(folder);
            std::fs::create_dir(&folder).map_err(io_error(path))?;
            files::make_places(&folder)?;
            write_json(&folder, &metadata::array(&manifest.layout, name))?;
        }
        write_json(temporary.path(), &metadata::group(&manifest))?;
        // Fails if another store took the name meanwhile: a folder replaces only an empty one.
        std::fs::rename(temporary.path(), path).map_err(|error| match path.symlink_metadata() {
            Ok(_) => exists(),
            Err(_) => io_error(path)(error),
        })?;
        let _ = temporary.keep();
        files::sync_folder(parent)?;
        Ok(Self { places: true, ..Self::with(path, manifest) })
    }

    /// Opens a store for reading.
    pub fn open(path: &Path) -> Result<Self> {
        let mut store = Self::with(path, metadata::read(path)?);
        store.places = true;
        for folder in &store.folders {
            files::is_folder(folder)?;
            store.places &= files::keeps_places(folder)?;
        }
        Ok(store)
    }

    /// Opens a store to resume it, if it was made from the same inputs; otherwise the error says what differs. Files
    /// left by killed processes are removed.
    pub fn resume(path: &Path, manifest: &Manifest) -> Result<Self> {
        let store = Self::open(path)?;
        let differences = store.manifest.differences(manifest);
        if !differences.is_empty() {
            return Err(StoreError::OtherInputs { place: store.place(), differences });
        }
        store.folders.iter().for_each(|folder| files::remove_stale(folder));
        Ok(store)
    }

    /// Removes the store with all its files. If its folder, or that of an array, contains anything else, the error
    /// names it and nothing is removed.
    pub fn remove(self) -> Result<()> {
        let arrays = self.manifest.layout.folders();
        files::only_ours(&self.path, |name| name == metadata::FILE || arrays.iter().any(|array| array == name))?;
        for folder in &self.folders {
            files::only_ours(folder, |name| name == metadata::FILE || name == "c")?;
        }
        // At once, so that processes that still write into it find nothing to write into.
        let aside = files::temporary(0o777).tempdir_in(parent_of(&self.path)).map_err(io_error(&self.path))?;
        std::fs::rename(&self.path, aside.path().join("store")).map_err(io_error(&self.path))?;
        aside.close().map_err(io_error(&self.path))
    }

    fn with(path: &Path, manifest: Manifest) -> Self {
        let folders = manifest.layout.folders().into_iter().map(|folder| path.join(folder)).collect();
        Self { path: path.to_owned(), manifest, folders, places: false }
    }

    /// The folder of the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its contents and inputs.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The layout of its arrays.
    pub fn layout(&self) -> &StoreLayout {
        &self.manifest.layout
    }

    /// Whether swapped tiles are detected; not in stores of earlier versions.
    pub fn checks_places(&self) -> bool {
        self.places
    }

    /// The path, as errors show it.
    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// The folder that a path is in.
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the `zarr.json` of a folder that is not visible yet.
fn write_json(folder: &Path, value: &serde_json::Value) -> Result<()> {
    let path = folder.join(metadata::FILE);
    let text = format!("{value:#}\n");
    Ok(mercer_data::write_atomic(&path, mercer_data::Existing::Refuse, |writer| writer.write_all(text.as_bytes()))?)
}
