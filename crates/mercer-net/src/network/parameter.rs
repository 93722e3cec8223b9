//! Parameters: named arrays with the reason why they are parameters.

use crate::element::Element;
use crate::error::{NetError, Result};
use crate::onnx::Data;
use crate::shape::numel;
use std::sync::Arc;

/// The numbers of a parameter in their original precision.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Arc<Vec<f32>>),
    /// Double precision.
    F64(Arc<Vec<f64>>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers in another scalar.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        match self {
            Self::F32(values) => values.iter().map(|&x| T::narrow(f64::from(x))).collect(),
            Self::F64(values) => values.iter().map(|&x| T::narrow(x)).collect(),
        }
    }

    /// Takes numbers of either scalar.
    pub fn from_slice<T: Element>(values: &[T]) -> Self {
        if T::NAME == "f32" {
            Self::F32(Arc::new(values.iter().map(|x| x.wide() as f32).collect()))
        } else {
            Self::F64(Arc::new(values.iter().map(|x| x.wide()).collect()))
        }
    }

    fn first_not_finite(&self) -> Option<usize> {
        match self {
            Self::F32(values) => values.iter().position(|x| !x.is_finite()),
            Self::F64(values) => values.iter().position(|x| !x.is_finite()),
        }
    }
}

/// A parameter of a network.
#[derive(Clone, Debug)]
pub struct Parameter {
    name: String,
    shape: Vec<usize>,
    values: Values,
    reason: String,
}

impl Parameter {
    pub(super) fn new(name: String, shape: Vec<usize>, values: Values, reason: String) -> Result<Self> {
        if numel(&shape) != values.len() {
            let reason = format!("parameter {name:?} of shape {shape:?} has {} numbers", values.len());
            return Err(NetError::Setting(reason));
        }
        if let Some(at) = values.first_not_finite() {
            return Err(NetError::Setting(format!("parameter {name:?} is not finite at element {at}")));
        }
        Ok(Self { name, shape, values, reason })
    }

    /// The name from the file or the builder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.values.len()
    }

    /// The numbers.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Why this tensor is a parameter.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn set(&mut self, values: Values) {
        assert_eq!(values.len(), self.values.len(), "size of {}", self.name);
        self.values = values;
    }
}

impl From<&Values> for Data {
    fn from(values: &Values) -> Self {
        match values {
            Values::F32(values) => Self::F32(Arc::clone(values)),
            Values::F64(values) => Self::F64(Arc::clone(values)),
        }
    }
}

impl From<&Data> for Option<Values> {
    fn from(data: &Data) -> Self {
        match data {
            Data::F32(values) => Some(Values::F32(Arc::clone(values))),
            Data::F64(values) => Some(Values::F64(Arc::clone(values))),
            Data::Int(_) | Data::Bool(_) => None,
        }
    }
}
