//! Tensors of an ONNX file.

use super::wire::{Fields, malformed, words};
use crate::element::Element;
use crate::error::{NetError, Result};
use half::{bf16, f16};
use std::path::Path;
use std::sync::Arc;

/// A tensor's elements, widened to one of four types.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Single precision, and the 16-bit floats.
    F32(Arc<Vec<f32>>),
    /// Double precision.
    F64(Arc<Vec<f64>>),
    /// Integers of any size.
    Int(Arc<Vec<i64>>),
    /// Truth values.
    Bool(Arc<Vec<bool>>),
}

/// A named tensor as ONNX files hold it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name, which may be empty.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements, row-major.
    pub data: Data,
}

#[derive(Default)]
struct Raw<'a> {
    dims: Vec<i64>,
    element: i64,
    floats: Vec<f32>,
    ints: Vec<i64>,
    doubles: Vec<f64>,
    bytes: Option<&'a [u8]>,
    external: Vec<(String, String)>,
    is_external: bool,
}

impl Tensor {
    /// Reads a tensor from the bytes of a `TensorProto`, as in the `.pb` files of test data.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::decode(bytes, None)
    }

    /// The elements in one scalar; truth values are 0 and 1.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        match &self.data {
            Data::F32(values) => values.iter().map(|&x| T::of(f64::from(x))).collect(),
            Data::F64(values) => values.iter().map(|&x| T::of(x)).collect(),
            Data::Int(values) => values.iter().map(|&x| T::of(x as f64)).collect(),
            Data::Bool(values) => values.iter().map(|&x| T::of(f64::from(u8::from(x)))).collect(),
        }
    }

    pub(crate) fn decode(message: &[u8], folder: Option<&Path>) -> Result<Self> {
        let mut name = String::new();
        let mut raw = Raw::default();
        let mut fields = Fields::new(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => payload.integers(&mut raw.dims)?,
                2 => raw.element = payload.integer()?,
                4 => payload.floats(&mut raw.floats)?,
                5 | 7 | 11 => payload.integers(&mut raw.ints)?,
                8 => name = payload.text()?,
                9 => raw.bytes = Some(payload.bytes()?),
                10 => payload.doubles(&mut raw.doubles)?,
                13 => raw.external.push(entry(payload.bytes()?)?),
                14 => raw.is_external = payload.integer()? == 1,
                _ => {}
            }
        }
        let whose = |reason: String| malformed(format!("tensor {name:?}: {reason}"));
        let mut count = 1usize;
        let mut shape = Vec::with_capacity(raw.dims.len().min(64));
        for &dim in &raw.dims {
            let dim = usize::try_from(dim).map_err(|_| whose(format!("size {dim} along an axis")))?;
            count = count.checked_mul(dim.max(1)).ok_or_else(|| whose(format!("shape {:?} is too large", raw.dims)))?;
            shape.push(dim);
        }
        if shape.contains(&0) {
            count = 0;
        }
        let outside;
        if raw.is_external {
            outside = read_external(&raw.external, folder, &name)?;
            raw.bytes = Some(&outside);
        }
        let data = raw.data(count).map_err(|error| match error {
            NetError::Malformed { reason } => whose(reason),
            other => other,
        })?;
        Ok(Self { name, shape, data })
    }

    /// Whether the elements are floating-point numbers.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.data, Data::F32(_) | Data::F64(_))
    }

    /// The number of elements.
    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A key and its text.
pub(super) fn entry(message: &[u8]) -> Result<(String, String)> {
    let (mut key, mut value) = (String::new(), String::new());
    let mut fields = Fields::new(message);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => key = payload.text()?,
            2 => value = payload.text()?,
            _ => {}
        }
    }
    Ok((key, value))
}

impl Raw<'_> {
    fn data(&self, count: usize) -> Result<Data> {
        let check = |there: usize| {
            if there == count {
                Ok(())
            } else {
                Err(malformed(format!("shape {:?} needs {count} elements, the file holds {there}", self.dims)))
            }
        };
        let f32s = |values: Vec<f32>| check(values.len()).map(|()| Data::F32(Arc::new(values)));
        let ints = |values: Vec<i64>| check(values.len()).map(|()| Data::Int(Arc::new(values)));
        if let Some(bytes) = self.bytes {
            return match self.element {
                1 => f32s(words(bytes)?.map(f32::from_le_bytes).collect()),
                2 => ints(bytes.iter().map(|&b| i64::from(b)).collect()),
                3 => ints(bytes.iter().map(|&b| i64::from(b as i8)).collect()),
                4 => ints(words(bytes)?.map(|w| i64::from(u16::from_le_bytes(w))).collect()),
                5 => ints(words(bytes)?.map(|w| i64::from(i16::from_le_bytes(w))).collect()),
                6 => ints(words(bytes)?.map(|w| i64::from(i32::from_le_bytes(w))).collect()),
                7 => ints(words(bytes)?.map(i64::from_le_bytes).collect()),
                9 => check(bytes.len()).map(|()| Data::Bool(Arc::new(bytes.iter().map(|&b| b != 0).collect()))),
                10 => f32s(words(bytes)?.map(|w| f16::from_le_bytes(w).to_f32()).collect()),
                11 => {
                    let values: Vec<f64> = words(bytes)?.map(f64::from_le_bytes).collect();
                    check(values.len()).map(|()| Data::F64(Arc::new(values)))
                }
                12 => ints(words(bytes)?.map(|w| i64::from(u32::from_le_bytes(w))).collect()),
                13 => ints(words(bytes)?.map(|w| u64::from_le_bytes(w) as i64).collect()),
                16 => f32s(words(bytes)?.map(|w| bf16::from_le_bytes(w).to_f32()).collect()),
                other => Err(self.unsupported(other)),
            };
        }
        match self.element {
            1 => f32s(self.floats.clone()),
            10 => f32s(self.ints.iter().map(|&bits| f16::from_bits(bits as u16).to_f32()).collect()),
            16 => f32s(self.ints.iter().map(|&bits| bf16::from_bits(bits as u16).to_f32()).collect()),
            11 => check(self.doubles.len()).map(|()| Data::F64(Arc::new(self.doubles.clone()))),
            9 => {
                check(self.ints.len())?;
                Ok(Data::Bool(Arc::new(self.ints.iter().map(|&x| x != 0).collect())))
            }
            6 => ints(self.ints.iter().map(|&x| i64::from(x as i32)).collect()),
            2..=5 | 7 | 12 | 13 => ints(self.ints.clone()),
            other => Err(self.unsupported(other)),
        }
    }

    fn unsupported(&self, element: i64) -> NetError {
        let reason = format!("element type {element} is not supported");
        NetError::Unsupported { node: format!("that holds a tensor of shape {:?}", self.dims), reason }
    }
}

/// The bytes of a tensor kept beside the model, never outside of the model's folder.
fn read_external(entries: &[(String, String)], folder: Option<&Path>, name: &str) -> Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let get = |key: &str| entries.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str());
    let location = get("location").unwrap_or_default();
    let relative = Path::new(location);
    let inside = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside || location.is_empty() {
        return Err(malformed(format!(
            "tensor {name:?}: external data at {location:?}, outside of the model's folder"
        )));
    }
    let Some(folder) = folder else {
        return Err(malformed(format!("tensor {name:?} is kept in {location:?}; open the model from its file")));
    };
    let path = folder.join(relative);
    let io = |source| NetError::Io { path: path.clone(), source };
    let number = |key: &str| match get(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| malformed(format!("tensor {name:?}: {key} {text:?}"))),
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    // A link could lead elsewhere.
    let (real, home) = (path.canonicalize().map_err(io)?, folder.canonicalize().map_err(io)?);
    if !real.starts_with(&home) {
        return Err(malformed(format!(
            "tensor {name:?}: external data at {location:?}, outside of the model's folder"
        )));
    }
    let mut file = std::fs::File::open(&real).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let length = length.unwrap_or(size.saturating_sub(offset));
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(malformed(format!(
            "tensor {name:?}: {location:?} has {size} bytes, too few for {offset} + {length}"
        )));
    }
    let mut bytes = vec![0; length as usize];
    file.seek(SeekFrom::Start(offset)).map_err(io)?;
    file.read_exact(&mut bytes).map_err(io)?;
    Ok(bytes)
}
