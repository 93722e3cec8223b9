//! Tensors of an ONNX file.

use super::external;
use super::wire::{Fields, malformed, words};
use crate::budget::Budget;
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::shortened;
use half::{bf16, f16};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
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

/// A named tensor of an ONNX file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name, which may be empty.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements, row-major.
    pub data: Data,
}

/// The context of decoding: the folder for external data, and the budget.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(super) folder: Option<&'a Path>,
    pub(crate) budget: Budget,
    /// The external files that the budget already counts.
    pub(super) outside: HashSet<PathBuf>,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn new(folder: Option<&'a Path>, budget: Budget) -> Self {
        Self { folder, budget, outside: HashSet::new() }
    }
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
        Self::decode(bytes, &mut Surroundings::new(None, Budget::unlimited()))
    }

    /// The elements in one scalar; truth values are 0 and 1.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        match &self.data {
            Data::F32(values) => values.iter().map(|&x| T::narrow(f64::from(x))).collect(),
            Data::F64(values) => values.iter().map(|&x| T::narrow(x)).collect(),
            Data::Int(values) => values.iter().map(|&x| T::narrow(x as f64)).collect(),
            Data::Bool(values) => values.iter().map(|&x| T::narrow(f64::from(u8::from(x)))).collect(),
        }
    }

    pub(crate) fn decode(message: &[u8], around: &mut Surroundings<'_>) -> Result<Self> {
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
        let whose = |reason: String| malformed(format!("tensor {:?}: {reason}", shortened(&name)));
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
        // Checked before anything is allocated or read according to these sizes.
        let Some((stored, kept)) = element_bytes(raw.element) else { return Err(raw.unsupported(raw.element)) };
        let place = || format!("tensor {:?} of shape {:?}", shortened(&name), raw.dims);
        let outside;
        if raw.is_external {
            let wanted =
                count.checked_mul(stored).ok_or_else(|| whose(format!("shape {:?} is too large", raw.dims)))?;
            let found = external::find(&raw.external, around, &name, wanted)?;
            around.budget.spend(place, count.saturating_mul(kept))?;
            outside = found.read()?;
            raw.bytes = Some(&outside);
        } else {
            raw.check_count(count, stored).map_err(whose)?;
            around.budget.spend(place, count.saturating_mul(kept))?;
        }
        around.budget.spend(place, size_of::<Self>() + name.len() + size_of_val(&shape[..]))?;
        let data = raw.data().map_err(|error| match error {
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

/// The bytes of an element in the file and in memory, by ONNX's number for its type; `None` if it is not supported.
fn element_bytes(element: i64) -> Option<(usize, usize)> {
    Some(match element {
        1 => (4, 4),
        2 | 3 => (1, 8),
        4 | 5 => (2, 8),
        6 | 12 => (4, 8),
        7 | 11 | 13 => (8, 8),
        9 => (1, 1),
        10 | 16 => (2, 4),
        _ => return None,
    })
}

impl Raw<'_> {
    /// Checks that there are as many elements as the shape says.
    fn check_count(&self, count: usize, stored: usize) -> Result<(), String> {
        let there = match (self.bytes, self.element) {
            (Some(bytes), _) if !bytes.len().is_multiple_of(stored) => {
                return Err("packed numbers are truncated".into());
            }
            (Some(bytes), _) => bytes.len() / stored,
            (None, 1) => self.floats.len(),
            (None, 11) => self.doubles.len(),
            (None, _) => self.ints.len(),
        };
        if there == count {
            return Ok(());
        }
        Err(format!("shape {:?} needs {count} elements, but the file holds {there}", self.dims))
    }

    /// The elements, as many as there are.
    fn data(&mut self) -> Result<Data> {
        let f32s = |values: Vec<f32>| Ok(Data::F32(Arc::new(values)));
        let f64s = |values: Vec<f64>| Ok(Data::F64(Arc::new(values)));
        let ints = |values: Vec<i64>| Ok(Data::Int(Arc::new(values)));
        let bools = |values: Vec<bool>| Ok(Data::Bool(Arc::new(values)));
        if let Some(bytes) = self.bytes {
            return match self.element {
                1 => f32s(words(bytes)?.map(f32::from_le_bytes).collect()),
                2 => ints(bytes.iter().map(|&b| i64::from(b)).collect()),
                3 => ints(bytes.iter().map(|&b| i64::from(b as i8)).collect()),
                4 => ints(words(bytes)?.map(|w| i64::from(u16::from_le_bytes(w))).collect()),
                5 => ints(words(bytes)?.map(|w| i64::from(i16::from_le_bytes(w))).collect()),
                6 => ints(words(bytes)?.map(|w| i64::from(i32::from_le_bytes(w))).collect()),
                7 => ints(words(bytes)?.map(i64::from_le_bytes).collect()),
                9 => bools(bytes.iter().map(|&b| b != 0).collect()),
                10 => f32s(words(bytes)?.map(|w| f16::from_le_bytes(w).to_f32()).collect()),
                11 => f64s(words(bytes)?.map(f64::from_le_bytes).collect()),
                12 => ints(words(bytes)?.map(|w| i64::from(u32::from_le_bytes(w))).collect()),
                13 => ints(words(bytes)?.map(|w| u64::from_le_bytes(w) as i64).collect()),
                16 => f32s(words(bytes)?.map(|w| bf16::from_le_bytes(w).to_f32()).collect()),
                other => Err(self.unsupported(other)),
            };
        }
        match self.element {
            1 => f32s(std::mem::take(&mut self.floats)),
            10 => f32s(self.ints.iter().map(|&bits| f16::from_bits(bits as u16).to_f32()).collect()),
            16 => f32s(self.ints.iter().map(|&bits| bf16::from_bits(bits as u16).to_f32()).collect()),
            11 => f64s(std::mem::take(&mut self.doubles)),
            9 => bools(self.ints.iter().map(|&x| x != 0).collect()),
            6 => ints(self.ints.iter().map(|&x| i64::from(x as i32)).collect()),
            2..=5 | 7 | 12 | 13 => ints(std::mem::take(&mut self.ints)),
            other => Err(self.unsupported(other)),
        }
    }

    fn unsupported(&self, element: i64) -> NetError {
        let reason = format!("element type {element} is not supported");
        NetError::Unsupported { node: format!("that holds a tensor of shape {:?}", self.dims), reason }
    }
}
