//! Detecting the format of a file and opening it. Each format has its own file in this folder.

pub(crate) mod idx;
pub(crate) mod npy;
pub(crate) mod npz;
mod records;
pub(crate) mod table;

use std::fmt;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use crate::bytes;
use crate::error::{DataError, Result, io_error};
use crate::source::Source;
use crate::stored::Stored;

/// The file formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// NumPy's single array.
    Npy,
    /// NumPy's archive of arrays.
    Npz,
    /// The format of MNIST.
    Idx,
    /// Text with one sample per line, and comma, semicolon, tab or blanks between the columns.
    Csv,
    /// Texts of a table as tokens.
    Text,
    /// A folder of image files.
    Images,
    /// Not a file, but an array in memory.
    Memory,
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Idx => "IDX",
            Self::Csv => "CSV",
            Self::Text => "text",
            Self::Images => "images",
            Self::Memory => "memory",
        })
    }
}

/// An array from a file, with information that only some formats have.
pub(crate) struct Opened {
    pub(crate) format: Format,
    pub(crate) stored: Stored,
    /// The names of the columns of a CSV file.
    pub(crate) columns: Vec<String>,
    /// Whether a header names them.
    pub(crate) named: bool,
    /// The names behind the codes of a column of text.
    pub(crate) class_names: Option<Vec<String>>,
    /// Whether all numbers are integers, although they may be stored as floats.
    pub(crate) is_integer: bool,
}

impl Opened {
    fn plain(format: Format, stored: Stored) -> Self {
        let is_integer = stored.dtype().is_integer();
        Self { format, stored, columns: Vec::new(), named: false, class_names: None, is_integer }
    }
}

/// Opens the array that a source names.
pub(crate) fn open(source: &Source) -> Result<Opened> {
    let (path, key) = (source.path(), source.key());
    let (format, gzipped) = detect(path)?;
    if let (Format::Npy | Format::Idx, Some(key)) = (format, key) {
        let format = if format == Format::Npy { "npy" } else { "IDX" };
        return Err(DataError::KeyNotUsed { place: path.display().to_string(), format, key: key.to_owned() });
    }
    match (format, gzipped) {
        (Format::Npy, false) => npy::open(path).map(|stored| Opened::plain(format, stored)),
        (Format::Npy, true) => {
            let (file, length) = bytes::open(path)?;
            let place = path.display().to_string();
            let stored = npy::inflate(&place, &mut MultiGzDecoder::new(BufReader::new(file)), length)?;
            Ok(Opened::plain(format, stored))
        }
        (Format::Npz, _) => npz::Archive::open(path)?.array(key).map(|stored| Opened::plain(format, stored)),
        (Format::Idx, false) => idx::open(path).map(|stored| Opened::plain(format, stored)),
        (Format::Idx, true) => idx::open_gzipped(path).map(|stored| Opened::plain(format, stored)),
        (Format::Csv | Format::Text | Format::Images | Format::Memory, _) => table::open(path, key, gzipped),
    }
}

/// The format of a file by its first bytes (extensions are unreliable), and whether it is gzipped.
pub(crate) fn detect(path: &Path) -> Result<(Format, bool)> {
    let place = path.display().to_string();
    let (file, _) = bytes::open(path)?;
    let start = beginning(file.take(START)).map_err(io_error(&place))?;
    let is_named_table = path.extension().is_some_and(|ending| ["csv", "tsv", "txt"].iter().any(|own| ending == *own));
    if is_named_table && (start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff])) {
        return Err(DataError::UnknownFormat { place, reason: "this is UTF-16 text: save it as UTF-8" });
    }
    // The reader of tables says which line is not UTF-8.
    if is_named_table && !start.is_empty() && !start.iter().any(is_control) {
        return Ok((Format::Csv, false));
    }
    if !start.starts_with(&[0x1f, 0x8b]) {
        return by_magic(place, &start).map(|format| (format, false));
    }
    let (file, _) = bytes::open(path)?;
    let inner = MultiGzDecoder::new(BufReader::new(file)).take(START);
    let start = beginning(inner).map_err(io_error(&place))?;
    match by_magic(place.clone(), &start)? {
        Format::Npz => {
            Err(DataError::UnknownFormat { place, reason: "this is a gzipped zip archive: gunzip it first" })
        }
        format => Ok((format, true)),
    }
}

const START: u64 = 4096;

fn beginning(mut reader: impl Read) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    reader.read_to_end(&mut start)?;
    Ok(start)
}

fn by_magic(place: String, start: &[u8]) -> Result<Format> {
    let reason = match start {
        [] => "the file is empty",
        _ if start.starts_with(npy::MAGIC) => return Ok(Format::Npy),
        _ if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") => return Ok(Format::Npz),
        _ if idx::is_idx(start) => return Ok(Format::Idx),
        _ if start.starts_with(b"\x89HDF") => "this is an HDF5 file",
        _ if start.starts_with(b"PAR1") => "this is a Parquet file",
        _ if start.starts_with(b"\x89PNG") || start.starts_with(b"\xff\xd8\xff") => {
            "this is a single image; name its folder"
        }
        [0x80, 2..=5, ..] => "this is a pickle, which can run any code when loaded and is refused",
        _ if looks_like_text(start) => return Ok(Format::Csv),
        _ => "the format is unknown",
    };
    Err(DataError::UnknownFormat { place, reason })
}

fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !byte.is_ascii_whitespace()
}

fn looks_like_text(start: &[u8]) -> bool {
    let valid = match str::from_utf8(start) {
        Ok(_) => true,
        // The last character may be cut off.
        Err(error) => error.error_len().is_none(),
    };
    valid && !start.iter().any(is_control)
}
