//! NumPy's `.npy`: a magic, a version, a Python dictionary as header, then the bytes of the array.
//!
//! The format is described in NumPy's NEP 1. The header is small and always has the same form, so it is parsed by hand.
//! The file is mapped, and a reader that owns the stream would be in the way.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::bytes::{self, Bytes};
use crate::element::{ByteOrder, DType};
use crate::error::{DataError, Result, io_error};
use crate::stored::{Layout, Stored};

pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The header of a plain array takes about a hundred bytes; NumPy itself refuses more than 10,000 by default.
const LONGEST_HEADER: usize = 64 << 10;

/// Opens and maps a file.
pub(crate) fn open(path: &Path) -> Result<Stored> {
    let (file, length) = bytes::open(path)?;
    let place = path.display().to_string();
    map(&place, &file, 0, length)
}

/// Maps the `.npy` file at `offset` within `file`.
pub(crate) fn map(place: &str, file: &File, offset: u64, length: u64) -> Result<Stored> {
    let mut reader = OffsetReader { file, offset, left: length };
    let layout = read_header(place, &mut reader)?;
    let declared = layout.n_bytes(place)?;
    let found = reader.left;
    if declared as u64 != found {
        return Err(DataError::Size { place: place.to_owned(), declared: declared as u64, found, at_most: false });
    }
    let start = reader.offset;
    Stored::new(place, layout, Bytes::map(place, file, start, declared)?)
}

/// Reads an `.npy` file from a decompressor whose input has `compressed` bytes.
pub(crate) fn inflate(place: &str, reader: &mut impl Read, compressed: u64) -> Result<Stored> {
    let layout = read_header(place, reader)?;
    let declared = layout.n_bytes(place)?;
    Stored::new(place, layout, bytes::inflate(place, reader, declared, compressed)?)
}

/// Reads up to the first byte of data.
pub(crate) fn read_header(place: &str, reader: &mut impl Read) -> Result<Layout> {
    let malformed =
        |reason: &str| DataError::Malformed { place: place.to_owned(), format: "npy", reason: reason.to_owned() };
    let mut exact = |buffer: &mut [u8]| match reader.read_exact(buffer) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(malformed("it ends within its header")),
        other => other.map_err(io_error(place)),
    };
    let mut start = [0; 8];
    exact(&mut start)?;
    if !start.starts_with(MAGIC) {
        return Err(malformed("it does not begin with NumPy's magic bytes"));
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            exact(&mut length)?;
            usize::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            exact(&mut length)?;
            u32::from_le_bytes(length) as usize
        }
        _ => return Err(malformed("its version is not 1, 2 or 3")),
    };
    if length > LONGEST_HEADER {
        return Err(malformed("its header is implausibly long"));
    }
    let mut header = vec![0; length];
    exact(&mut header)?;
    let text = str::from_utf8(&header).map_err(|_| malformed("its header is not text"))?;
    parse_header(place, text)
}

/// `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`
fn parse_header(place: &str, text: &str) -> Result<Layout> {
    let malformed = |reason: String| DataError::Malformed { place: place.to_owned(), format: "npy", reason };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    let mut rest =
        text.trim().strip_prefix('{').ok_or_else(|| malformed("its header is not a dictionary".to_owned()))?;
    loop {
        rest = rest.trim_start().trim_start_matches(',').trim_start();
        if rest.starts_with('}') {
            break;
        }
        let (key, after) =
            quoted(rest).ok_or_else(|| malformed(format!("its header has no key at `{}`", cut(rest))))?;
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let value = value.ok_or_else(|| malformed(format!("its header has no value for `{key}`")))?;
        let bad = || malformed(format!("its header has a bad value for `{key}`: `{}`", cut(value)));
        rest = match key {
            // A list of fields, as in `[('x', '<f4')]`, describes records.
            "descr" if value.starts_with('[') => return Err(element_type(place, "record")),
            "descr" => {
                let (text, after) = quoted(value).ok_or_else(bad)?;
                descr = Some(parse_descr(place, text)?);
                after
            }
            "fortran_order" => {
                let literal = if value.starts_with("True") { "True" } else { "False" };
                fortran = Some(literal == "True");
                value.strip_prefix(literal).ok_or_else(bad)?
            }
            "shape" => {
                let (inner, after) = value.strip_prefix('(').and_then(|v| v.split_once(')')).ok_or_else(bad)?;
                shape = Some(parse_shape(inner).ok_or_else(bad)?);
                after
            }
            _ => return Err(malformed(format!("its header has the unknown key `{key}`"))),
        };
    }
    let missing = |key: &str| malformed(format!("its header lacks `{key}`"));
    let (dtype, order) = descr.ok_or_else(|| missing("descr"))?;
    let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    Ok(Layout { dtype, order, shape, fortran })
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// Python 2 wrote long integers as `3L`.
fn parse_shape(inner: &str) -> Option<Vec<usize>> {
    let lengths = inner.split(',').map(str::trim).filter(|length| !length.is_empty());
    lengths.map(|length| length.strip_suffix('L').unwrap_or(length).parse().ok()).collect()
}

pub(crate) fn parse_descr(place: &str, descr: &str) -> Result<(DType, ByteOrder)> {
    let (order, kind) = match descr.as_bytes().first() {
        Some(b'>') => (ByteOrder::Big, &descr[1..]),
        Some(b'<' | b'|' | b'=') => (ByteOrder::Little, &descr[1..]),
        _ => (ByteOrder::Little, descr),
    };
    let dtype = match kind {
        "b1" | "?" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => return Err(element_type(place, descr)),
    };
    Ok((dtype, order))
}

/// How NumPy names a little-endian type.
pub(crate) fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::I16 => "<i2",
        DType::U32 => "<u4",
        DType::I32 => "<i4",
        DType::U64 => "<u8",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}

fn element_type(place: &str, descr: &str) -> DataError {
    let hint = match descr.trim_start_matches(['<', '>', '|', '=']).chars().next() {
        Some('O') => "object arrays are pickles, which can run any code and are refused; save numbers instead",
        Some('U' | 'S' | 'a') => "save class names as a column of a CSV file, or as integers",
        Some('c') => "save real and imaginary part as two arrays",
        _ => "save it with a real type such as float32",
    };
    DataError::ElementType { place: place.to_owned(), dtype: format!("`{}`", cut(descr)), hint }
}

/// The beginning of a text, short enough for a message.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Reads part of a file without moving its cursor, so that many entries can share one open file.
pub(super) struct OffsetReader<'a> {
    pub(super) file: &'a File,
    pub(super) offset: u64,
    pub(super) left: u64,
}

impl Read for OffsetReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        use std::io::Seek;
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.file.seek(std::io::SeekFrom::Start(self.offset))?;
        let read = self.file.read(&mut buffer[..wanted])?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers() {
        let layout = parse_header("a", "{'descr': '>i4', 'fortran_order': True, 'shape': (3, 4L,), }  \n").unwrap();
        assert_eq!(layout.shape, [3, 4]);
        assert_eq!((layout.dtype, layout.order, layout.fortran), (DType::I32, ByteOrder::Big, true));
        let scalar = parse_header("a", "{\"shape\": (), \"fortran_order\": False, \"descr\": '|u1'}").unwrap();
        assert!(scalar.shape.is_empty());
    }

    #[test]
    fn bad_headers_say_why() {
        for (header, why) in [
            ("", "dictionary"),
            ("{", "key"),
            ("{'descr': '<f8'}", "fortran_order"),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "pickle"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "record"),
            ("{'descr': '<c16', 'fortran_order': False, 'shape': (2,)}", "imaginary"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}", "shape"),
            ("{'descr': '<f8', 'fortran_order': Maybe, 'shape': (2,)}", "fortran_order"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", "shape"),
            ("{'descr': '<f8', 'evil': 1}", "evil"),
        ] {
            let error = parse_header("a.npy", header).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("a.npy"), "{header}: {error}");
        }
    }

    proptest! {
        #[test]
        fn random_headers_never_panic(text in "\\{?('descr'|'shape'|:|'<f8'|\\(|\\)|,|[0-9]| |\\PC){0,30}") {
            let _ = parse_header("a", &text);
        }

        #[test]
        fn random_bytes_never_panic(version in 0_u8..5, tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [MAGIC.as_slice(), &[version, 0], &tail].concat();
            let _ = inflate("a", &mut bytes.as_slice(), bytes.len() as u64);
        }
    }
}
