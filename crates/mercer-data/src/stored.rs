//! A stored array: type, shape, order and bytes. Every format produces one.

use std::borrow::Cow;
use std::ops::Range;

use crate::bytes::Bytes;
use crate::element::{ByteOrder, DType, DataScalar, Inexact, decode};
use crate::error::{DataError, Result};

/// The header of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    pub(crate) order: ByteOrder,
    pub(crate) shape: Vec<usize>,
    /// Whether the first index varies fastest, instead of the last.
    pub(crate) fortran: bool,
}

impl Layout {
    /// The bytes that the array needs, if its shape can be addressed.
    pub(crate) fn n_bytes(&self, place: &str) -> Result<usize> {
        let n_elements = checked_count(place, &self.shape)?;
        n_elements
            .checked_mul(self.dtype.size())
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| DataError::TooLarge { place: place.to_owned(), shape: self.shape.clone() })
    }
}

/// The number of elements of a shape. Other axes count even if one has length 0: `ndarray` requires that the product of
/// the nonzero lengths can be addressed, and so do we.
pub(crate) fn checked_count(place: &str, shape: &[usize]) -> Result<usize> {
    let mut nonzero = shape.iter().filter(|&&length| length != 0);
    let product = nonzero.try_fold(1_usize, |product, &length| product.checked_mul(length));
    match product.filter(|&product| isize::try_from(product).is_ok()) {
        None => Err(DataError::TooLarge { place: place.to_owned(), shape: shape.to_vec() }),
        Some(_) if shape.contains(&0) => Ok(0),
        Some(product) => Ok(product),
    }
}

/// The index within an array of this shape of its `index`-th element in row-major order.
pub(crate) fn unravel(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut position: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&length| {
            let length = length.max(1);
            let digit = index % length;
            index /= length;
            digit
        })
        .collect();
    position.reverse();
    position
}

#[derive(Debug)]
pub(crate) struct Stored {
    layout: Layout,
    bytes: Bytes,
}

impl Stored {
    /// Combines header and bytes after checking that their sizes agree. A single number is one sample.
    pub(crate) fn new(place: &str, mut layout: Layout, bytes: Bytes) -> Result<Self> {
        if layout.shape.is_empty() {
            layout.shape.push(1);
        }
        let declared = layout.n_bytes(place)?;
        if declared != bytes.len() {
            let (declared, found) = (declared as u64, bytes.len() as u64);
            return Err(DataError::Size { place: place.to_owned(), declared, found, at_most: false });
        }
        Ok(Self { layout, bytes })
    }

    pub(crate) fn dtype(&self) -> DType {
        self.layout.dtype
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// Gives back the pages of a large mapped file.
    pub(crate) fn release(&self) {
        self.bytes.release();
    }

    pub(crate) fn n_samples(&self) -> usize {
        self.layout.shape[0]
    }

    pub(crate) fn sample_shape(&self) -> &[usize] {
        &self.layout.shape[1..]
    }

    /// The elements of one sample.
    pub(crate) fn sample_len(&self) -> usize {
        self.sample_shape().iter().product()
    }

    /// Appends rows to `out`; they must exist. Numbers are converted by [`decode`] and not checked.
    pub(crate) fn read<T: DataScalar>(&self, rows: Range<usize>, out: &mut Vec<T>) -> Result<(), Inexact> {
        let Layout { dtype, order, fortran, .. } = self.layout;
        if !fortran {
            let row = self.sample_len() * dtype.size();
            return decode(dtype, order, &self.bytes.as_slice()[rows.start * row..rows.end * row], out);
        }
        rows.into_iter().try_for_each(|row| decode(dtype, order, &self.gathered(row), out))
    }

    /// The bytes of rows as in our `.npy` files: row-major, little-endian.
    pub(crate) fn plain(&self, rows: Range<usize>) -> Cow<'_, [u8]> {
        let Layout { dtype, order, fortran, .. } = self.layout;
        let row = self.sample_len() * dtype.size();
        let mut bytes = match fortran {
            false => Cow::Borrowed(&self.bytes.as_slice()[rows.start * row..rows.end * row]),
            true => Cow::Owned(rows.flat_map(|row| self.gathered(row)).collect()),
        };
        if order == ByteOrder::Big && dtype.size() > 1 {
            bytes.to_mut().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
        bytes
    }

    /// One sample of a column-major array, brought into row-major order.
    fn gathered(&self, row: usize) -> Vec<u8> {
        let size = self.layout.dtype.size();
        let bytes = self.bytes.as_slice();
        let (n_samples, shape) = (self.n_samples(), self.sample_shape());
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = n_samples;
        for &length in shape {
            strides.push(stride);
            stride *= length;
        }
        let mut gathered = Vec::with_capacity(self.sample_len() * size);
        for index in 0..self.sample_len() {
            let position = unravel(index, shape);
            let element = row + position.iter().zip(&strides).map(|(digit, stride)| digit * stride).sum::<usize>();
            gathered.extend_from_slice(&bytes[element * size..(element + 1) * size]);
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_counted_with_care() {
        assert_eq!(checked_count("a", &[3, 4]).unwrap(), 12);
        assert_eq!(checked_count("a", &[3, 0]).unwrap(), 0);
        assert!(checked_count("a", &[usize::MAX, 2]).is_err());
        assert!(checked_count("a", &[0, usize::MAX, 2]).is_err());
    }

    #[test]
    fn unravelling_is_row_major() {
        assert_eq!(unravel(7, &[2, 3, 2]), [1, 0, 1]);
        assert_eq!(unravel(0, &[]), [] as [usize; 0]);
    }
}
