//! The list of the matrices of a kernel's layers, stored beside their files.

use crate::error::{KernelError, Result};
use mercer_data::{Existing, read_regular, write_atomic};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The list of the matrices of a kernel's layers, beside their files: `layers.json` for `layers.npy` or `layers.zarr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    format: String,
    /// The names of the layers.
    pub matrices: Vec<String>,
    /// Their files, or folders of a store.
    pub files: Vec<PathBuf>,
    /// Other findings of the run that made them.
    #[serde(flatten)]
    pub about: serde_json::Map<String, serde_json::Value>,
}

/// The kind field of a listing.
const FORMAT: &str = "mercer kernel listing";

/// Longer files are not read.
const LONGEST: u64 = 16 << 20;

impl Listing {
    /// A list of matrices and their files.
    pub fn new(matrices: Vec<String>, files: Vec<PathBuf>) -> Self {
        Self { format: FORMAT.to_owned(), matrices, files, about: serde_json::Map::new() }
    }

    /// The path of a result's list.
    pub fn path(result: &Path) -> PathBuf {
        result.with_extension("json")
    }

    /// Reads a list; an error if the file is something else.
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |why: String| KernelError::Setting(format!("{}: {why}", path.display()));
        let bytes = read_regular(path, LONGEST).map_err(|error| wrong(error.to_string()))?;
        let listing: Option<Self> = serde_json::from_slice(&bytes).ok();
        listing
            .filter(|listing| listing.format == FORMAT && listing.matrices.len() == listing.files.len())
            .ok_or_else(|| wrong("this is no list of matrices that `mercer kernel --by-layer` wrote".to_owned()))
    }

    /// Rejects a path that holds anything but a list.
    pub fn check_place(path: &Path) -> Result<()> {
        if path.symlink_metadata().is_ok() { Self::read(path).map(|_| ()) } else { Ok(()) }
    }

    /// Writes the list. An existing file is replaced only if that is allowed and it is a list.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<()> {
        if existing == Existing::Replace {
            Self::check_place(path)?;
        }
        let text = serde_json::to_string_pretty(self).map_err(|error| KernelError::Setting(error.to_string()))?;
        Ok(write_atomic(path, existing, |writer| writer.write_all(text.as_bytes()))?)
    }

    /// The store whose arrays it lists, if it is one.
    pub(super) fn store(&self, path: &Path) -> Option<PathBuf> {
        let folder = self.files.first()?.parent()?;
        let is_store = folder.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zarr"));
        folder.file_name().filter(|_| is_store).map(|name| path.with_file_name(name))
    }

    /// The files, which are beside the list, whichever folder it was written from.
    pub(super) fn files(&self, path: &Path) -> Vec<PathBuf> {
        self.files.iter().filter_map(|file| file.file_name()).map(|name| path.with_file_name(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a list is replaced by a list.
    #[test]
    fn what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("layers.json");
        let listing = Listing::new(Vec::new(), Vec::new());
        for text in ["{\"loss\": [1.0], \"format\": \"mercer training\"}", "{}", "", "[1, 2]"] {
            std::fs::write(&path, text).unwrap();
            let error = listing.write(&path, Existing::Replace).unwrap_err();
            assert!(error.to_string().contains("layers.json"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(&path).unwrap();
        listing.write(&path, Existing::Refuse).unwrap();
        assert!(listing.write(&path, Existing::Refuse).is_err());
        listing.write(&path, Existing::Replace).unwrap();
    }
}
