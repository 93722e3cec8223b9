//! `Expand`: an operand repeated along axes of size one, `y = x` broadcast; the cotangent is the sum over the copies.

use super::axes::{check_rank, only};
use super::binary::add_reduced;
use super::linear::{Linear, clear};
use super::loops::Loops;
use super::{InferError, Op};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::broadcast;
use mercer_linalg::simd::dispatch;

/// Broadcasts a value to a shape (for one sample). Axes of size one in the shape leave the operand's size, as in ONNX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expand {
    /// The shape to broadcast with.
    pub shape: Vec<usize>,
}

impl Op for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        let shape = broadcast(&x.shape, &self.shape)
            .ok_or_else(|| InferError::Shape(format!("the operand does not broadcast to {:?}", self.shape)))?;
        check_rank(shape.len())?;
        let missing = shape.len() - x.rank();
        // An axis of several samples cannot be expanded, so an expanded axis is not the batch.
        let along: Vec<usize> = (0..x.rank()).filter(|&axis| x.shape[axis] != shape[axis + missing]).collect();
        let batch = match &x.batch {
            Some(batch) => Some(batch.not_along(&along)?.moved(|axis| Some(axis + missing))?),
            None => None,
        };
        Ok(Meta { shape, batch })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Linear for Expand {
    fn forward<T: Element>(&self, x: &[T], x_shape: &[usize], y: &mut [T], y_shape: &[usize]) {
        dispatch(
            #[inline(always)]
            || {
                Loops::broadcast(y_shape, [x_shape]).runs(
                    #[inline(always)]
                    |start, length, [at], [stride]| {
                        let y = &mut y[start..start + length];
                        match stride {
                            0 => y.fill(x[at]),
                            1 => y.copy_from_slice(&x[at..at + length]),
                            _ => y.iter_mut().zip(x[at..].iter().step_by(stride)).for_each(|(y, &x)| *y = x),
                        }
                    },
                );
            },
        );
    }

    fn adjoint<T: Element>(&self, dy: &[T], y_shape: &[usize], dx: &mut [T], x_shape: &[usize], add: bool) {
        clear(dx, add);
        add_reduced(&Loops::broadcast(y_shape, [x_shape]), dy, None, dx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Batch;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        let cases: [(&[usize], &[usize]); 6] = [
            (&[], &[2, 3]),
            (&[3], &[2, 3]),
            (&[2, 1], &[2, 4]),
            (&[1, 3, 1], &[2, 1, 1, 5]),
            (&[4, 1, 2], &[4, 3, 2]),
            (&[2, 3], &[1]),
        ];
        for (from, to) in cases {
            check(Expand { shape: to.to_vec() }, &[batched(from)]);
            check(Expand { shape: to.to_vec() }, &[shared(from)]);
        }
    }

    #[test]
    fn an_expanded_axis_is_not_the_batch() {
        let x = Meta::batched([1, 3], Batch::axis(0));
        assert_eq!(Expand { shape: vec![4, 3] }.infer(&[&x]), Err(InferError::Mixes));
        let y = Expand { shape: vec![2, 1, 3] }.infer(&[&x]).unwrap();
        assert_eq!(y, Meta::batched([2, 1, 3], Batch::axis(1)));
    }
}
