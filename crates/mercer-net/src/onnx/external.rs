//! Tensors with external data, in a file next to the model.
//!
//! The file must be a regular file inside the model's folder, and must hold exactly the bytes that the tensor's shape
//! needs. Both are checked before a byte is read.

use super::tensor::Surroundings;
use super::wire::malformed;
use crate::error::{NetError, Result};
use crate::graph::shortened;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// Bytes of a file that were located but not read yet.
#[derive(Debug)]
pub(super) struct Found {
    file: File,
    path: PathBuf,
    offset: u64,
    length: usize,
}

/// Finds the `wanted` bytes of a tensor.
pub(super) fn find(
    entries: &[(String, String)],
    around: &mut Surroundings<'_>,
    name: &str,
    wanted: usize,
) -> Result<Found> {
    let whose = |reason: String| malformed(format!("tensor {:?}: {reason}", shortened(name)));
    let get = |key: &str| entries.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str());
    let location = get("location").unwrap_or_default();
    let outside = || whose(format!("external data at {location:?}, outside the model's folder"));
    let relative = Path::new(location);
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || relative.file_name().is_none() {
        return Err(outside());
    }
    let Some(folder) = around.folder else {
        return Err(whose(format!("its data are in {location:?}; open the model from its file")));
    };
    let path = folder.join(relative);
    let io = |source| NetError::Io { path: path.clone(), source };
    let number = |key: &str| match get(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| whose(format!("{key} {text:?}"))),
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    // A symbolic link could lead elsewhere.
    let (real, home) = (path.canonicalize().map_err(io)?, folder.canonicalize().map_err(io)?);
    if !real.starts_with(&home) {
        return Err(outside());
    }
    let (file, size) = mercer_data::open_regular(&real).map_err(io)?;
    let there = length.unwrap_or(size.saturating_sub(offset));
    if offset.checked_add(there).is_none_or(|end| end > size) {
        return Err(whose(format!("{location:?} has {size} bytes, too few for {offset} + {there}")));
    }
    if there != wanted as u64 {
        return Err(whose(format!("its shape needs {wanted} bytes, but {location:?} holds {there} for it")));
    }
    if around.outside.insert(real.clone()) {
        around.budget.found(on_disk(&file, size));
    }
    Ok(Found { file, path: real, offset, length: wanted })
}

/// The bytes that a file occupies on disk: a sparse file can be long and almost empty.
fn on_disk(file: &File, size: u64) -> usize {
    #[cfg(unix)]
    let size = {
        use std::os::unix::fs::MetadataExt;
        const BLOCK: u64 = 512;
        file.metadata().map_or(0, |found| size.min(found.blocks().saturating_mul(BLOCK)))
    };
    #[cfg(not(unix))]
    let _ = file;
    usize::try_from(size).unwrap_or(usize::MAX)
}

impl Found {
    /// Reads them.
    pub(super) fn read(mut self) -> Result<Vec<u8>> {
        let io = |source| NetError::Io { path: self.path.clone(), source };
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.length).map_err(|_| crate::run::out_of_memory::<u8>(self.length))?;
        self.file.seek(SeekFrom::Start(self.offset)).map_err(io)?;
        (&mut self.file).take(self.length as u64).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() != self.length {
            return Err(io(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)));
        }
        Ok(bytes)
    }
}
