//! `GatherElements`: `y[i₀, …] = data[i₀, …, index[i₀, …], …]`, one entry along an axis for every element of the
//! indices.

use super::axes::{check_axis, check_rank, position, strides};
use super::linear::clear;
use super::loops::Loops;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::{Meta, meet_all};
use crate::shape::numel;

/// Entries of the first operand at the places the second names along an axis. Indices are as in
/// [`Gather`](super::Gather).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherElements {
    /// The axis.
    pub axis: usize,
}

impl Op for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [data, indices] = inputs else { return Err(InferError::Shape("needs data and indices".into())) };
        let rank = data.rank();
        check_rank(rank)?;
        check_axis(self.axis, rank)?;
        if indices.rank() != rank {
            return Err(InferError::Shape("the indices do not match the data".into()));
        }
        // Axes along which the indices cover only a part count as worked along, too.
        let along: Vec<usize> =
            (0..rank).filter(|&axis| axis == self.axis || indices.shape[axis] != data.shape[axis]).collect();
        let from_data = data.batch.as_ref().map(|batch| batch.not_along(&along)).transpose()?;
        let fits = |axis: usize| axis == self.axis || indices.shape[axis] <= data.shape[axis];
        if !(0..rank).all(fits) || data.shape[self.axis] == 0 && indices.numel() > 0 {
            return Err(InferError::Shape("the indices do not match the data".into()));
        }
        let shape = indices.shape.clone();
        let batches = [(&shape[..], from_data.as_ref()), (&shape[..], indices.batch.as_ref())];
        let batch = meet_all(batches.into_iter(), &shape)?;
        Ok(Meta { shape, batch })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn differentiable(&self, which: usize) -> bool {
        which == 0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl GatherElements {
    /// Calls `body(element of data, element of y)` for every index.
    #[inline(always)]
    fn pairs<T: Element>(&self, data: &[usize], shape: &[usize], indices: &[T], mut body: impl FnMut(usize, usize)) {
        let mut steps = strides(data);
        let (step, size) = (std::mem::take(&mut steps[self.axis]), data[self.axis]);
        Loops::strided(shape, [&steps[..shape.len()]]).runs(|start, length, [at], [stride]| {
            for i in 0..length {
                body(at + i * stride + position(indices[start + i], size) * step, start + i);
            }
        });
    }
}

impl<T: Element> OpKernel<T> for GatherElements {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (data, indices, shape) = (call.arg(0), call.arg(1), call.result().shape);
        let size = numel(shape);
        for sample in 0..call.n_results() {
            let (from, y) = (data.sample(sample), &mut y[sample * size..(sample + 1) * size]);
            self.pairs(data.shape, shape, indices.sample(sample), |at, to| y[to] = from[at]);
        }
    }

    fn vjp(&self, call: &Call<'_, T>, dy: &[T], seeds: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        let (data, indices, shape) = (call.arg(0), call.arg(1), call.result().shape);
        let (own, size) = (data.numel(), numel(shape));
        clear(dx, add);
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            self.pairs(data.shape, shape, indices.sample(at / seeds), |to, from| dx[to] += dy[from]);
        }
    }

    fn accumulate(&self, call: &Call<'_, T>, dy: &[T], which: usize, dx: &mut [T], _: &mut Scratch<T>) -> bool {
        let (data, indices, shape) = (call.arg(0), call.arg(1), call.result().shape);
        if which != 0 || data.batched {
            return false;
        }
        let size = numel(shape);
        for sample in 0..call.samples {
            let dy = &dy[sample * size..(sample + 1) * size];
            self.pairs(data.shape, shape, indices.sample(sample), |to, from| dx[to] += dy[from]);
        }
        true
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let (Some(tangent), indices, shape) = (tangents.operand(call, 0), call.arg(1), call.result().shape) else {
            return;
        };
        let size = numel(shape);
        for sample in 0..call.n_results() {
            let (from, dy) = (tangent.sample(sample), &mut dy[sample * size..(sample + 1) * size]);
            self.pairs(tangent.shape, shape, indices.sample(sample), |at, to| dy[to] = from[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Batch;
    use crate::op::conformance::{Operand, batched, check, shared};

    fn indices(operand: Operand) -> Operand {
        operand.within(|x| (4.0 * x).floor())
    }

    #[test]
    fn conforms() {
        check(GatherElements { axis: 1 }, &[batched(&[2, 4]), indices(batched(&[2, 3]))]);
        check(GatherElements { axis: 0 }, &[batched(&[3, 4]), indices(shared(&[5, 2]))]);
        check(GatherElements { axis: 2 }, &[shared(&[2, 1, 3]), indices(batched(&[2, 1, 2]))]);
        check(GatherElements { axis: 0 }, &[shared(&[3]), indices(shared(&[4]))]);
    }

    #[test]
    fn values_are_those_of_onnx() {
        let mut y = [0.0; 4];
        let (x, indices) = ([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 0.0]);
        GatherElements { axis: 1 }.pairs(&[2, 2], &[2, 2], &indices, |at, to| y[to] = x[at]);
        assert_eq!(y, [1.0, 1.0, 4.0, 3.0]);
    }

    #[test]
    fn partial_axes_are_not_the_batch() {
        let data = Meta::batched([2, 3], Batch::axis(0));
        let infer = |shape: [usize; 2]| GatherElements { axis: 1 }.infer(&[&data, &Meta::shared(shape)]);
        assert!(infer([2, 5]).is_ok());
        assert_eq!(infer([1, 5]), Err(InferError::Mixes));
    }
}
