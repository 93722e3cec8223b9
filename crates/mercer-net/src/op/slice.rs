//! `Slice`: `y[i] = x[start + i·step]` along every axis; steps may go backwards.

use super::axes::{only, strides};
use super::linear::{Linear, clear};
use super::loops::MAX_RANK;
use super::{InferError, Op};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::numel;

/// A part of a value, evenly spaced along each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index along each axis.
    pub starts: Vec<usize>,
    /// The distance from one index to the next; negative steps go backwards.
    pub steps: Vec<isize>,
    /// How many indices are taken.
    pub sizes: Vec<usize>,
}

impl Slice {
    /// `size` elements along `axis` from `start`, and everything along the other axes of `shape`.
    pub fn along(shape: &[usize], axis: usize, start: usize, size: usize) -> Self {
        let mut slice = Self { starts: vec![0; shape.len()], steps: vec![1; shape.len()], sizes: shape.to_vec() };
        (slice.starts[axis], slice.sizes[axis]) = (start, size);
        slice
    }

    fn is_whole(&self, axis: usize, size: usize) -> bool {
        self.sizes[axis] == size && (size == 0 || self.starts[axis] == 0 && (self.steps[axis] == 1 || size == 1))
    }

    /// Calls `body(from, to, length)` for every run that is contiguous in `x` and in `y`.
    #[inline(always)]
    fn runs(&self, x_shape: &[usize], mut body: impl FnMut(usize, usize, usize)) {
        if numel(&self.sizes) == 0 {
            return;
        }
        let rank = x_shape.len();
        let stride = strides(x_shape);
        // The last axis that is not taken whole. After it everything is contiguous.
        let Some(last) = (0..rank).rev().find(|&axis| !self.is_whole(axis, x_shape[axis])) else {
            return body(0, 0, numel(x_shape));
        };
        let step = |axis: usize| self.steps[axis] * stride[axis] as isize;
        let mut from: isize = (0..rank).map(|axis| (self.starts[axis] * stride[axis]) as isize).sum();
        let (blocks, length) = if self.steps[last] == 1 || self.sizes[last] == 1 {
            (1, self.sizes[last] * stride[last])
        } else {
            (self.sizes[last], stride[last])
        };
        let mut index = [0; MAX_RANK];
        for outer in 0..numel(&self.sizes[..last]) {
            for block in 0..blocks {
                let at = from + block as isize * step(last);
                body(at as usize, (outer * blocks + block) * length, length);
            }
            for axis in (0..last).rev() {
                index[axis] += 1;
                from += step(axis);
                if index[axis] < self.sizes[axis] {
                    break;
                }
                from -= step(axis) * self.sizes[axis] as isize;
                index[axis] = 0;
            }
        }
    }
}

impl Op for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        let rank = x.rank();
        if self.starts.len() != rank || self.steps.len() != rank || self.sizes.len() != rank {
            return Err(InferError::Shape("a slice must be given for every axis".into()));
        }
        for axis in 0..rank {
            let last = self.starts[axis] as i128 + (self.sizes[axis] as i128 - 1) * self.steps[axis] as i128;
            let size = x.shape[axis];
            if self.sizes[axis] > 0 && (self.starts[axis] >= size || last < 0 || last >= size as i128) {
                return Err(InferError::Shape(format!("the slice exceeds axis {axis}")));
            }
        }
        let along: Vec<usize> = (0..rank).filter(|&axis| !self.is_whole(axis, x.shape[axis])).collect();
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&along)).transpose()?;
        Ok(Meta { shape: self.sizes.clone(), batch })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Linear for Slice {
    fn piece(&self, x_shape: &[usize]) -> Option<usize> {
        let mut pieces = (0, 0);
        self.runs(x_shape, |from, _, _| pieces = (pieces.0 + 1, from));
        (pieces.0 == 1).then_some(pieces.1)
    }

    fn forward<T: Element>(&self, x: &[T], x_shape: &[usize], y: &mut [T], _: &[usize]) {
        self.runs(x_shape, |from, to, length| match length {
            1 => y[to] = x[from],
            _ => y[to..to + length].copy_from_slice(&x[from..from + length]),
        });
    }

    fn adjoint<T: Element>(&self, dy: &[T], _: &[usize], dx: &mut [T], x_shape: &[usize], add: bool) {
        clear(dx, add);
        self.runs(x_shape, |to, from, length| {
            if length == 1 {
                dx[to] += dy[from];
                return;
            }
            dx[to..to + length].iter_mut().zip(&dy[from..from + length]).for_each(|(dx, &dy)| *dx += dy);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Batch;
    use crate::op::conformance::{batched, check, shared};

    fn slice(starts: &[usize], steps: &[isize], sizes: &[usize]) -> Slice {
        Slice { starts: starts.to_vec(), steps: steps.to_vec(), sizes: sizes.to_vec() }
    }

    #[test]
    fn conforms() {
        check(slice(&[1], &[2], &[2]), &[batched(&[5])]);
        check(slice(&[4], &[-2], &[3]), &[batched(&[5])]);
        check(slice(&[0, 1], &[1, 1], &[2, 2]), &[batched(&[2, 5])]);
        check(slice(&[1, 0, 0], &[1, 1, 1], &[2, 3, 2]), &[batched(&[4, 3, 2])]);
        check(slice(&[3, 0, 1], &[-1, 2, -1], &[4, 2, 2]), &[batched(&[4, 3, 2])]);
        check(slice(&[0, 2, 0], &[1, -1, 1], &[1, 2, 3]), &[shared(&[1, 4, 3])]);
        check(slice(&[0, 0], &[1, 1], &[2, 3]), &[shared(&[2, 3])]);
        check(Slice::along(&[2, 4, 3], 1, 2, 2), &[batched(&[2, 4, 3])]);
    }

    #[test]
    fn values_are_those_of_numpy() {
        // np.arange(12).reshape(3, 4)[::-2, 3:0:-2]
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let mut y = [0.0; 4];
        slice(&[2, 3], &[-2, -2], &[2, 2]).forward(&x, &[3, 4], &mut y, &[2, 2]);
        assert_eq!(y, [11.0, 9.0, 3.0, 1.0]);
    }

    #[test]
    fn only_whole_axes_keep_the_batch() {
        let x = Meta::batched([1, 4], Batch::axis(0));
        assert_eq!(slice(&[0, 1], &[1, 1], &[1, 2]).infer(&[&x]).unwrap(), Meta::batched([1, 2], Batch::axis(0)));
        let folded = Meta::batched([4, 3], Batch::axis(0));
        assert_eq!(slice(&[1, 0], &[1, 1], &[2, 3]).infer(&[&folded]), Err(InferError::Mixes));
        assert!(matches!(slice(&[0, 3], &[1, 1], &[1, 2]).infer(&[&x]), Err(InferError::Shape(_))));
    }
}
