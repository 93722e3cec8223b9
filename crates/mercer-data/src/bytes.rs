//! The bytes of an array: mapped from a file, or held in memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

use crate::error::{DataError, Result, io_error};
use crate::files::open_regular;

/// Decompressed data beyond this size go to an anonymous temporary file instead of memory.
const SPOOL_IN_MEMORY: usize = 64 << 20;

/// Pages of smaller maps are not worth giving back.
#[cfg(unix)]
const RELEASED: usize = 64 << 20;

/// One byte of deflated data never expands to more than this many (the format's limit is 1032).
const DEFLATE_RATIO: u64 = 1032;

/// Read-only bytes that may be far larger than memory.
pub(crate) enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
    /// Memory of the calling program.
    Shared(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.len())
    }
}

impl Bytes {
    /// Maps `length` bytes of a file, starting at `offset`; the caller has checked that they exist.
    pub(crate) fn map(place: &str, file: &File, offset: u64, length: usize) -> Result<Self> {
        if length == 0 {
            return Ok(Self::Owned(Vec::new()));
        }
        // SAFETY: the map is read-only and private to us. As with every mapped file, another process that truncates the
        // file while we read it causes a bus error; no invalid memory is ever read.
        let map = unsafe { MmapOptions::new().offset(offset).len(length).map(file) };
        map.map(Self::Mapped).map_err(io_error(place))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
            Self::Shared(bytes) => (**bytes).as_ref(),
        }
    }

    /// Gives back the pages of a large mapped file. They are read from the file again when they are needed.
    pub(crate) fn release(&self) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self
            && map.len() >= RELEASED
        {
            // SAFETY: the map is read-only and of a file, so dropped pages come back with the same content. Failure is harmless.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }
}

/// Collects an unknown number of bytes: in memory at first, in an anonymous temporary file once there are many.
#[derive(Default)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    length: usize,
}

impl Spool {
    pub(crate) fn finish(mut self, place: &str) -> Result<Bytes> {
        if self.file.is_none() {
            return Ok(Bytes::Owned(self.memory));
        }
        self.flush_memory().map_err(io_error(place))?;
        match self.file {
            Some(file) => Bytes::map(place, &file, 0, self.length),
            None => Ok(Bytes::Owned(Vec::new())),
        }
    }

    fn flush_memory(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(&self.memory)?;
        self.memory.clear();
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.memory.extend_from_slice(buffer);
        self.length += buffer.len();
        if self.memory.len() > SPOOL_IN_MEMORY {
            self.flush_memory()?;
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads exactly `length` bytes of a decompressed stream, and checks that it ends there.
///
/// `compressed` is the size of the compressed stream. A length to which it cannot possibly expand is refused before
/// anything is read, and reading stops at `length`. So neither a forged header nor a decompression bomb costs memory.
pub(crate) fn inflate(place: &str, reader: &mut impl Read, length: usize, compressed: u64) -> Result<Bytes> {
    let declared = length as u64;
    let possible = compressed.saturating_mul(DEFLATE_RATIO);
    if declared > possible {
        return Err(DataError::Size { place: place.to_owned(), declared, found: possible, at_most: true });
    }
    let mut spool = Spool::default();
    let found = io::copy(&mut reader.take(declared), &mut spool).map_err(io_error(place))?;
    // Reading to the very end also makes the decompressor verify its checksum.
    let beyond = io::copy(&mut reader.take(1), &mut io::sink()).map_err(io_error(place))?;
    if found + beyond != declared {
        return Err(DataError::Size { place: place.to_owned(), declared, found: found + beyond, at_most: false });
    }
    spool.finish(place)
}

/// Opens a regular file for reading and returns its length. Folders are refused here, for all formats.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let place = &path.display();
    open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => {
            DataError::UnknownFormat { place: place.to_string(), reason: "this is a folder" }
        }
        _ => io_error(place)(error),
    })
}
