//! Primitives of one operand that are linear maps: `y = L x`, `dx = Lᵀ dy`, and the tangent is `L` again.

use super::{Call, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::shape::numel;
use mercer_linalg::simd::dispatch;

/// A linear map of one operand; implementing it gives all readings.
pub(super) trait Linear {
    /// `y = L x` for one sample.
    fn forward<T: Element>(&self, x: &[T], x_shape: &[usize], y: &mut [T], y_shape: &[usize]);

    /// `dx = Lᵀ dy`, or added to it, for one sample and seed.
    fn adjoint<T: Element>(&self, dy: &[T], y_shape: &[usize], dx: &mut [T], x_shape: &[usize], add: bool);

    /// The offset of the result in the operand, if it is one contiguous piece. Such copies are made for all samples at
    /// once.
    fn piece(&self, _x_shape: &[usize]) -> Option<usize> {
        None
    }
}

impl<T: Element, L: Linear> OpKernel<T> for L {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (x, shape) = (call.arg(0), call.result().shape);
        let size = numel(shape);
        if let (Some(start), true) = (self.piece(x.shape), x.batched) {
            return copy_rows(call.samples, size, (x.data, start, x.numel()), (y, 0, size));
        }
        for sample in 0..call.n_results() {
            self.forward(x.sample(sample), x.shape, &mut y[sample * size..(sample + 1) * size], shape);
        }
    }

    fn vjp(&self, call: &Call<'_, T>, dy: &[T], seeds: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        let (x, shape) = (call.arg(0), call.result().shape);
        let (own, size) = (x.numel(), numel(shape));
        if let Some(start) = self.piece(x.shape) {
            clear(dx, add);
            return add_rows(call.samples * seeds, size, (dy, 0, size), (dx, start, own));
        }
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            self.adjoint(dy, shape, dx, x.shape, add);
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let Some(tangent) = tangents.operand(call, 0) else { return };
        let shape = call.result().shape;
        let size = numel(shape);
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * size..(sample + 1) * size];
            self.forward(tangent.sample(sample), tangent.shape, dy, shape);
        }
    }
}

/// Rows of `length`, with an offset and a stride.
type Rows<A> = (A, usize, usize);

/// Rows up to this length are copied number by number, because a call to `memcpy` costs more.
const SHORT: usize = 64;

/// Copies rows from one array to another.
pub(super) fn copy_rows<T: Element>(rows: usize, length: usize, from: Rows<&[T]>, to: Rows<&mut [T]>) {
    if length > SHORT {
        for row in 0..rows {
            to.0[to.1 + row * to.2..][..length].copy_from_slice(&from.0[from.1 + row * from.2..][..length]);
        }
        return;
    }
    each_row(rows, length, from, to, |to, from| *to = from);
}

/// Adds rows of one array to those of another.
pub(super) fn add_rows<T: Element>(rows: usize, length: usize, from: Rows<&[T]>, to: Rows<&mut [T]>) {
    each_row(rows, length, from, to, |to, from| *to += from);
}

fn each_row<T: Element>(
    rows: usize,
    length: usize,
    from: Rows<&[T]>,
    to: Rows<&mut [T]>,
    body: impl Fn(&mut T, T) + Copy,
) {
    dispatch(
        #[inline(always)]
        || {
            for row in 0..rows {
                let source = &from.0[from.1 + row * from.2..][..length];
                let target = &mut to.0[to.1 + row * to.2..][..length];
                target.iter_mut().zip(source).for_each(|(to, &from)| body(to, from));
            }
        },
    );
}

/// Clears the destination of an adjoint that only adds, unless the result is to be added.
pub(super) fn clear<T: Element>(dx: &mut [T], add: bool) {
    if !add {
        dx.fill(T::zero());
    }
}
