//! Rows of images and weights as values at the points 0, 1, −1, 2, −2 and ∞, and back.

use super::kernel::{LANES, load, store};
use super::{OUT, POINTS, Plan};
use crate::element::Element;
use mercer_linalg::simd::dispatch;
use std::ops::Range;

/// The finite points.
const AT: [f64; 5] = [0.0, 1.0, -1.0, 2.0, -2.0];

/// The divisors of the weight's values at each point, chosen so that [`lift`] has only integers.
const DIVISOR: [f64; POINTS] = [4.0, -6.0, -6.0, 24.0, 24.0, 1.0];

/// The position of an image's rows among those that are processed together.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// All rows.
    pub(super) rows: usize,
    /// The image's first.
    pub(super) first: usize,
}

/// `Bᵀ x`.
#[inline(always)]
fn lift<T: Element>(x: [T; POINTS]) -> [T; POINTS] {
    let (two, four, five) = (T::narrow(2.0), T::narrow(4.0), T::narrow(5.0));
    let (even, odd) = (x[4] - four * x[2], x[3] - four * x[1]);
    let (even2, odd2) = (x[4] - x[2], two * (x[3] - x[1]));
    [
        four * x[0] - five * x[2] + x[4],
        even + odd,
        even - odd,
        even2 + odd2,
        even2 - odd2,
        four * x[1] - five * x[3] + x[5],
    ]
}

/// Six vectors at once.
#[inline(always)]
fn each<T: Element, const N: usize, const M: usize, const L: usize>(
    x: [[T; L]; N],
    f: impl Fn([T; N]) -> [T; M],
) -> [[T; L]; M] {
    let mut y = [[T::zero(); L]; M];
    for lane in 0..L {
        let mut values = [T::zero(); N];
        for i in 0..N {
            values[i] = x[i][lane];
        }
        let values = f(values);
        for i in 0..M {
            y[i][lane] = values[i];
        }
    }
    y
}

/// The rows of some tiles of an image at the points: `[points, channels, rows, pitch]`. The padding is not written, so
/// it must already be zero.
pub(super) fn lift_image<T: Element>(plan: &Plan, x: &[T], tiles: Range<usize>, place: Place, lifted: &mut [T]) {
    let [height, width] = plan.input;
    let ([top, left], pitch) = (plan.before, plan.pitch());
    let point = plan.channels * place.rows * pitch;
    let zeros = [T::zero(); LANES];
    dispatch(
        #[inline(always)]
        || {
            for (channel, x) in x.chunks_exact(height * width).enumerate() {
                for (row, tile) in tiles.clone().enumerate() {
                    let at = (channel * place.rows + place.first + row) * pitch;
                    let first = tile * plan.rows_at_once();
                    let mut sources: [&[T]; POINTS] = [&zeros; POINTS];
                    for (k, source) in sources.iter_mut().enumerate() {
                        let row = (first + k).wrapping_sub(top);
                        if row < height {
                            *source = &x[row * width..(row + 1) * width];
                        }
                    }
                    for piece in 0..width.div_ceil(LANES) {
                        // The last vector ends where the row does.
                        let column = (piece * LANES).min(width - LANES);
                        let mut values = [[T::zero(); LANES]; POINTS];
                        for k in 0..POINTS {
                            values[k] = load(sources[k], if sources[k].len() == LANES { 0 } else { column });
                        }
                        let values = each(values, lift);
                        for p in 0..POINTS {
                            store(&mut lifted[p * point + at + left + column..], &values[p]);
                        }
                    }
                }
            }
        },
    );
}

/// `A dy`: the cotangent's rows of some tiles at the points, `[points, out, rows, pitch]`, zero beyond the image.
pub(super) fn lift_slopes<T: Element>(plan: &Plan, dy: &[T], tiles: Range<usize>, place: Place, lifted: &mut [T]) {
    let [height, width] = plan.output;
    let (count, pitch) = (plan.rows_at_once(), plan.pitch_out());
    let point = plan.out * place.rows * pitch;
    dispatch(
        #[inline(always)]
        || {
            for (out, dy) in dy.chunks_exact(height * width).enumerate() {
                for (row, tile) in tiles.clone().enumerate() {
                    let at = (out * place.rows + place.first + row) * pitch;
                    for column in (0..width).step_by(LANES) {
                        let rows = count.min(height - tile * count);
                        let mut values = [[T::zero(); LANES]; 4];
                        for (k, values) in values.iter_mut().enumerate().take(rows) {
                            let from = &dy[(tile * count + k) * width..][..width][column..];
                            match from.first_chunk() {
                                Some(from) => *values = *from,
                                None => values.iter_mut().zip(from).for_each(|(to, &from)| *to = from),
                            }
                        }
                        let values = each(
                            values,
                            #[inline(always)]
                            |dy| slopes(dy, count),
                        );
                        for p in 0..POINTS {
                            store(&mut lifted[p * point + at + column..], &values[p]);
                        }
                    }
                }
            }
        },
    );
}

/// `A dy` for `count` rows, 2 or 4; the others are zero.
#[inline(always)]
fn slopes<T: Element>(dy: [T; 4], count: usize) -> [T; POINTS] {
    let (two, four) = (T::narrow(2.0), T::narrow(4.0));
    let (even, odd) = (dy[0] + dy[2], dy[1] + dy[3]);
    let (even2, odd2) = (dy[0] + four * dy[2], two * (dy[1] + four * dy[3]));
    [dy[0], even + odd, even - odd, even2 + odd2, even2 - odd2, dy[count - 1]]
}

/// `Aᵀ` applied to the products: two or four rows of the result.
#[inline(always)]
fn lower<T: Element>(m: [T; POINTS], count: usize) -> [T; 4] {
    let (two, four) = (T::narrow(2.0), T::narrow(4.0));
    let (even, odd) = (m[1] + m[2], m[1] - m[2]);
    let (even2, odd2) = (m[3] + m[4], two * (m[3] - m[4]));
    let last = |row: usize| if row == count - 1 { m[5] } else { T::zero() };
    [m[0] + even + even2, odd + odd2 + last(1), even + four * even2, odd + four * odd2 + last(3)]
}

/// Writes or adds one vector of rows of the result, from the products at the points.
#[inline(always)]
pub(super) fn lower_rows<T: Element>(
    plan: &Plan,
    values: [[T; LANES]; POINTS],
    [out, tile, column]: [usize; 3],
    bias: T,
    y: &mut [T],
    add: bool,
) {
    let [height, width] = plan.output;
    let count = plan.rows_at_once();
    let values = each(
        values,
        #[inline(always)]
        |m| lower(m, count),
    );
    let rows = count.min(height - tile * count);
    for (k, values) in values.iter().enumerate().take(rows) {
        let to = &mut y[(out * height + tile * count + k) * width..][..width][column..];
        match to.first_chunk_mut::<LANES>() {
            Some(to) if add => {
                for lane in 0..LANES {
                    to[lane] += values[lane] + bias;
                }
            }
            Some(to) => {
                for lane in 0..LANES {
                    to[lane] = values[lane] + bias;
                }
            }
            None => {
                for (to, &value) in to.iter_mut().zip(values) {
                    let value = value + bias;
                    *to = if add { *to + value } else { value };
                }
            }
        }
    }
}

/// `G`: the factor of tap `k` of `taps` at each point.
fn factors<T: Element>(taps: usize, k: usize) -> [T; POINTS] {
    std::array::from_fn(|point| {
        let power = AT.get(point).map_or(f64::from(k + 1 == taps), |at| at.powi(k as i32));
        T::narrow(power / DIVISOR[point])
    })
}

/// `G w` as `[points, blocks, channels, taps, OUT]`, zero for the surplus output channels of the last block.
pub(super) fn lift_weights<T: Element>(plan: &Plan, w: &[T], turned: bool, weights: &mut [T]) {
    match plan.taps {
        3 => lift_windows::<T, 3>(plan, w, turned, weights),
        _ => lift_windows::<T, 5>(plan, w, turned, weights),
    }
}

fn lift_windows<T: Element, const TAPS: usize>(plan: &Plan, w: &[T], turned: bool, weights: &mut [T]) {
    let channels = plan.channels;
    let blocks = plan.out.div_ceil(OUT);
    let point = blocks * channels * TAPS * OUT;
    let mut factors_of = [[T::zero(); POINTS]; TAPS];
    for k in 0..TAPS {
        factors_of[k] = factors(TAPS, k);
    }
    let nothing = [[T::zero(); TAPS]; TAPS];
    let (windows, _) = w.as_chunks::<TAPS>().0.as_chunks::<TAPS>();
    dispatch(
        #[inline(always)]
        || {
            for block in 0..blocks {
                for channel in 0..channels {
                    let mut own = [&nothing; OUT];
                    for o in 0..OUT {
                        let out = block * OUT + o;
                        if out < plan.out {
                            own[o] = &windows[if turned { channel * plan.out + out } else { out * channels + channel }];
                        }
                    }
                    let at = (block * channels + channel) * TAPS * OUT;
                    for tap in 0..TAPS {
                        let mut values = [[T::zero(); OUT]; POINTS];
                        for k in 0..TAPS {
                            let (row, column) = if turned { (TAPS - 1 - k, TAPS - 1 - tap) } else { (k, tap) };
                            let mut from = [T::zero(); OUT];
                            for o in 0..OUT {
                                from[o] = own[o][row][column];
                            }
                            for p in 0..POINTS {
                                for o in 0..OUT {
                                    values[p][o] += factors_of[k][p] * from[o];
                                }
                            }
                        }
                        for p in 0..POINTS {
                            store(&mut weights[p * point + at + tap * OUT..], &values[p]);
                        }
                    }
                }
            }
        },
    );
}

/// `dw += Gᵀ sums`, from the layout of [`lift_weights`].
pub(super) fn lower_weights<T: Element>(plan: &Plan, sums: &[T], dw: &mut [T]) {
    let (taps, channels) = (plan.taps, plan.channels);
    let blocks = plan.out.div_ceil(OUT);
    let point = blocks * channels * taps * OUT;
    let factors: [[T; POINTS]; 5] = std::array::from_fn(|k| factors(taps, k));
    dispatch(
        #[inline(always)]
        || {
            for block in 0..blocks {
                for channel in 0..channels {
                    for tap in 0..taps {
                        let at = ((block * channels + channel) * taps + tap) * OUT;
                        for k in 0..taps {
                            let mut totals = [T::zero(); OUT];
                            for p in 0..POINTS {
                                let sums = &sums[p * point + at..][..OUT];
                                for o in 0..OUT {
                                    totals[o] += factors[k][p] * sums[o];
                                }
                            }
                            for (out, &total) in (block * OUT..plan.out).zip(&totals) {
                                dw[((out * channels + channel) * taps + k) * taps + tap] += total;
                            }
                        }
                    }
                }
            }
        },
    );
}
