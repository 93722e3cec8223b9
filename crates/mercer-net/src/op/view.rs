//! `Reshape`: the same memory under another shape.

use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::numel;

/// Gives a value another shape with as many elements; also flatten, squeeze and unsqueeze.
#[derive(Clone, Debug)]
pub struct Reshape {
    /// The shape for one sample.
    pub shape: Vec<usize>,
}

impl Op for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        if inputs.len() != 1 || inputs[0].numel() != numel(&self.shape) {
            return Err(InferError::Shape(format!("cannot reshape to {:?}", self.shape)));
        }
        let batch = inputs[0].batch.as_ref().map(|batch| batch.reshaped(&inputs[0].shape, &self.shape));
        Ok(Meta { shape: self.shape.clone(), batch })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn is_view(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for Reshape {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        y.copy_from_slice(call.arg(0).data);
    }

    fn vjp(&self, _: &Call<'_, T>, dy: &[T], _: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        super::write(dx, dy, add);
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        if let Some(tangent) = tangents.operand(call, 0) {
            dy.copy_from_slice(tangent.data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        check(Reshape { shape: vec![3, 2] }, &[batched(&[2, 3])]);
        check(Reshape { shape: vec![6] }, &[shared(&[2, 3])]);
    }
}
