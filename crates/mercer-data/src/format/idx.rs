//! IDX, the format of MNIST: two zero bytes, a type, the number of axes, their lengths as big-endian `u32`, the data.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::bytes::{self, Bytes};
use crate::element::{ByteOrder, DType};
use crate::error::{DataError, Result, io_error};
use crate::stored::{Layout, Stored};

/// Whether a file that begins like this is an IDX file.
pub(crate) fn is_idx(start: &[u8]) -> bool {
    matches!(start, [0, 0, code, n_axes, ..] if dtype(*code).is_some() && *n_axes > 0)
}

/// Opens and maps a file.
pub(crate) fn open(path: &Path) -> Result<Stored> {
    let (mut file, length) = bytes::open(path)?;
    let place = path.display().to_string();
    let (layout, header) = read_header(&place, &mut file)?;
    let declared = layout.n_bytes(&place)?;
    let found = length.saturating_sub(header);
    if declared as u64 != found {
        return Err(DataError::Size { place, declared: declared as u64, found, at_most: false });
    }
    let bytes = Bytes::map(&place, &file, header, declared)?;
    Stored::new(&place, layout, bytes)
}

/// Opens and decompresses a gzipped file.
pub(crate) fn open_gzipped(path: &Path) -> Result<Stored> {
    let (file, length) = bytes::open(path)?;
    inflate(&path.display().to_string(), &mut MultiGzDecoder::new(io::BufReader::new(file)), length)
}

/// Reads an IDX file from a decompressor whose input has `compressed` bytes.
pub(crate) fn inflate(place: &str, reader: &mut impl Read, compressed: u64) -> Result<Stored> {
    let (layout, _) = read_header(place, reader)?;
    let declared = layout.n_bytes(place)?;
    Stored::new(place, layout, bytes::inflate(place, reader, declared, compressed)?)
}

fn read_header(place: &str, reader: &mut impl Read) -> Result<(Layout, u64)> {
    let malformed = |reason| DataError::Malformed { place: place.to_owned(), format: "IDX", reason };
    let mut exact = |buffer: &mut [u8]| match reader.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(malformed("it ends within its header".to_owned()))
        }
        other => other.map_err(io_error(place)),
    };
    let mut magic = [0; 4];
    exact(&mut magic)?;
    let [0, 0, code, n_axes] = magic else {
        return Err(malformed("it does not begin with two zero bytes".to_owned()));
    };
    let dtype = dtype(code).ok_or_else(|| malformed(format!("its element type {code:#04x} is unknown")))?;
    let mut shape = Vec::with_capacity(n_axes.into());
    for _ in 0..n_axes {
        let mut length = [0; 4];
        exact(&mut length)?;
        shape.push(u32::from_be_bytes(length) as usize);
    }
    let header = 4 + 4 * u64::from(n_axes);
    Ok((Layout { dtype, order: ByteOrder::Big, shape, fortran: false }, header))
}

fn dtype(code: u8) -> Option<DType> {
    Some(match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_small_one() {
        let bytes = [0, 0, 0x0b, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 7, 0xff, 0xff];
        let stored = inflate("a", &mut bytes.as_slice(), 16).unwrap();
        let mut out: Vec<f32> = Vec::new();
        assert!(stored.read(0..2, &mut out).is_ok());
        assert_eq!((stored.shape(), out.as_slice()), ([2, 1].as_slice(), [7.0, -1.0].as_slice()));
    }

    #[test]
    fn a_forged_size_is_refused_before_reading() {
        let bytes = [0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff];
        let error = inflate("a", &mut bytes.as_slice(), 12).unwrap_err();
        assert!(matches!(error, DataError::Size { at_most: true, .. }), "{error}");
        let bytes = [[0, 0, 8, 9].as_slice(), &[0xff; 36]].concat();
        assert!(matches!(inflate("a", &mut bytes.as_slice(), 40), Err(DataError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(code in 7_u8..16, tail in prop::collection::vec(any::<u8>(), 0..60)) {
            let bytes = [[0, 0, code].as_slice(), &tail].concat();
            let _ = inflate("a", &mut bytes.as_slice(), bytes.len() as u64);
        }
    }
}
