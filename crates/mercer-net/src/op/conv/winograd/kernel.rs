//! The products at the points. Sums stay in registers: a few output channels times a few vectors of a row.

use super::{OUT, POINTS, Plan, points};
use crate::element::Element;
use mercer_linalg::simd::dispatch;
use std::ops::Range;

/// Numbers in a vector: a register of `f32`, two of `f64`.
pub(super) const LANES: usize = 8;

/// The most vectors of positions that are processed together.
pub(super) const AT_ONCE: usize = 2;

/// A vector of a row. (Loops here, and neither `from_fn` nor `copy_from_slice`: a function that is not inlined is compiled
/// for the baseline.)
#[inline(always)]
pub(super) fn load<T: Element>(x: &[T], at: usize) -> [T; LANES] {
    let from = &x[at..at + LANES];
    let mut vector = [T::zero(); LANES];
    for lane in 0..LANES {
        vector[lane] = from[lane];
    }
    vector
}

/// Writes a vector to the beginning of a row.
#[inline(always)]
pub(super) fn store<T: Element, const N: usize>(to: &mut [T], vector: &[T; N]) {
    let to = &mut to[..N];
    for lane in 0..N {
        to[lane] = vector[lane];
    }
}

/// `OUT × V` vectors of sums over channels and taps; `starts` are the vectors' places in the first channel.
#[inline(always)]
fn sums<T: Element, const V: usize, const TAPS: usize>(
    x: &[T],
    starts: [usize; V],
    channel: usize,
    weights: &[[[T; OUT]; TAPS]],
) -> [[[T; LANES]; V]; OUT] {
    let mut sums = [[[T::zero(); LANES]; V]; OUT];
    let mut at = 0;
    for weights in weights {
        let mut rows: [&[T]; V] = [&[]; V];
        for v in 0..V {
            rows[v] = &x[starts[v] + at..][..LANES + TAPS - 1];
        }
        for tap in 0..TAPS {
            for v in 0..V {
                let x = load(rows[v], tap);
                for o in 0..OUT {
                    let weight = weights[tap][o];
                    for lane in 0..LANES {
                        sums[o][v][lane] = x[lane].mul_add(weight, sums[o][v][lane]);
                    }
                }
            }
        }
        at += channel;
    }
    sums
}

/// The result's rows of some tiles from the image and the weight at the points; the buffers hold `rows` tiles.
pub(super) fn multiply<T: Element>(
    plan: &Plan,
    x: &[T],
    weights: &[T],
    products: &mut [T],
    tiles: Range<usize>,
    rows: usize,
    bias: Option<&[T]>,
    y: &mut [T],
    add: bool,
) {
    // As many sums as fit the sixteen registers that every machine has.
    match (size_of::<T>(), plan.taps) {
        (4, 3) => blocks::<T, 2, 3>(plan, x, weights, products, tiles, rows, bias, y, add),
        (4, _) => blocks::<T, 2, 5>(plan, x, weights, products, tiles, rows, bias, y, add),
        (_, 3) => blocks::<T, 1, 3>(plan, x, weights, products, tiles, rows, bias, y, add),
        _ => blocks::<T, 1, 5>(plan, x, weights, products, tiles, rows, bias, y, add),
    }
}

fn blocks<T: Element, const V: usize, const TAPS: usize>(
    plan: &Plan,
    x: &[T],
    weights: &[T],
    products: &mut [T],
    tiles: Range<usize>,
    rows: usize,
    bias: Option<&[T]>,
    y: &mut [T],
    add: bool,
) {
    let (pitch, pieces) = (plan.pitch(), plan.pieces());
    let channel = rows * pitch;
    let point = plan.channels * channel;
    let weights = weights.as_chunks::<OUT>().0.as_chunks::<TAPS>().0;
    let blocks = plan.out.div_ceil(OUT);
    let count = tiles.len() * pieces;
    dispatch(
        #[inline(always)]
        || {
            let products = products.as_chunks_mut::<LANES>().0.as_chunks_mut::<V>().0;
            for first in (0..count).step_by(V) {
                // Past the end, the last vector is computed again.
                let (mut places, mut starts) = ([0; V], [0; V]);
                for v in 0..V {
                    places[v] = (first + v).min(count - 1);
                    starts[v] = places[v] / pieces * pitch + places[v] % pieces * LANES;
                }
                for (index, weights) in weights.chunks_exact(plan.channels).enumerate() {
                    let x = &x[index / blocks * point..][..point];
                    let sums = sums::<T, V, TAPS>(x, starts, channel, weights);
                    let products = &mut products[index * OUT..][..OUT];
                    for o in 0..OUT {
                        products[o] = sums[o];
                    }
                }
                for (v, &place) in places.iter().enumerate() {
                    let (tile, column) = (tiles.start + place / pieces, place % pieces * LANES);
                    for out in 0..plan.out {
                        let mut values = [[T::zero(); LANES]; POINTS];
                        for (point, values) in values.iter_mut().enumerate() {
                            *values = products[point * blocks * OUT + out][v];
                        }
                        let base = bias.map_or(T::zero(), |bias| bias[out]);
                        if first + v < count {
                            points::lower_rows(plan, values, [out, tile, column], base, y, add);
                        }
                    }
                }
            }
        },
    );
}

/// Adds the products of slopes and image, summed over rows and columns, to `sums`, which is laid out as the weights;
/// `rows` are the capacity and the number in use.
pub(super) fn correlate<T: Element>(plan: &Plan, x: &[T], slopes: &[T], rows: [usize; 2], sums: &mut [T]) {
    match plan.taps {
        3 => correlations::<T, 4, 3>(plan, x, slopes, rows, sums),
        _ => correlations::<T, 2, 5>(plan, x, slopes, rows, sums),
    }
}

fn correlations<T: Element, const O: usize, const TAPS: usize>(
    plan: &Plan,
    x: &[T],
    slopes: &[T],
    [rows, used]: [usize; 2],
    sums: &mut [T],
) {
    let (pitch, pitch_out) = (plan.pitch(), plan.pitch_out());
    let (channel, channel_out) = (rows * pitch, rows * pitch_out);
    let blocks = plan.out.div_ceil(OUT);
    let sums = sums.as_chunks_mut::<OUT>().0.as_chunks_mut::<TAPS>().0;
    dispatch(
        #[inline(always)]
        || {
            for (index, sums) in sums.chunks_exact_mut(plan.channels).enumerate() {
                let (point, block) = (index / blocks, index % blocks);
                let x = &x[point * plan.channels * channel..][..plan.channels * channel];
                let slopes = &slopes[point * plan.out * channel_out..][..plan.out * channel_out];
                for out in (block * OUT..((block + 1) * OUT).min(plan.out)).step_by(O) {
                    // Past the last channel, it is computed again and discarded.
                    let mut rows: [&[T]; O] = [&[]; O];
                    for (o, row) in rows.iter_mut().enumerate() {
                        *row = &slopes[(out + o).min(plan.out - 1) * channel_out..][..channel_out];
                    }
                    for (x, sums) in x.chunks_exact(channel).zip(sums.iter_mut()) {
                        let products = products::<T, O, TAPS>(rows, &x[..used * pitch], pitch_out, pitch);
                        for (tap, sums) in sums.iter_mut().enumerate() {
                            for o in 0..O.min(plan.out - out) {
                                sums[out % OUT + o] += products[o][tap];
                            }
                        }
                    }
                }
            }
        },
    );
}

/// `Σ slopes · x` over the rows, for each tap.
#[inline(always)]
fn products<T: Element, const O: usize, const TAPS: usize>(
    slopes: [&[T]; O],
    x: &[T],
    pitch_out: usize,
    pitch: usize,
) -> [[T; TAPS]; O] {
    let mut sums = [[[T::zero(); LANES]; TAPS]; O];
    for (row, x) in x.chunks_exact(pitch).enumerate() {
        for column in (0..pitch_out).step_by(LANES) {
            let x = &x[column..][..LANES + TAPS - 1];
            for o in 0..O {
                let slope = load(slopes[o], row * pitch_out + column);
                for tap in 0..TAPS {
                    let x = load(x, tap);
                    for lane in 0..LANES {
                        sums[o][tap][lane] = x[lane].mul_add(slope[lane], sums[o][tap][lane]);
                    }
                }
            }
        }
    }
    let mut totals = [[T::zero(); TAPS]; O];
    for o in 0..O {
        for tap in 0..TAPS {
            totals[o][tap] = total(sums[o][tap]);
        }
    }
    totals
}

/// The sum of a vector, in halves.
#[inline(always)]
fn total<T: Element>(x: [T; LANES]) -> T {
    let mut four = [T::zero(); 4];
    for lane in 0..4 {
        four[lane] = x[lane] + x[lane + 4];
    }
    (four[0] + four[2]) + (four[1] + four[3])
}
