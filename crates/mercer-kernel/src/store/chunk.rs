//! A tile as bytes: the codecs `bytes` (little endian) and `crc32c`.

use mercer_data::{DType, DataScalar};

/// The length of a checksum in bytes.
pub(super) const CHECKSUM: usize = 4;

/// The side of the squares in a blocked transpose, so that both sides stay in the first-level cache.
const SQUARE: usize = 32;

/// The numbers of a tile of `shape`, padded with NaN to the shape of a whole chunk, and their checksum.
pub(super) fn encode<T: DataScalar>(tile: &[T], shape: (usize, usize), chunk: (usize, usize)) -> (Vec<u8>, u32) {
    let mut bytes = Vec::with_capacity(chunk.0 * chunk.1 * size_of::<T>());
    let pad = |bytes: &mut Vec<u8>, count: usize| (0..count).for_each(|_| T::nan().write_to(bytes));
    for row in tile.chunks_exact(shape.1.max(1)) {
        row.iter().for_each(|value| value.write_to(&mut bytes));
        pad(&mut bytes, chunk.1 - shape.1);
    }
    pad(&mut bytes, (chunk.0 - shape.0) * chunk.1);
    let checksum = crc32c::crc32c(&bytes);
    (bytes, checksum)
}

/// The numbers of a chunk and their checksum, or the reason why it is invalid.
pub(super) fn check(mut bytes: Vec<u8>) -> Result<(Vec<u8>, u32), String> {
    let Some((numbers, checksum)) = bytes.split_last_chunk::<CHECKSUM>() else {
        return Err("it is too short".to_owned());
    };
    let (stored, computed) = (u32::from_le_bytes(*checksum), crc32c::crc32c(numbers));
    if stored != computed {
        return Err(format!("the checksum is {computed:08x} instead of {stored:08x}"));
    }
    bytes.truncate(bytes.len() - CHECKSUM);
    Ok((bytes, stored))
}

/// The tile of `shape` in the numbers of a whole chunk. `T` must not be narrower than what is stored.
pub(super) fn decode<T: DataScalar>(
    bytes: &[u8],
    stored: DType,
    shape: (usize, usize),
    chunk: (usize, usize),
) -> Vec<T> {
    let mut tile = Vec::with_capacity(shape.0 * shape.1);
    for row in bytes.chunks_exact((chunk.1 * stored.size()).max(1)).take(shape.0) {
        let row = &row[..shape.1 * stored.size()];
        match stored {
            DType::F64 => tile.extend(row.as_chunks().0.iter().map(|&bytes| T::narrow(f64::from_le_bytes(bytes)))),
            _ => tile.extend(row.as_chunks().0.iter().map(|&bytes| T::narrow(f64::from(f32::from_le_bytes(bytes))))),
        }
    }
    tile
}

/// The transpose of a row-major matrix.
pub(crate) fn transpose<T: DataScalar>(values: &[T], (rows, columns): (usize, usize)) -> Vec<T> {
    let mut transposed = vec![T::zero(); values.len()];
    squares(rows, columns, |row, column| transposed[column * rows + row] = values[row * columns + column]);
    transposed
}

/// Whether two square chunks of the same size are mirror images, bit by bit.
pub(super) fn are_mirrored(left: &[u8], right: &[u8], stored: DType, side: usize) -> bool {
    fn compare<const SIZE: usize>(left: &[u8], right: &[u8], side: usize) -> bool {
        let (left, right) = (left.as_chunks::<SIZE>().0, right.as_chunks::<SIZE>().0);
        let mut same = true;
        squares(side, side, |row, column| same &= left[row * side + column] == right[column * side + row]);
        same
    }
    match stored {
        DType::F64 => compare::<8>(left, right, side),
        _ => compare::<4>(left, right, side),
    }
}

/// Visits all entries of a matrix, square by square.
#[inline(always)]
fn squares(rows: usize, columns: usize, mut visit: impl FnMut(usize, usize)) {
    for first_row in (0..rows).step_by(SQUARE) {
        for first_column in (0..columns).step_by(SQUARE) {
            for row in first_row..rows.min(first_row + SQUARE) {
                for column in first_column..columns.min(first_column + SQUARE) {
                    visit(row, column);
                }
            }
        }
    }
}
