//! Matrix products: weights, and activations with each other.

use super::loops::{Loops, MAX_RANK};
use super::{Call, InferError, Op, OpKernel, OuterShape, Scratch, Tangents};
use crate::element::Element;
use crate::graph::{Meta, meet_all};
use crate::shape::{broadcast, numel};
use mercer_linalg::gemm;

/// `y = a · b` over the last two axes, broadcasting the others. With `transposed`, `b` is stored `[…, n, k]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMul {
    /// Whether the second operand is stored transposed.
    pub transposed: bool,
}

/// The sizes of a product: `a` is `m × k`, `b` is `k × n`.
#[derive(Clone, Copy)]
struct Sizes {
    m: usize,
    n: usize,
    k: usize,
}

impl MatMul {
    fn sizes(&self, a: &[usize], b: &[usize]) -> Sizes {
        let (m, k) = (a[a.len() - 2], a[a.len() - 1]);
        let n = if self.transposed { b[b.len() - 2] } else { b[b.len() - 1] };
        Sizes { m, n, k }
    }

    /// Row and column stride of `b` as a `k × n` matrix.
    fn b_strides(&self, s: Sizes) -> (usize, usize) {
        if self.transposed { (1, s.k) } else { (s.n, 1) }
    }

    /// Whether `b` is one matrix for all samples and leading axes, so that the rows of `a` can be stacked.
    fn stacked<T>(&self, call: &Call<'_, T>) -> bool {
        let b = call.arg(1);
        !b.batched && numel(&b.shape[..b.shape.len() - 2]) == 1
    }
}

/// Calls `body(a, b, y)` with the index of each matrix along the broadcast leading axes.
fn each_matrix(a: &[usize], b: &[usize], y: &[usize], mut body: impl FnMut(usize, usize, usize)) {
    let lead = &y[..y.len() - 2];
    let loops = Loops::broadcast(lead, [&a[..a.len() - 2], &b[..b.len() - 2]]);
    loops.runs(|start, length, offsets, strides| {
        for i in 0..length {
            body(offsets[0] + i * strides[0], offsets[1] + i * strides[1], start + i);
        }
    });
}

impl Op for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [a, b] = inputs else { return Err(InferError::Shape("needs two operands".into())) };
        if a.rank() < 2 || b.rank() < 2 {
            return Err(InferError::Shape("a matrix product needs matrices".into()));
        }
        let (ra, rb) = (a.rank(), b.rank());
        let b_k = if self.transposed { b.shape[rb - 1] } else { b.shape[rb - 2] };
        if a.shape[ra - 1] != b_k {
            return Err(InferError::Shape("inner dimensions of the product differ".into()));
        }
        let mut shape = broadcast(&a.shape[..ra - 2], &b.shape[..rb - 2])
            .ok_or_else(|| InferError::Shape("leading axes do not broadcast".into()))?;
        let s = self.sizes(&a.shape, &b.shape);
        shape.extend([s.m, s.n]);
        if shape.len() > MAX_RANK {
            return Err(InferError::Shape(format!("more than {MAX_RANK} axes")));
        }
        // The batch must not be contracted. As a row of `a` or a column of `b` it is preserved.
        let a_batch = a.batch.as_ref().map(|batch| batch.not_along(&[ra - 1])).transpose()?;
        let (inner, column) = if self.transposed { (rb - 1, rb - 2) } else { (rb - 2, rb - 1) };
        let b_batch = b.batch.as_ref().map(|batch| batch.not_along(&[inner])).transpose()?;
        let b_batch =
            b_batch.map(|batch| batch.moved(|axis| Some(if axis == column { rb - 1 } else { axis }))).transpose()?;
        // Of the last two axes of the result, each operand has one and is broadcast along the other.
        let [a_shape, b_shape] = [&a.shape, &b.shape].map(|own| {
            let mut own = own.clone();
            own.truncate(own.len() - 2);
            own.extend([s.m, s.n]);
            own
        });
        let batch = meet_all([(&a_shape[..], a_batch.as_ref()), (&b_shape[..], b_batch.as_ref())].into_iter(), &shape)?;
        Ok(Meta { shape, batch })
    }

    fn flops(&self, inputs: &[&Meta], output: &Meta) -> u64 {
        (output.numel() as u64).saturating_mul(2).saturating_mul(inputs[0].shape[inputs[0].rank() - 1] as u64)
    }

    fn outer_shape(&self, which: usize, inputs: &[&Meta], output: &Meta) -> Option<OuterShape> {
        let (a, b) = (inputs[0], inputs[1]);
        if which != 1 || !a.is_batched() || b.is_batched() || numel(&b.shape[..b.rank() - 2]) != 1 {
            return None;
        }
        let s = self.sizes(&a.shape, &b.shape);
        let positions = output.numel() / s.n.max(1);
        Some(OuterShape { positions, left: s.k, right: s.n, right_major: self.transposed, one_hot: false })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for MatMul {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (a, b) = (call.arg(0), call.arg(1));
        let s = self.sizes(a.shape, b.shape);
        let (rs, cs) = self.b_strides(s);
        if self.stacked(call) {
            let rows = y.len() / s.n.max(1);
            return gemm([rows, s.n, s.k], (a.data, s.k, 1), (b.data, rs, cs), false, y);
        }
        let shape = call.result().shape;
        let size = numel(shape);
        for sample in 0..call.n_results() {
            let (a_data, b_data) = (a.sample(sample), b.sample(sample));
            let y = &mut y[sample * size..(sample + 1) * size];
            each_matrix(a.shape, b.shape, shape, |at_a, at_b, at_y| {
                let (ma, mb) = (&a_data[at_a * s.m * s.k..], &b_data[at_b * s.k * s.n..]);
                gemm([s.m, s.n, s.k], (ma, s.k, 1), (mb, rs, cs), false, &mut y[at_y * s.m * s.n..]);
            });
        }
    }

    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        which: usize,
        dx: &mut [T],
        add: bool,
        _: &mut Scratch<T>,
    ) {
        let (a, b) = (call.arg(0), call.arg(1));
        let s = self.sizes(a.shape, b.shape);
        let (rs, cs) = self.b_strides(s);
        let shape = call.result().shape;
        let (size, own) = (numel(shape), call.arg(which).numel());
        if which == 0 && self.stacked(call) {
            let rows = dy.len() / s.n.max(1);
            return gemm([rows, s.k, s.n], (dy, s.n, 1), (b.data, cs, rs), add, dx);
        }
        if !add {
            dx.fill(T::zero());
        }
        for at in 0..call.samples * seeds {
            let (a_data, b_data) = (a.sample(at / seeds), b.sample(at / seeds));
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            each_matrix(a.shape, b.shape, shape, |at_a, at_b, at_y| {
                let dy = (&dy[at_y * s.m * s.n..], s.n, 1);
                let (ma, mb) = (&a_data[at_a * s.m * s.k..], &b_data[at_b * s.k * s.n..]);
                if which == 0 {
                    // dA = dY · Bᵀ
                    gemm([s.m, s.k, s.n], dy, (mb, cs, rs), true, &mut dx[at_a * s.m * s.k..]);
                } else if self.transposed {
                    // stored [n, k]: dYᵀ · A
                    gemm([s.n, s.k, s.m], (dy.0, 1, s.n), (ma, s.k, 1), true, &mut dx[at_b * s.k * s.n..]);
                } else {
                    // dB = Aᵀ · dY
                    gemm([s.k, s.n, s.m], (ma, 1, s.k), dy, true, &mut dx[at_b * s.k * s.n..]);
                }
            });
        }
    }

    fn accumulate(&self, call: &Call<'_, T>, dy: &[T], which: usize, dx: &mut [T], _: &mut Scratch<T>) -> bool {
        let a = call.arg(0);
        if which != 1 || !self.stacked(call) || !a.batched {
            return false;
        }
        let s = self.sizes(a.shape, call.arg(1).shape);
        let rows = dy.len() / s.n.max(1);
        if self.transposed {
            gemm([s.n, s.k, rows], (dy, 1, s.n), (a.data, s.k, 1), true, dx);
        } else {
            gemm([s.k, s.n, rows], (a.data, 1, s.k), (dy, s.n, 1), true, dx);
        }
        true
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let (a, b) = (call.arg(0), call.arg(1));
        let s = self.sizes(a.shape, b.shape);
        let (rs, cs) = self.b_strides(s);
        let shape = call.result().shape;
        let size = numel(shape);
        dy.fill(T::zero());
        let pairs = [(tangents.operand(call, 0), Some(b)), (Some(a), tangents.operand(call, 1))];
        for (a, b) in pairs {
            let (Some(a), Some(b)) = (a, b) else { continue };
            if self.stacked(call) {
                let rows = dy.len() / s.n.max(1);
                gemm([rows, s.n, s.k], (a.data, s.k, 1), (b.data, rs, cs), true, dy);
                continue;
            }
            for sample in 0..call.n_results() {
                let (a_data, b_data) = (a.sample(sample), b.sample(sample));
                let dy = &mut dy[sample * size..(sample + 1) * size];
                each_matrix(a.shape, b.shape, shape, |at_a, at_b, at_y| {
                    let (ma, mb) = (&a_data[at_a * s.m * s.k..], &b_data[at_b * s.k * s.n..]);
                    gemm([s.m, s.n, s.k], (ma, s.k, 1), (mb, rs, cs), true, &mut dy[at_y * s.m * s.n..]);
                });
            }
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
        // `a` is never smaller than the result's leading axes here: `b` is a single matrix.
        left.copy_from_slice(call.arg(0).data);
        right.copy_from_slice(dy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        check(MatMul { transposed: false }, &[batched(&[1, 4]), shared(&[4, 3])]);
        check(MatMul { transposed: true }, &[batched(&[5, 4]), shared(&[3, 4])]);
        check(MatMul { transposed: false }, &[batched(&[2, 5, 4]), shared(&[1, 4, 3])]);
        check(MatMul { transposed: false }, &[batched(&[2, 5, 4]), batched(&[2, 4, 3])]);
        check(MatMul { transposed: true }, &[batched(&[2, 5, 4]), batched(&[1, 3, 4])]);
        check(MatMul { transposed: false }, &[shared(&[5, 4]), batched(&[2, 4, 3])]);
        check(MatMul { transposed: false }, &[batched(&[1, 5, 4]), shared(&[2, 4, 3])]);
        check(MatMul { transposed: false }, &[batched(&[3, 1, 5, 4]), batched(&[2, 4, 3])]);
    }
}
