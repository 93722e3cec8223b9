//! NumPy's `.npz`: a zip archive of `.npy` files, stored or deflated.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::CompressionMethod;
use zip::ZipArchive;
use zip::result::ZipError;

use super::npy;
use crate::bytes;
use crate::error::{Error, Result};
use crate::stored::{Layout, Stored};

/// An open archive.
pub(crate) struct Archive {
    place: String,
    zip: ZipArchive<BufReader<File>>,
    length: u64,
}

impl Archive {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, length) = bytes::open(path)?;
        let place = path.display().to_string();
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| zip_error(&place, error))?;
        Ok(Self { place, zip, length })
    }

    /// Only entries called `*.npy` are arrays; whatever else is in the archive is left alone.
    fn entries(&self) -> Vec<(usize, String)> {
        let names = self.zip.file_names().enumerate();
        names.filter_map(|(index, name)| Some((index, name.ok()?.strip_suffix(".npy")?.to_owned()))).collect()
    }

    /// What the header of each array says.
    pub(crate) fn layouts(&mut self) -> Vec<(String, Result<Layout>)> {
        let entries = self.entries();
        let layout = |(index, key): (usize, String)| {
            let place = format!("{}:{key}", self.place);
            let layout = match self.zip.by_index(index) {
                Ok(mut entry) => npy::read_header(&place, &mut entry),
                Err(error) => Err(zip_error(&place, error)),
            };
            (key, layout)
        };
        entries.into_iter().map(layout).collect()
    }

    /// Opens the array of that name, or the only one there is.
    pub(crate) fn array(mut self, key: Option<&str>) -> Result<Stored> {
        let entries = self.entries();
        let available = || entries.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>();
        let (index, name) = match key {
            Some(key) => {
                let wanted = |name: &str| name == key || key.strip_suffix(".npy") == Some(name);
                let found = entries.iter().find(|(_, name)| wanted(name));
                let missing =
                    || Error::MissingKey { place: self.place.clone(), key: key.to_owned(), available: available() };
                found.ok_or_else(missing)?
            }
            None if entries.len() == 1 => &entries[0],
            None if entries.is_empty() => {
                let reason = "it is a zip archive without any .npy array".to_owned();
                return Err(Error::Malformed { place: self.place, format: "npz", reason });
            }
            None => return Err(Error::KeyNeeded { available: available(), place: self.place }),
        };
        let place = format!("{}:{name}", self.place);
        let mut entry = self.zip.by_index(*index).map_err(|error| zip_error(&place, error))?;
        let (size, compressed) = (entry.size(), entry.compressed_size());
        if entry.compression() != CompressionMethod::Stored {
            return npy::inflate(&place, &mut entry, compressed.min(self.length));
        }
        // What is stored plainly is mapped where it lies.
        let start = entry.data_start().unwrap_or(u64::MAX);
        drop(entry);
        if start.checked_add(size).is_none_or(|end| end > self.length) {
            let found = self.length.saturating_sub(start);
            return Err(Error::Size { place, declared: size, found, at_most: false });
        }
        npy::map(&place, self.zip.into_inner().get_ref(), start, size)
    }
}

fn zip_error(place: &str, error: ZipError) -> Error {
    let place = place.to_owned();
    match error {
        ZipError::Io(source) => Error::Io { place, source },
        other => Error::Malformed { place, format: "npz", reason: other.to_string() },
    }
}
