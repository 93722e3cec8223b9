//! The sizes of a pool with three axes of space; missing ones have size one.

use crate::op::conv::Window;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) input: [usize; 3],
    pub(super) kernel: [usize; 3],
    pub(super) output: [usize; 3],
    pub(super) strides: [usize; 3],
    pub(super) dilations: [usize; 3],
    before: [usize; 3],
    after: [usize; 3],
}

fn three(sizes: &[usize], fill: usize) -> [usize; 3] {
    let mut padded = [fill; 3];
    padded[3 - sizes.len()..].copy_from_slice(sizes);
    padded
}

impl Geometry {
    pub(super) fn new(window: &Window, kernel: &[usize], x: &[usize], y: &[usize]) -> Self {
        Self {
            input: three(&x[2..], 1),
            kernel: three(kernel, 1),
            output: three(&y[2..], 1),
            strides: three(&window.strides, 1),
            dilations: three(&window.dilations, 1),
            before: three(&window.before, 0),
            after: three(&window.after, 0),
        }
    }

    /// Elements of one channel that comes in.
    pub(super) fn plane_in(&self) -> usize {
        self.input.iter().product()
    }

    /// Elements of one channel of the result.
    pub(super) fn plane_out(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of a row of the result.
    pub(super) fn row(&self) -> usize {
        self.output[2]
    }

    /// Whether windows are 2 × 2 squares side by side, none of them over the edge.
    pub(super) fn halves(&self) -> bool {
        let plain = self.before == [0; 3] && self.dilations == [1; 3];
        let inside = (1..3).all(|axis| 2 * self.output[axis] <= self.input[axis]);
        self.kernel == [1, 2, 2] && self.strides == [1, 2, 2] && self.input[0] == self.output[0] && plain && inside
    }

    /// The index that position `at` and window point `k` meet at, if it is inside.
    pub(super) fn source(&self, axis: usize, at: usize, k: usize) -> Option<usize> {
        let index = (at * self.strides[axis] + k * self.dilations[axis]).checked_sub(self.before[axis])?;
        (index < self.input[axis]).then_some(index)
    }

    /// The positions along the last axis at which window point `k` is inside, and the index it meets the first of them at.
    pub(super) fn inside(&self, k: usize) -> (Range<usize>, usize) {
        let (stride, shift) = (self.strides[2], k * self.dilations[2]);
        let first = self.before[2].saturating_sub(shift).div_ceil(stride).min(self.output[2]);
        let limit = (self.input[2] + self.before[2]).saturating_sub(shift).div_ceil(stride);
        let range = first..limit.clamp(first, self.output[2]);
        (range, (first * stride + shift).saturating_sub(self.before[2]))
    }

    /// How many points of the window at `at` count: those inside, or with `padding` inside of the padded input.
    pub(super) fn count(&self, axis: usize, at: usize, padding: bool) -> usize {
        if padding {
            let end = self.before[axis] + self.input[axis] + self.after[axis];
            let points = 0..self.kernel[axis];
            return points.filter(|k| at * self.strides[axis] + k * self.dilations[axis] < end).count();
        }
        (0..self.kernel[axis]).filter(|&k| self.source(axis, at, k).is_some()).count()
    }
}
