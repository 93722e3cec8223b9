//! `CumSum`: `y_i = Σ_{j ≤ i} x_j` along an axis; without `j = i` if exclusive, over `j ≥ i` if reversed.
//!
//! The matrix of a running sum is triangular, and its transpose is the running sum from the other end.

use super::axes::{check_axis, only};
use super::linear::{Linear, clear};
use super::{InferError, Op};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::around;

/// Running sums along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CumSum {
    /// The axis.
    pub axis: usize,
    /// Whether an element is left out of its own sum.
    pub exclusive: bool,
    /// Whether sums run from the end.
    pub reverse: bool,
}

impl CumSum {
    /// `y += running sums of x`, over zeros.
    fn add_sums<T: Element>(&self, reverse: bool, x: &[T], y: &mut [T], shape: &[usize]) {
        let (outer, size, inner) = around(shape, self.axis);
        for block in 0..outer {
            let (x, y) = (&x[block * size * inner..], &mut y[block * size * inner..]);
            for lane in 0..inner {
                let mut sum = T::zero();
                for step in 0..size {
                    let at = lane + if reverse { size - 1 - step } else { step } * inner;
                    let before = sum;
                    sum += x[at];
                    y[at] += if self.exclusive { before } else { sum };
                }
            }
        }
    }
}

impl Op for CumSum {
    fn name(&self) -> &'static str {
        "CumSum"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        check_axis(self.axis, x.rank())?;
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&[self.axis])).transpose()?;
        Ok(Meta { shape: x.shape.clone(), batch })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Linear for CumSum {
    fn forward<T: Element>(&self, x: &[T], x_shape: &[usize], y: &mut [T], _: &[usize]) {
        y.fill(T::zero());
        self.add_sums(self.reverse, x, y, x_shape);
    }

    fn adjoint<T: Element>(&self, dy: &[T], y_shape: &[usize], dx: &mut [T], _: &[usize], add: bool) {
        clear(dx, add);
        self.add_sums(!self.reverse, dy, dx, y_shape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
            check(CumSum { axis: 0, exclusive, reverse }, &[batched(&[4, 3])]);
            check(CumSum { axis: 2, exclusive, reverse }, &[batched(&[2, 1, 5])]);
            check(CumSum { axis: 1, exclusive, reverse }, &[shared(&[2, 1, 5])]);
        }
    }

    #[test]
    fn values_are_those_of_onnx() {
        let sums = |exclusive, reverse| {
            let mut y = [0.0; 3];
            CumSum { axis: 0, exclusive, reverse }.forward(&[1.0, 2.0, 3.0], &[3], &mut y, &[3]);
            y
        };
        assert_eq!(sums(false, false), [1.0, 3.0, 6.0]);
        assert_eq!(sums(true, false), [0.0, 1.0, 3.0]);
        assert_eq!(sums(false, true), [6.0, 5.0, 3.0]);
        assert_eq!(sums(true, true), [5.0, 3.0, 0.0]);
    }
}
