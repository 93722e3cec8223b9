//! `Gather`: `y[o, k, i] = data[o, index_k, i]`, rows of a table or entries along an axis.
//!
//! The cotangent of an embedding table is a sum of outer products with one-hot vectors, so its factors are indices and
//! rows, and summed over samples it is scattered straight into the table.

use super::axes::{check_axis, check_rank, position};
use super::linear::clear;
use super::{Call, InferError, Op, OpKernel, OuterShape, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::{around, numel};

/// Entries of the first operand along an axis, chosen by the second, whose shape replaces the axis.
///
/// Indices are whole numbers in the network's scalar; negative ones count from the end. Indices out of range are
/// clamped; indices from a user are checked earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The axis of the data.
    pub axis: usize,
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "Gather"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [data, indices] = inputs else { return Err(InferError::Shape("needs data and indices".into())) };
        check_axis(self.axis, data.rank())?;
        check_rank(data.rank() + indices.rank())?;
        if data.shape[self.axis] == 0 && indices.numel() > 0 {
            return Err(InferError::Shape("cannot gather from an empty axis".into()));
        }
        let mut shape = data.shape[..self.axis].to_vec();
        shape.extend(&indices.shape);
        shape.extend(&data.shape[self.axis + 1..]);
        let from_data = data.batch.as_ref().map(|batch| {
            let behind = |axis: usize| axis + indices.rank() - 1;
            batch.not_along(&[self.axis])?.moved(|axis| Some(if axis < self.axis { axis } else { behind(axis) }))
        });
        let from_indices = indices.batch.as_ref().map(|batch| batch.moved(|axis| Some(axis + self.axis)));
        let batch = match (from_data.transpose()?, from_indices.transpose()?) {
            (Some(a), Some(b)) => Some(a.meet(&b)?),
            (a, b) => a.or(b),
        };
        Ok(Meta { shape, batch })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn differentiable(&self, which: usize) -> bool {
        which == 0
    }

    fn outer_shape(&self, which: usize, inputs: &[&Meta], _: &Meta) -> Option<OuterShape> {
        let (data, indices) = (inputs[0], inputs[1]);
        if which != 0 || self.axis != 0 || data.is_batched() || !indices.is_batched() {
            return None;
        }
        let (_, left, right) = around(&data.shape, 0);
        Some(OuterShape { positions: indices.numel(), left, right, right_major: false, one_hot: true })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Gather {
    /// Calls `body(entry of data, entry of y, length)` for every run.
    #[inline(always)]
    fn runs<T: Element>(&self, data_shape: &[usize], indices: &[T], mut body: impl FnMut(usize, usize, usize)) {
        let (outer, size, inner) = around(data_shape, self.axis);
        let mut to = 0;
        for block in 0..outer {
            for &index in indices {
                body((block * size + position(index, size)) * inner, to, inner);
                to += inner;
            }
        }
    }

    fn values<T: Element>(&self, data: &[T], shape: &[usize], indices: &[T], y: &mut [T]) {
        self.runs(shape, indices, |from, to, length| match length {
            1 => y[to] = data[from],
            _ => y[to..to + length].copy_from_slice(&data[from..from + length]),
        });
    }

    fn scatter<T: Element>(&self, dy: &[T], shape: &[usize], indices: &[T], dx: &mut [T]) {
        self.runs(shape, indices, |to, from, length| {
            dx[to..to + length].iter_mut().zip(&dy[from..from + length]).for_each(|(dx, &dy)| *dx += dy);
        });
    }
}

impl<T: Element> OpKernel<T> for Gather {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (data, indices) = (call.arg(0), call.arg(1));
        let size = numel(call.result().shape);
        for sample in 0..call.n_results() {
            let y = &mut y[sample * size..(sample + 1) * size];
            self.values(data.sample(sample), data.shape, indices.sample(sample), y);
        }
    }

    fn vjp(&self, call: &Call<'_, T>, dy: &[T], seeds: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        let (data, indices) = (call.arg(0), call.arg(1));
        let (own, size) = (data.numel(), numel(call.result().shape));
        clear(dx, add);
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            self.scatter(dy, data.shape, indices.sample(at / seeds), dx);
        }
    }

    fn accumulate(&self, call: &Call<'_, T>, dy: &[T], which: usize, dx: &mut [T], _: &mut Scratch<T>) -> bool {
        let (data, indices) = (call.arg(0), call.arg(1));
        if which != 0 || data.batched {
            return false;
        }
        let size = numel(call.result().shape);
        for sample in 0..call.samples {
            self.scatter(&dy[sample * size..(sample + 1) * size], data.shape, indices.sample(sample), dx);
        }
        true
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let (Some(tangent), indices) = (tangents.operand(call, 0), call.arg(1)) else { return };
        let size = numel(call.result().shape);
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * size..(sample + 1) * size];
            self.values(tangent.sample(sample), tangent.shape, indices.sample(sample), dy);
        }
    }

    fn outer(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        _: usize,
        _: usize,
        left: &mut [T],
        right: &mut [T],
        _: &mut Scratch<T>,
    ) {
        let rows = call.arg(0).shape[0];
        let places = left.iter_mut().zip(call.arg(1).data);
        places.for_each(|(left, &index)| *left = T::narrow(position(index, rows) as f64));
        right.copy_from_slice(dy);
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
        // An embedding, and indices from the weights.
        check(Gather { axis: 0 }, &[shared(&[5, 3]), indices(batched(&[1, 4]))]);
        check(Gather { axis: 0 }, &[shared(&[5]), indices(batched(&[2]))]);
        check(Gather { axis: 0 }, &[shared(&[5, 2]), indices(shared(&[3]))]);
        check(Gather { axis: 1 }, &[batched(&[2, 4, 3]), indices(shared(&[2]))]);
        check(Gather { axis: 1 }, &[batched(&[1, 4, 3]), indices(shared(&[]))]);
        check(Gather { axis: 2 }, &[batched(&[1, 2, 4]), indices(shared(&[2, 2]))]);
        check(Gather { axis: 1 }, &[shared(&[2, 4, 3]), indices(batched(&[2, 1]))]);
        check(Gather { axis: 1 }, &[batched(&[1, 4, 2]), indices(batched(&[3]))]);
    }

    #[test]
    fn indices_count_from_both_ends() {
        let mut y = [0.0; 4];
        Gather { axis: 0 }.values(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2], &[-1.0, 0.0], &mut y);
        assert_eq!(y, [5.0, 6.0, 1.0, 2.0]);
        Gather { axis: 1 }.values(&[1.0, 2.0, 3.0, 4.0], &[2, 2], &[1.0, 9.0], &mut y);
        assert_eq!(y, [2.0, 2.0, 4.0, 4.0]);
    }

    #[test]
    fn the_batch_is_followed() {
        let infer = |axis, data: Meta, indices: Meta| Gather { axis }.infer(&[&data, &indices]);
        let tokens = Meta::batched([1, 7], Batch::axis(0));
        assert_eq!(infer(0, Meta::shared([9, 3]), tokens).unwrap(), Meta::batched([1, 7, 3], Batch::axis(0)));
        // x[:, 0] of a sequence-first and of a batch-first layout.
        let first = |axis, batch| infer(axis, Meta::batched([5, 1, 3], Batch::axis(batch)), Meta::shared([]));
        assert_eq!(first(0, 1).unwrap(), Meta::batched([1, 3], Batch::axis(0)));
        assert_eq!(first(1, 1), Err(InferError::Mixes));
    }
}
