//! The sizes of a pool with three spatial axes; missing ones have size one.

use crate::op::conv::Window;

#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) input: [usize; 3],
    pub(super) kernel: [usize; 3],
    pub(super) output: [usize; 3],
    pub(super) strides: [usize; 3],
    pub(super) dilations: [usize; 3],
    before: [usize; 3],
    after: [usize; 3],
    /// Cached results of [`inside`](Self::inside) for the first points: a division costs more than a row of a small
    /// image.
    spans: [Span; 8],
}

/// Where a point of the window is inside the input along the last axis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    /// The first position.
    pub(super) start: usize,
    /// The number of positions.
    pub(super) length: usize,
    /// The index of the input at the first position.
    pub(super) from: usize,
}

fn three(sizes: &[usize], fill: usize) -> [usize; 3] {
    let mut padded = [fill; 3];
    padded[3 - sizes.len()..].copy_from_slice(sizes);
    padded
}

impl Geometry {
    pub(super) fn new(window: &Window, kernel: &[usize], x: &[usize], y: &[usize]) -> Self {
        let mut geometry = Self {
            input: three(&x[2..], 1),
            kernel: three(kernel, 1),
            output: three(&y[2..], 1),
            strides: three(&window.strides, 1),
            dilations: three(&window.dilations, 1),
            before: three(&window.before, 0),
            after: three(&window.after, 0),
            spans: Default::default(),
        };
        let spans: [Span; 8] = std::array::from_fn(|k| geometry.span(k));
        geometry.spans = spans;
        geometry
    }

    /// Elements of one channel of the result.
    pub(super) fn plane_out(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of a row of the result.
    pub(super) fn row(&self) -> usize {
        self.output[2]
    }

    /// Whether windows are adjacent 2 × 2 squares, none of them over the edge.
    pub(super) fn halves(&self) -> bool {
        let plain = self.before == [0; 3] && self.dilations == [1; 3];
        let inside = (1..3).all(|axis| 2 * self.output[axis] <= self.input[axis]);
        self.kernel == [1, 2, 2] && self.strides == [1, 2, 2] && self.input[0] == self.output[0] && plain && inside
    }

    /// The index that position `at` reads through window point `k`, if it is inside.
    #[inline(always)]
    pub(super) fn source(&self, axis: usize, at: usize, k: usize) -> Option<usize> {
        let index = (at * self.strides[axis] + k * self.dilations[axis]).checked_sub(self.before[axis])?;
        (index < self.input[axis]).then_some(index)
    }

    /// Where along the last axis window point `k` is inside.
    #[inline(always)]
    pub(super) fn inside(&self, k: usize) -> Span {
        if let Some(&span) = self.spans.get(k) { span } else { self.span(k) }
    }

    fn span(&self, k: usize) -> Span {
        let (stride, shift) = (self.strides[2], k * self.dilations[2]);
        let start = self.before[2].saturating_sub(shift).div_ceil(stride).min(self.output[2]);
        let limit = (self.input[2] + self.before[2]).saturating_sub(shift).div_ceil(stride);
        let length = limit.clamp(start, self.output[2]) - start;
        Span { start, length, from: (start * stride + shift).saturating_sub(self.before[2]) }
    }

    /// How many points of the window at `at` count: those inside the input or, with `padding`, inside the padded input.
    pub(super) fn count(&self, axis: usize, at: usize, padding: bool) -> usize {
        if padding {
            let end = self.before[axis] + self.input[axis] + self.after[axis];
            let points = 0..self.kernel[axis];
            return points.filter(|k| at * self.strides[axis] + k * self.dilations[axis] < end).count();
        }
        (0..self.kernel[axis]).filter(|&k| self.source(axis, at, k).is_some()).count()
    }
}
