//! Element types: stored in files, and used for computation.

use std::fmt;

use half::f16;
use mercer_linalg::Scalar;
use serde::{Deserialize, Serialize};

mod sealed {
    pub trait Sealed {}
}

/// The scalars that data are read into: `f32` and `f64`.
pub trait DataScalar: Scalar + Storable {
    /// The integer in this type, if it is representable exactly.
    fn from_integer(value: i128) -> Option<Self>;
}

macro_rules! element {
    ($type:ty) => {
        impl DataScalar for $type {
            fn from_integer(value: i128) -> Option<Self> {
                let converted = value as $type;
                (converted as i128 == value).then_some(converted)
            }
        }
    };
}

element!(f32);
element!(f64);

/// The element type of a stored array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl DType {
    /// The number of bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether the elements are whole numbers (or booleans).
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// The types that arrays can be written in.
pub trait Storable: Copy + sealed::Sealed {
    /// The type's name in a file.
    const DTYPE: DType;

    /// Appends the value's little-endian bytes.
    fn write_to(self, bytes: &mut Vec<u8>);
}

macro_rules! storable {
    ($($type:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}

        impl Storable for $type {
            const DTYPE: DType = DType::$dtype;

            fn write_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

storable!(u8 => U8, i32 => I32, i64 => I64, u32 => U32, u64 => U64, f32 => F32, f64 => F64);

/// The order of the bytes within a stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

/// An integer that the target type cannot represent, and its position in the output.
pub(crate) struct Inexact {
    pub(crate) index: usize,
    pub(crate) value: i128,
}

/// Appends the decoded elements to `out`. Integers are converted exactly or not at all; 64-bit floats are rounded to
/// the nearest 32-bit float if `f32` is requested.
pub(crate) fn decode<T: DataScalar>(
    dtype: DType,
    order: ByteOrder,
    bytes: &[u8],
    out: &mut Vec<T>,
) -> Result<(), Inexact> {
    macro_rules! all {
        ($type:ty, $convert:expr) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
            match order {
                ByteOrder::Little => out.extend(chunks.iter().map(|chunk| $convert(<$type>::from_le_bytes(*chunk)))),
                ByteOrder::Big => out.extend(chunks.iter().map(|chunk| $convert(<$type>::from_be_bytes(*chunk)))),
            }
        }};
    }
    // Only integers of 32 bits and more can fail.
    macro_rules! exact {
        ($type:ty) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
            for chunk in chunks {
                let value = match order {
                    ByteOrder::Little => <$type>::from_le_bytes(*chunk),
                    ByteOrder::Big => <$type>::from_be_bytes(*chunk),
                };
                match T::from_integer(i128::from(value)) {
                    Some(converted) => out.push(converted),
                    None => return Err(Inexact { index: out.len(), value: i128::from(value) }),
                }
            }
        }};
    }
    let small = |value: f32| T::narrow(f64::from(value));
    match dtype {
        DType::Bool => out.extend(bytes.iter().map(|&byte| if byte == 0 { T::zero() } else { T::one() })),
        DType::U8 => all!(u8, |value| small(f32::from(value))),
        DType::I8 => all!(i8, |value| small(f32::from(value))),
        DType::U16 => all!(u16, |value| small(f32::from(value))),
        DType::I16 => all!(i16, |value| small(f32::from(value))),
        DType::F16 => all!(f16, |value| small(f32::from(value))),
        DType::F32 => all!(f32, small),
        DType::F64 => all!(f64, T::narrow),
        DType::U32 => exact!(u32),
        DType::I32 => exact!(i32),
        DType::U64 => exact!(u64),
        DType::I64 => exact!(i64),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_or_refused() {
        assert_eq!(f32::from_integer(1 << 24), Some(16_777_216.0));
        assert_eq!(f32::from_integer((1 << 24) + 1), None);
        assert_eq!(f64::from_integer((1 << 53) + 1), None);
        assert_eq!(f64::from_integer(-(1 << 53)), Some(-9_007_199_254_740_992.0));
    }

    #[test]
    fn both_byte_orders() {
        let mut out: Vec<f64> = Vec::new();
        assert!(decode(DType::I16, ByteOrder::Big, &[1, 0, 255, 255], &mut out).is_ok());
        assert!(decode(DType::U32, ByteOrder::Little, &[1, 0, 0, 0], &mut out).is_ok());
        assert!(decode(DType::F16, ByteOrder::Little, &[0, 0x3c], &mut out).is_ok());
        assert_eq!(out, [256.0, -1.0, 1.0, 1.0]);
    }
}
