//! The arithmetic of sliding windows, shared by convolutions and pools. There are always three spatial axes here;
//! missing ones have size one.

use crate::op::InferError;
use std::ops::Range;

/// The most points along a spatial axis, padding included.
const LARGEST: usize = 1 << 31;

/// How a window slides over one to three spatial axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The stride, one per spatial axis.
    pub strides: Vec<usize>,
    /// The dilation: the distance between the points of the window.
    pub dilations: Vec<usize>,
    /// Padding before the first point.
    pub before: Vec<usize>,
    /// Padding after the last point.
    pub after: Vec<usize>,
}

impl Window {
    /// A window with stride one, without padding.
    pub fn plain(axes: usize) -> Self {
        Self { strides: vec![1; axes], dilations: vec![1; axes], before: vec![0; axes], after: vec![0; axes] }
    }

    /// The size of the result along each axis; with `round_up`, the last window may extend past the end.
    pub fn output(&self, input: &[usize], kernel: &[usize], round_up: bool) -> Result<Vec<usize>, InferError> {
        let fits = [&self.strides, &self.dilations, &self.before, &self.after].iter().all(|v| v.len() == input.len());
        if !fits || kernel.len() != input.len() || self.strides.contains(&0) || self.dilations.contains(&0) {
            return Err(InferError::Shape("the window does not match the spatial axes".into()));
        }
        (0..input.len())
            .map(|axis| {
                let dilation = self.dilations[axis];
                let extent = kernel[axis].checked_sub(1).map(|k| k.saturating_mul(dilation).saturating_add(1));
                let padded = input[axis].saturating_add(self.before[axis]).saturating_add(self.after[axis]);
                if padded > LARGEST {
                    return Err(InferError::Shape(format!("{padded} points, including padding, are too many")));
                }
                let Some(room) = extent.and_then(|extent| padded.checked_sub(extent)) else {
                    return Err(InferError::Shape(format!("the window {kernel:?} is larger than the input")));
                };
                let stride = self.strides[axis];
                let mut size = (room / stride).saturating_add(1);
                if round_up
                    && !room.is_multiple_of(stride)
                    && size.saturating_mul(stride) < input[axis].saturating_add(self.before[axis])
                {
                    size += 1;
                }
                Ok(size)
            })
            .collect()
    }
}

/// The sizes of a convolution with three spatial axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) images: usize,
    pub(super) channels: usize,
    pub(super) out: usize,
    pub(super) groups: usize,
    pub(super) input: [usize; 3],
    pub(super) kernel: [usize; 3],
    pub(super) output: [usize; 3],
    pub(super) strides: [usize; 3],
    pub(super) dilations: [usize; 3],
    pub(super) before: [usize; 3],
    after: [usize; 3],
}

/// The patches of one strip should fit into a second-level cache of 1 MiB, with some room to spare.
const STRIP_ELEMENTS: usize = 3 << 16;

fn three(sizes: &[usize], fill: usize) -> [usize; 3] {
    let mut padded = [fill; 3];
    padded[3 - sizes.len()..].copy_from_slice(sizes);
    padded
}

impl Geometry {
    pub(super) fn new(window: &Window, groups: usize, x: &[usize], w: &[usize], y: &[usize]) -> Self {
        Self {
            images: x[0],
            channels: x[1],
            out: w[0],
            groups,
            input: three(&x[2..], 1),
            kernel: three(&w[2..], 1),
            output: three(&y[2..], 1),
            strides: three(&window.strides, 1),
            dilations: three(&window.dilations, 1),
            before: three(&window.before, 0),
            after: three(&window.after, 0),
        }
    }

    /// Elements of a patch: the inner dimension of the product.
    pub(super) fn patch(&self) -> usize {
        self.channels / self.groups * self.kernel.iter().product::<usize>()
    }

    /// Positions of the window.
    pub(super) fn positions(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of an input image.
    pub(super) fn input_size(&self) -> usize {
        self.channels * self.input.iter().product::<usize>()
    }

    /// Whether the patches are the image itself.
    pub(super) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.strides == [1; 3] && self.before == [0; 3] && self.after == [0; 3]
    }

    /// Whether a plane of patches is a shifted plane of the image: stride one, rows of unchanged length, no depth.
    pub(super) fn is_shift(&self) -> bool {
        let fits = (self.kernel[2].max(1) - 1) * self.dilations[2] <= self.input[2] + self.before[2];
        let narrow = self.before[2] <= self.input[2] && fits;
        self.strides == [1; 3] && self.output[2] == self.input[2] && self.input[0] == 1 && self.kernel[0] == 1 && narrow
    }

    /// Whether a row of patches is a piece of a row of the image: no padding, stride one along rows, no depth.
    pub(super) fn is_piecewise(&self) -> bool {
        let plain = self.before == [0; 3] && self.after == [0; 3] && self.strides[2] == 1;
        plain && self.input[0] == 1 && self.kernel[0] == 1
    }

    fn rows_per_strip(&self) -> usize {
        let rows = self.output[0] * self.output[1];
        let row = (self.patch() * self.output[2]).max(1);
        let most = (STRIP_ELEMENTS / row).clamp(1, rows.max(1));
        // Strips of equal height.
        rows.max(1).div_ceil(rows.max(1).div_ceil(most))
    }

    /// Elements of memory for the patches of a strip.
    pub(super) fn strip_elements(&self) -> usize {
        if self.is_pointwise() { 0 } else { self.rows_per_strip() * self.output[2] * self.patch() }
    }

    /// The rows of output positions, cut into strips; one strip when no patches are made.
    pub(super) fn strips(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.output[0] * self.output[1];
        let step = if self.is_pointwise() { rows.max(1) } else { self.rows_per_strip() };
        (0..rows).step_by(step).map(move |start| start..(start + step).min(rows))
    }

    /// First position and number of positions of a strip.
    pub(super) fn span(&self, strip: &Range<usize>) -> (usize, usize) {
        (strip.start * self.output[2], strip.len() * self.output[2])
    }

    /// The index along an input axis that output position `at` reads through kernel point `k`, if it is inside.
    pub(super) fn source(&self, axis: usize, at: usize, k: usize) -> Option<usize> {
        let index = (at * self.strides[axis] + k * self.dilations[axis]).checked_sub(self.before[axis])?;
        (index < self.input[axis]).then_some(index)
    }

    /// The output positions along the last axis at which kernel point `k` is inside the input.
    pub(super) fn inside(&self, k: usize) -> Range<usize> {
        let (stride, shift) = (self.strides[2], k * self.dilations[2]);
        let first = self.before[2].saturating_sub(shift).div_ceil(stride).min(self.output[2]);
        let limit = (self.input[2] + self.before[2]).saturating_sub(shift).div_ceil(stride);
        first..limit.clamp(first, self.output[2])
    }
}
