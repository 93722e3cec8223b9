//! The protobuf wire format, read in place from untrusted bytes.
//!
//! A length is trusted only after it has been checked against the remaining bytes, so a file cannot cause an allocation
//! by a declaration alone. Callers limit nesting. (The `rten-onnx` crate allocates a declared length before reading it,
//! and skips model-local functions.)

use crate::error::{NetError, Result};

/// A field's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in the order of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

pub(crate) fn malformed(reason: impl Into<String>) -> NetError {
    NetError::Malformed { reason: reason.into() }
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or_else(|| malformed("the file ends inside a number"))?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed("a number is too long"))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            let (declared, there) = (count, self.rest.len());
            return Err(malformed(format!("a field declares {declared} bytes, but only {there} are left")));
        }
        let (head, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(head)
    }

    /// The next field: its number and payload.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Payload<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let payload = match key & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes"))),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| malformed("a field is too long"))?;
                Payload::Bytes(self.take(length)?)
            }
            5 => Payload::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes"))),
            kind => return Err(malformed(format!("wire type {kind} does not exist"))),
        };
        if key >> 3 == 0 {
            return Err(malformed("a field has number 0, which does not exist"));
        }
        Ok(Some((key >> 3, payload)))
    }
}

impl<'a> Payload<'a> {
    pub(crate) fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(malformed("found a number instead of a message")),
        }
    }

    pub(crate) fn text(self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(crate) fn integer(self) -> Result<i64> {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => Ok(value as i64),
            Self::Fixed32(value) => Ok(i64::from(value as i32)),
            Self::Bytes(_) => Err(malformed("found a message instead of a number")),
        }
    }

    pub(super) fn float(self) -> Result<f32> {
        match self {
            Self::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(malformed("a float is not four bytes long")),
        }
    }

    /// Appends a repeated integer, packed or not.
    pub(super) fn integers(self, to: &mut Vec<i64>) -> Result<()> {
        match self {
            Self::Bytes(bytes) => {
                let mut packed = Fields::new(bytes);
                while !packed.rest.is_empty() {
                    to.push(packed.varint()? as i64);
                }
            }
            single => to.push(single.integer()?),
        }
        Ok(())
    }

    /// Appends a repeated float, packed or not.
    pub(super) fn floats(self, to: &mut Vec<f32>) -> Result<()> {
        match self {
            Self::Bytes(bytes) => to.extend(words::<4>(bytes)?.map(f32::from_le_bytes)),
            single => to.push(single.float()?),
        }
        Ok(())
    }

    /// Appends a repeated double, packed or not.
    pub(super) fn doubles(self, to: &mut Vec<f64>) -> Result<()> {
        match self {
            Self::Bytes(bytes) => to.extend(words::<8>(bytes)?.map(f64::from_le_bytes)),
            Self::Fixed64(bits) => to.push(f64::from_bits(bits)),
            _ => return Err(malformed("a double is not eight bytes long")),
        }
        Ok(())
    }
}

/// Little-endian words of `N` bytes.
pub(super) fn words<const N: usize>(bytes: &[u8]) -> Result<impl Iterator<Item = [u8; N]> + '_> {
    if !bytes.len().is_multiple_of(N) {
        return Err(malformed("packed numbers are truncated"));
    }
    Ok(bytes.chunks_exact(N).map(|word| word.try_into().expect("chunks have this size")))
}
