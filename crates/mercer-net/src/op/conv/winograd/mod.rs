//! Convolutions with 3 × 3 or 5 × 5 windows in half as many multiplications, without patches.
//!
//! Along the rows of an image a convolution with `r` taps is a product of polynomials, and `m = 7 − r` rows of its
//! result follow from values at six points (0, ±1, ±2, ∞) instead of `m·r` products: `y = Aᵀ[(G w) ∘ (Bᵀ x)]` (Winograd
//! 1980; Lavin and Gray 2016, arXiv 1509.09308, equation 8, there in two dimensions). Only the rows are transformed:
//! the sums over rows are contiguous, the window still slides along the columns, and in one dimension the rounding is
//! hardly more than that of the plain sum (measured for 64 channels in `f32`: 6·10⁻⁷ against 3·10⁻⁷ of the result's
//! norm, in either size of window).
//!
//! The reverse pass uses the same method twice: the cotangent of the image is a convolution of `dy` with the flipped
//! window, and that of the weight is `Gᵀ Σ (A dy) (Bᵀ x)`, summed over everything but the channels.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "counted loops over small arrays stay in registers, iterators and calls do not always"
)]

mod kernel;
mod points;

use super::geometry::Geometry;
use crate::element::Element;
use crate::op::Scratch;
use kernel::LANES;

/// Output channels that are processed together.
const OUT: usize = 4;

/// Points at which polynomials are evaluated.
const POINTS: usize = 6;

/// Elements of an image at the points that should stay in the second-level cache.
const CACHED: usize = 1 << 17;

/// The sizes of a convolution for this method: `out × channels` windows of `taps × taps`, with stride one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    channels: usize,
    out: usize,
    taps: usize,
    /// Rows and columns of the input and of the result, and the padding above and to the left.
    input: [usize; 2],
    output: [usize; 2],
    before: [usize; 2],
}

impl Plan {
    /// The plan of a convolution, if this method applies and is faster.
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        Self::fitting(g).filter(|plan| mercer_linalg::simd::is_fused() && plan.gains())
    }

    /// The plan of a convolution, if this method applies.
    pub(super) fn fitting(g: &Geometry) -> Option<Self> {
        let taps = g.kernel[1];
        let plain = g.groups == 1 && g.strides == [1; 3] && g.dilations == [1; 3] && g.input[0] == 1;
        if !plain || g.before[0] != 0 || g.kernel != [1, taps, taps] || !matches!(taps, 3 | 5) {
            return None;
        }
        let two = |sizes: [usize; 3]| [sizes[1], sizes[2]];
        let plan = Self {
            channels: g.channels,
            out: g.out,
            taps,
            input: two(g.input),
            output: two(g.output),
            before: two(g.before),
        };
        plan.is_wide().then_some(plan)
    }

    /// The plan of the cotangent of the image: a convolution of `dy`.
    pub(super) fn turned(&self) -> Option<Self> {
        let [top, left] = self.before;
        let before = [(self.taps - 1).checked_sub(top)?, (self.taps - 1).checked_sub(left)?];
        let (channels, out) = (self.out, self.channels);
        let plan = Self { channels, out, input: self.output, output: self.input, before, ..*self };
        plan.is_wide().then_some(plan)
    }

    /// Whether the method is faster, given that work past the edges of blocks is wasted.
    pub(super) fn gains(&self) -> bool {
        let [rows, columns] = self.output;
        let useful = (rows * columns * self.out * self.taps) as f64;
        let done = (POINTS * self.tiles() * self.pieces() * LANES * self.out.next_multiple_of(OUT)) as f64;
        // The cost of transforming the image and the result, relative to the products. The patches of the plain method
        // are not counted.
        let overhead = 1.0 + 6.0 / (self.channels * self.taps) as f64 + 2.0 / self.out as f64;
        useful > done * overhead
    }

    /// Whether a row of the image fills a vector.
    fn is_wide(&self) -> bool {
        self.input[1] >= LANES && !self.output.contains(&0)
    }

    /// Rows of the result that six points give.
    fn rows_at_once(&self) -> usize {
        POINTS + 1 - self.taps
    }

    /// Groups of such rows.
    fn tiles(&self) -> usize {
        self.output[0].div_ceil(self.rows_at_once())
    }

    /// Vectors in a row of the result.
    fn pieces(&self) -> usize {
        self.output[1].div_ceil(LANES)
    }

    /// Length of a row of the image at a point, padding included.
    fn pitch(&self) -> usize {
        self.pieces() * LANES + self.taps - 1
    }

    /// Length of a row of the result's cotangent at a point.
    fn pitch_out(&self) -> usize {
        self.pieces() * LANES
    }

    /// Elements of the weight at the points.
    fn weight_size(&self) -> usize {
        POINTS * self.out.next_multiple_of(OUT) * self.channels * self.taps
    }

    fn image_in(&self) -> usize {
        self.channels * self.input[0] * self.input[1]
    }

    fn image_out(&self) -> usize {
        self.out * self.output[0] * self.output[1]
    }

    /// Tiles of a strip, and the memory that [`convolve`](Self::convolve) needs.
    fn convolve_sizes(&self) -> (usize, [usize; 3]) {
        let row = POINTS * self.channels * self.pitch();
        let strip = (CACHED / row).clamp(1, self.tiles());
        let products = POINTS * self.out.next_multiple_of(OUT) * kernel::AT_ONCE * LANES;
        (strip, [strip * row, self.weight_size(), products])
    }

    /// Images of a group and tiles of a strip, and the memory that [`weight`](Self::weight) needs.
    fn weight_sizes(&self, images: usize) -> ([usize; 2], [usize; 3]) {
        let (row_in, row_out) = (POINTS * self.channels * self.pitch(), POINTS * self.out * self.pitch_out());
        // Whole images if some fit, else strips of one.
        let group = (2 * CACHED / ((row_in + row_out) * self.tiles())).clamp(1, images.max(1));
        let strip = if group > 1 { self.tiles() } else { (2 * CACHED / (row_in + row_out)).clamp(1, self.tiles()) };
        ([group, strip], [row_in * group * strip, row_out * group * strip, self.weight_size()])
    }

    /// Elements of memory for the result and for the cotangent of the image.
    pub(super) fn scratch(&self) -> usize {
        let turned = self.turned().filter(Self::gains).map_or(0, |turned| turned.convolve_sizes().1.iter().sum());
        turned.max(self.convolve_sizes().1.iter().sum())
    }

    /// `y = w ∗ x + bias`, or added to it, for all images. `w` is `[out, channels, taps, taps]`; with `turned` it is
    /// the weight of the forward convolution of which this is the reverse, `[channels, out, taps, taps]`.
    pub(super) fn convolve<T: Element>(
        &self,
        x: &[T],
        w: &[T],
        turned: bool,
        bias: Option<&[T]>,
        y: &mut [T],
        add: bool,
        scratch: &mut Scratch<T>,
    ) {
        if self.image_in() == 0 || self.image_out() == 0 {
            return;
        }
        let (strip, sizes) = self.convolve_sizes();
        let [lifted, weights, products] = scratch.take(sizes);
        points::lift_weights(self, w, turned, weights);
        lifted.fill(T::zero());
        let images = x.chunks_exact(self.image_in()).zip(y.chunks_exact_mut(self.image_out()));
        for (x, y) in images {
            for first in (0..self.tiles()).step_by(strip) {
                let tiles = first..(first + strip).min(self.tiles());
                let place = points::Place { rows: strip, first: 0 };
                points::lift_image(self, x, tiles.clone(), place, lifted);
                kernel::multiply(self, lifted, weights, products, tiles, strip, bias, y, add);
            }
        }
    }

    /// `dw += dy · xᵀ`, summed over all images.
    pub(super) fn weight<T: Element>(&self, dy: &[T], x: &[T], dw: &mut [T], scratch: &mut Scratch<T>) {
        if self.image_in() == 0 || self.image_out() == 0 {
            return;
        }
        let images = x.len() / self.image_in();
        let ([group, strip], sizes) = self.weight_sizes(images);
        let rows = group * strip;
        let [lifted, slopes, sums] = scratch.take(sizes);
        sums.fill(T::zero());
        lifted.fill(T::zero());
        for start in (0..images).step_by(group) {
            let group = group.min(images - start);
            for first in (0..self.tiles()).step_by(strip) {
                let tiles = first..(first + strip).min(self.tiles());
                for image in 0..group {
                    let (at_x, at_y) = ((start + image) * self.image_in(), (start + image) * self.image_out());
                    let place = points::Place { rows, first: image * tiles.len() };
                    points::lift_image(self, &x[at_x..][..self.image_in()], tiles.clone(), place, lifted);
                    points::lift_slopes(self, &dy[at_y..][..self.image_out()], tiles.clone(), place, slopes);
                }
                kernel::correlate(self, lifted, slopes, [rows, group * tiles.len()], sums);
            }
        }
        points::lower_weights(self, sums, dw);
    }
}
