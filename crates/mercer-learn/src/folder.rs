//! Folders that hold a machine: one JSON file that says what it is, and its arrays as `.npy` files beside it.
//!
//! The JSON file is taken away before anything is replaced and written last, so a folder that was interrupted holds no machine.
//! It lists the arrays, so that a machine which is replaced by a smaller one leaves none of them behind.
//! Nothing in a folder is believed: versions, shapes and numbers are checked when it is read.

use crate::error::{LearnError, Result};
use mercer_data::{Existing, Source, write_atomic, write_npy};
use ndarray::{Array1, Array2, ArrayBase, Data, Dimension, Ix1, Ix2};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The largest JSON file that is read.
const MOST_BYTES: u64 = 64 << 20;

/// The part of the JSON file that is the same for every kind of folder.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    /// The names of the arrays, without `.npy`.
    #[serde(default)]
    arrays: Vec<String>,
    content: Value,
}

/// A folder that is being written.
#[derive(Debug)]
pub struct FolderWriter {
    folder: PathBuf,
    name: &'static str,
    existing: Existing,
    arrays: RefCell<Vec<String>>,
}

impl FolderWriter {
    /// Begins a folder whose JSON file has this name, such as `machine.json`.
    pub fn create(folder: &Path, name: &'static str, existing: Existing) -> Result<Self> {
        let io = |source| mercer_data::Error::Io { place: folder.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() {
            if existing == Existing::Refuse {
                return Err(mercer_data::Error::Exists { place: path.display().to_string() }.into());
            }
            // Only what is known to be such a file is replaced.
            let Some(arrays) = arrays_of(&path) else {
                return Err(mercer_data::Error::Foreign { place: path.display().to_string() }.into());
            };
            std::fs::remove_file(&path).map_err(io)?;
            for array in arrays {
                match std::fs::remove_file(folder.join(format!("{array}.npy"))) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error).into()),
                    _ => {}
                }
            }
        }
        Ok(Self { folder: folder.to_owned(), name, existing, arrays: RefCell::default() })
    }

    /// Writes an array as `name.npy`.
    pub fn array<S: Data<Elem = f64>, D: Dimension>(&self, name: &str, array: &ArrayBase<S, D>) -> Result<()> {
        write_npy(&self.folder.join(format!("{name}.npy")), array, self.existing)?;
        self.arrays.borrow_mut().push(name.to_owned());
        Ok(())
    }

    /// Writes the JSON file, which completes the folder.
    pub fn finish(self, format: &str, version: u32, content: Value) -> Result<()> {
        let header = Header { format: format.to_owned(), version, arrays: self.arrays.take(), content };
        let path = self.folder.join(self.name);
        Ok(write_atomic(&path, self.existing, |writer| {
            serde_json::to_writer_pretty(&mut *writer, &header)?;
            writer.write_all(b"\n")
        })?)
    }
}

/// Takes away the JSON file of a folder, which then holds no machine.
///
/// # Errors
/// [`Foreign`](mercer_data::Error::Foreign) if it is none of ours.
pub fn forget(folder: &Path, name: &str) -> Result<()> {
    let path = folder.join(name);
    let place = path.display().to_string();
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    if arrays_of(&path).is_none() {
        return Err(mercer_data::Error::Foreign { place }.into());
    }
    Ok(std::fs::remove_file(&path).map_err(|source| mercer_data::Error::Io { place, source })?)
}

/// The arrays of a machine that is being replaced; nothing if the file is none of ours. Names that could lead elsewhere are left alone.
fn arrays_of(path: &Path) -> Option<Vec<String>> {
    let header = mercer_data::read_regular(path, MOST_BYTES).ok();
    let header: Option<Header> = header.and_then(|text| serde_json::from_slice(&text).ok());
    let plain = |name: &String| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    Some(header?.arrays.into_iter().filter(plain).collect())
}

/// A folder that is being read.
#[derive(Debug)]
pub struct FolderReader {
    folder: PathBuf,
    place: String,
    content: Value,
}

impl FolderReader {
    /// Opens a folder of this format, up to this version.
    pub fn open(folder: &Path, name: &str, format: &str, version: u32) -> Result<Self> {
        let path = folder.join(name);
        let place = path.display().to_string();
        let io = |source| mercer_data::Error::Io { place: place.clone(), source };
        let malformed = |reason: String| LearnError::Malformed { place: place.clone(), reason };
        let text = mercer_data::read_regular(&path, MOST_BYTES).map_err(io)?;
        let header: Header =
            serde_json::from_slice(&text).map_err(|error| malformed(format!("not a saved machine: {error}")))?;
        if header.format != format {
            return Err(malformed(format!("this is a {}, not a {format}", header.format)));
        }
        if header.version == 0 || header.version > version {
            let reason = format!("its version is {}, but this program reads up to {version}", header.version);
            return Err(malformed(reason));
        }
        Ok(Self { folder: folder.to_owned(), place, content: header.content })
    }

    /// What the JSON file says.
    pub fn content<C: serde::de::DeserializeOwned>(&self) -> Result<C> {
        serde_json::from_value(self.content.clone()).map_err(|error| self.malformed(error))
    }

    /// An error about the JSON file.
    pub fn malformed(&self, reason: impl ToString) -> LearnError {
        LearnError::Malformed { place: self.place.clone(), reason: reason.to_string() }
    }

    /// Reads a matrix; sizes that are known must fit.
    pub fn matrix(&self, name: &str, rows: Option<usize>, columns: Option<usize>) -> Result<Array2<f64>> {
        let (place, array) = self.read(name)?;
        let shape = format!("{:?}", array.shape());
        let matrix = array.into_dimensionality::<Ix2>();
        let fits = |matrix: &Array2<f64>| {
            rows.is_none_or(|rows| rows == matrix.nrows()) && columns.is_none_or(|columns| columns == matrix.ncols())
        };
        let wrong = || LearnError::Malformed { place, reason: format!("the shape {shape} does not fit the machine") };
        matrix.ok().filter(fits).ok_or_else(wrong)
    }

    /// Reads a vector; its length, if known, must fit.
    pub fn vector(&self, name: &str, length: Option<usize>) -> Result<Array1<f64>> {
        let (place, array) = self.read(name)?;
        let shape = format!("{:?}", array.shape());
        let vector = array.into_dimensionality::<Ix1>().ok();
        let wrong = || LearnError::Malformed { place, reason: format!("the shape {shape} does not fit the machine") };
        vector.filter(|vector| length.is_none_or(|length| length == vector.len())).ok_or_else(wrong)
    }

    fn read(&self, name: &str) -> Result<(String, ndarray::ArrayD<f64>)> {
        let path = self.folder.join(format!("{name}.npy"));
        // Reading checks that every number is finite.
        Ok((path.display().to_string(), Source::new(path, None).open()?.read()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the same name that is no machine stays, and so do the arrays that it lists.
    #[test]
    fn only_machines_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("mine.npy"), b"a user's").unwrap();
        for text in ["not JSON", r#"{ "arrays": ["mine"] }"#, r#"["mine"]"#] {
            std::fs::write(path("machine.json"), text).unwrap();
            let error = FolderWriter::create(folder.path(), "machine.json", Existing::Replace).unwrap_err();
            assert!(error.to_string().contains("machine.json"), "{error}");
            assert!(forget(folder.path(), "machine.json").is_err());
            assert!(path("mine.npy").is_file() && path("machine.json").is_file());
        }
        std::fs::remove_file(path("machine.json")).unwrap();
        for size in [2, 1] {
            let writer = FolderWriter::create(folder.path(), "machine.json", Existing::Replace).unwrap();
            for at in 0..size {
                writer.array(&format!("part{at}"), &ndarray::array![1.0]).unwrap();
            }
            writer.finish("machine", 1, Value::Null).unwrap();
        }
        assert!(path("part0.npy").is_file() && !path("part1.npy").exists() && path("mine.npy").is_file());
        forget(folder.path(), "machine.json").unwrap();
        forget(folder.path(), "machine.json").unwrap();
        assert!(!path("machine.json").exists());
    }
}
