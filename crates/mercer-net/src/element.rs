//! The scalars a network runs in.

use crate::op::{Op, OpKernel};
use mercer_linalg::Scalar;

/// A scalar that every primitive can compute in: `f32` or `f64`.
pub trait Element: Scalar {
    /// The arithmetic of a primitive in this scalar.
    fn kernel(op: &dyn Op) -> &dyn OpKernel<Self>;
}

impl Element for f32 {
    fn kernel(op: &dyn Op) -> &dyn OpKernel<Self> {
        op
    }
}

impl Element for f64 {
    fn kernel(op: &dyn Op) -> &dyn OpKernel<Self> {
        op
    }
}
