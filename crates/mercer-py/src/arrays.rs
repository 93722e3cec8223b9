//! Arrays: in by pointer, out by pointer.
//!
//! Both directions use NumPy's `__array_interface__`, a description of memory in plain Python objects. It needs no
//! binding to NumPy, so the module loads without it.

use crate::failure::raised;
use mercer::data::Dataset;
use ndarray::ArrayD;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::slice;

/// The memory of a NumPy array, which stays alive with this.
struct Foreign {
    start: *const u8,
    length: usize,
    _owner: Py<PyAny>,
}

// SAFETY: the memory is only read, and the owner is only released, which is allowed on any thread.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the interface of a live NumPy array says that this memory is there.
        unsafe { slice::from_raw_parts(self.start, self.length) }
    }
}

/// A NumPy array, row-major or column-major, as a data set on the same memory.
pub(crate) fn dataset(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Dataset> {
    let interface = array.getattr("__array_interface__")?;
    let interface = interface.cast::<PyDict>().map_err(|_| PyTypeError::new_err("this is not a NumPy array"))?;
    let entry = |key: &str| {
        let missing = || PyTypeError::new_err(format!("the array interface has no {key}"));
        interface.get_item(key)?.ok_or_else(missing)
    };
    let element: String = entry("typestr")?.extract()?;
    let shape: Vec<usize> = entry("shape")?.extract()?;
    let (address, _): (usize, bool) = entry("data")?.extract()?;
    let width = element.get(2..).and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(0);
    let strides: Option<Vec<isize>> = entry("strides")?.extract()?;
    let fortran = match strides {
        None => false,
        Some(strides) if strides == column_major(&shape, width) => true,
        Some(_) => return Err(PyValueError::new_err("the array is neither row-major nor column-major")),
    };
    let too_large = || PyValueError::new_err("the array is too large");
    let length = shape.iter().try_fold(width, |size, &axis| size.checked_mul(axis)).ok_or_else(too_large)?;
    let memory = if length == 0 {
        Foreign { start: std::ptr::NonNull::dangling().as_ptr(), length, _owner: array.clone().unbind() }
    } else {
        Foreign { start: address as *const u8, length, _owner: array.clone().unbind() }
    };
    Dataset::from_memory(name, &element, &shape, fortran, memory).map_err(|error| raised(array.py(), &error.into()))
}

/// One data set per array, with its name.
pub(crate) fn datasets(arrays: &[(String, Bound<'_, PyAny>)]) -> PyResult<Vec<Dataset>> {
    arrays.iter().map(|(name, array)| dataset(name, array)).collect()
}

/// The strides of a column-major array in bytes.
fn column_major(shape: &[usize], width: usize) -> Vec<isize> {
    let mut step = width as isize;
    let stride = |&length: &usize| {
        let own = step;
        step *= length as isize;
        own
    };
    shape.iter().map(stride).collect()
}

/// Numbers of a result. NumPy sees them through `__array_interface__` without a copy.
#[pyclass(frozen, module = "mercer._mercer")]
#[derive(Debug)]
pub(crate) struct Numbers {
    memory: Memory,
    shape: Vec<usize>,
}

/// Owned memory that Python may write to, so it is held by a pointer.
#[derive(Debug)]
pub(crate) enum Memory {
    Single(*mut [f32]),
    Double(*mut [f64]),
}

// SAFETY: the pointers are owned; access through them is Python's business, as for every NumPy array.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        match *self {
            // SAFETY: both come from `Box::into_raw`, and NumPy arrays on this memory hold a reference to `Numbers`.
            Self::Single(values) => drop(unsafe { Box::from_raw(values) }),
            // SAFETY: as above.
            Self::Double(values) => drop(unsafe { Box::from_raw(values) }),
        }
    }
}

impl From<Box<[f32]>> for Memory {
    fn from(values: Box<[f32]>) -> Self {
        Self::Single(Box::into_raw(values))
    }
}

impl From<Box<[f64]>> for Memory {
    fn from(values: Box<[f64]>) -> Self {
        Self::Double(Box::into_raw(values))
    }
}

impl Numbers {
    /// The numbers of an array; a copy only if they are not row-major and alone in their memory.
    pub(crate) fn new<T: Clone>(array: ArrayD<T>) -> Self
    where
        Memory: From<Box<[T]>>,
    {
        let shape = array.shape().to_vec();
        let plain = array.is_standard_layout();
        let copied: Option<Vec<T>> = (!plain).then(|| array.iter().cloned().collect());
        let values = copied.unwrap_or_else(|| {
            let length = array.len();
            let (mut values, start) = array.into_raw_vec_and_offset();
            values.drain(..start.unwrap_or(0));
            values.truncate(length);
            values
        });
        Self { memory: values.into_boxed_slice().into(), shape }
    }
}

#[pymethods]
impl Numbers {
    /// What NumPy reads: type, shape and address of the numbers.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (address, width) = match self.memory {
            Memory::Single(values) => (values.cast::<u8>() as usize, 4),
            Memory::Double(values) => (values.cast::<u8>() as usize, 8),
        };
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("{order}f{width}"))?;
        interface.set_item("shape", pyo3::types::PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (address, false))?;
        interface.set_item("strides", py.None())?;
        Ok(interface)
    }
}
