//! Primitives of one operand that are linear maps: `y = L x`, `dx = Lᵀ dy`, and the tangent is `L` again.

use super::{Call, Kernel, Scratch, Tangents};
use crate::element::Element;
use crate::shape::numel;

/// A linear map of one operand; implementing it gives all readings.
pub(super) trait Linear {
    /// `y = L x` for one sample.
    fn forward<T: Element>(&self, x: &[T], x_shape: &[usize], y: &mut [T], y_shape: &[usize]);

    /// `dx = Lᵀ dy`, or added to it, for one sample and seed.
    fn adjoint<T: Element>(&self, dy: &[T], y_shape: &[usize], dx: &mut [T], x_shape: &[usize], add: bool);
}

impl<T: Element, L: Linear> Kernel<T> for L {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (x, shape) = (call.arg(0), call.result().shape);
        let size = numel(shape);
        for sample in 0..call.n_results() {
            self.forward(x.sample(sample), x.shape, &mut y[sample * size..(sample + 1) * size], shape);
        }
    }

    fn vjp(&self, call: &Call<'_, T>, dy: &[T], seeds: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        let (x, shape) = (call.arg(0), call.result().shape);
        let (own, size) = (x.numel(), numel(shape));
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            self.adjoint(dy, shape, dx, x.shape, add);
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let Some(tangent) = tangents.of(call, 0) else { return };
        let shape = call.result().shape;
        let size = numel(shape);
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * size..(sample + 1) * size];
            self.forward(tangent.sample(sample), tangent.shape, dy, shape);
        }
    }
}

/// What an adjoint that only adds begins with.
pub(super) fn clear<T: Element>(dx: &mut [T], add: bool) {
    if !add {
        dx.fill(T::zero());
    }
}
