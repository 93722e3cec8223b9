//! Constants of a lowering: small arrays of numbers of any file type.

use super::super::tensor::{Data, Tensor};
use crate::op::{Arg, Call, Op, OpKernel, Operands, Scratch};
use crate::shape::numel;
use std::sync::Arc;

/// The kind of the numbers of a value. All are computed in floating point, in which integers are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberKind {
    /// Floating-point numbers.
    #[default]
    Float,
    /// Integers, such as token ids.
    Int,
    /// Truth values, 0 and 1.
    Bool,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Host {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Arc<Vec<f64>>,
    pub(crate) kind: NumberKind,
}

impl Host {
    pub(crate) fn new(shape: Vec<usize>, data: Vec<f64>, kind: NumberKind) -> Self {
        assert_eq!(numel(&shape), data.len(), "a constant has as many elements as its shape says");
        Self { shape, data: Arc::new(data), kind }
    }

    pub(crate) fn from_tensor(tensor: &Tensor) -> Self {
        let (data, kind) = match &tensor.data {
            Data::F32(values) => (values.iter().map(|&x| f64::from(x)).collect(), NumberKind::Float),
            Data::F64(values) => (values.to_vec(), NumberKind::Float),
            Data::Int(values) => (values.iter().map(|&x| x as f64).collect(), NumberKind::Int),
            Data::Bool(values) => (values.iter().map(|&x| f64::from(u8::from(x))).collect(), NumberKind::Bool),
        };
        Self::new(tensor.shape.clone(), data, kind)
    }

    /// A vector of integers.
    pub(crate) fn integers(values: impl IntoIterator<Item = usize>) -> Self {
        let data: Vec<f64> = values.into_iter().map(|x| x as f64).collect();
        Self::new(vec![data.len()], data, NumberKind::Int)
    }

    /// The first element, or 0.
    pub(crate) fn first(&self) -> f64 {
        self.data.first().copied().unwrap_or(0.0)
    }

    /// The elements as integers; those out of range saturate.
    pub(crate) fn to_integers(&self) -> Vec<i64> {
        self.data.iter().map(|&x| x as i64).collect()
    }
}

struct HostOperands<'a> {
    hosts: &'a [&'a Host],
    result: &'a [usize],
}

impl Operands<f64> for HostOperands<'_> {
    fn operand(&self, index: usize) -> Arg<'_, f64> {
        let host = self.hosts[index];
        Arg { data: &host.data, shape: &host.shape, batched: false }
    }

    fn count(&self) -> usize {
        self.hosts.len()
    }

    fn result(&self) -> Arg<'_, f64> {
        Arg { data: &[], shape: self.result, batched: false }
    }
}

/// Evaluates a primitive on constants. The result has this shape.
pub(super) fn evaluate(op: &dyn Op, hosts: &[&Host], shape: Vec<usize>, kind: NumberKind) -> Host {
    let mut data = vec![0.0; numel(&shape)];
    let operands = HostOperands { hosts, result: &shape };
    OpKernel::<f64>::apply(op, &Call::new(&operands, 1), &mut data, &mut Scratch::default());
    Host::new(shape, data, kind)
}
