//! Pools of any window: one point of the window at a time over whole rows of positions, which vectorises.

use super::geometry::Geometry;
use crate::element::Element;
use mercer_linalg::simd::dispatch;

/// Calls `body(plane, [depth, height], to)` for every row of positions of every channel; the row starts at `to` in the
/// result.
#[inline(always)]
fn each_row(g: &Geometry, planes: usize, mut body: impl FnMut(usize, [usize; 2], usize)) {
    let mut to = 0;
    for plane in 0..planes {
        for d in 0..g.output[0] {
            for h in 0..g.output[1] {
                body(plane, [d, h], to);
                to += g.row();
            }
        }
    }
}

/// Calls `body(from, end, start, length)` for every point of the window, in order, that is inside at some positions of
/// the row: these are `start..start + length` of it and read `from..end` of the input in steps of the stride.
#[inline(always)]
fn each_point(g: &Geometry, plane: usize, [d, h]: [usize; 2], mut body: impl FnMut(usize, usize, usize, usize)) {
    let [depth, height, width] = g.input;
    for kd in 0..g.kernel[0] {
        let Some(z) = g.source(0, d, kd) else { continue };
        for kh in 0..g.kernel[1] {
            let Some(y) = g.source(1, h, kh) else { continue };
            let line = ((plane * depth + z) * height + y) * width;
            for kw in 0..g.kernel[2] {
                let inside = g.inside(kw);
                if inside.length > 0 {
                    let from = line + inside.from;
                    body(from, from + (inside.length - 1) * g.strides[2] + 1, inside.start, inside.length);
                }
            }
        }
    }
}

/// Positions handled at once. Rows of pools are short, and the compiler would otherwise unroll so far that the whole
/// row is remainder.
const LANES: usize = 8;

/// A few elements, read before anything is written: the compiler cannot know that slices do not overlap.
#[inline(always)]
fn take<T: Element, const STRIDE: usize>(x: &[T]) -> [T; LANES] {
    let x = &x[..(LANES - 1) * STRIDE + 1];
    std::array::from_fn(|lane| x[lane * STRIDE])
}

/// `y[i] = f(y[i], x[i·stride])`, with separate loops for the usual strides.
#[inline(always)]
fn combine<T: Element>(y: &mut [T], x: &[T], stride: usize, f: impl Fn(T, T) -> T) {
    #[inline(always)]
    fn spaced<T: Element, const STRIDE: usize>(y: &mut [T], x: &[T], f: impl Fn(T, T) -> T) {
        let (blocks, rest) = y.as_chunks_mut::<LANES>();
        let done = blocks.len() * LANES * STRIDE;
        for (block, y) in blocks.iter_mut().enumerate() {
            let x = take::<T, STRIDE>(&x[block * LANES * STRIDE..]);
            let old = *y;
            *y = std::array::from_fn(|lane| f(old[lane], x[lane]));
        }
        for (lane, y) in rest.iter_mut().enumerate() {
            *y = f(*y, x[done + lane * STRIDE]);
        }
    }
    match stride {
        1 => spaced::<T, 1>(y, x, f),
        2 => spaced::<T, 2>(y, x, f),
        _ => y.iter_mut().enumerate().for_each(|(at, y)| *y = f(*y, x[at * stride])),
    }
}

/// `x[i·stride] += y[i]`.
#[inline(always)]
fn add_spaced<T: Element>(x: &mut [T], y: &[T], stride: usize) {
    #[inline(always)]
    fn spaced<T: Element, const STRIDE: usize>(x: &mut [T], y: &[T]) {
        let (blocks, rest) = y.as_chunks::<LANES>();
        let done = blocks.len() * LANES * STRIDE;
        for (block, y) in blocks.iter().enumerate() {
            let x = &mut x[block * LANES * STRIDE..][..(LANES - 1) * STRIDE + 1];
            let (old, new) = (take::<T, STRIDE>(x), *y);
            (0..LANES).for_each(|lane| x[lane * STRIDE] = old[lane] + new[lane]);
        }
        for (lane, &y) in rest.iter().enumerate() {
            x[done + lane * STRIDE] += y;
        }
    }
    match stride {
        1 => spaced::<T, 1>(x, y),
        2 => spaced::<T, 2>(x, y),
        _ => y.iter().enumerate().for_each(|(at, &y)| x[at * stride] += y),
    }
}

/// `x[i·stride] += y[i] · hits[i]`.
#[inline(always)]
pub(super) fn add_hits<T: Element>(x: &mut [T], y: &[T], hits: &[T], stride: usize) {
    if stride != 1 {
        for (lane, (&y, &hit)) in y.iter().zip(hits).enumerate() {
            x[lane * stride] += y * hit;
        }
        return;
    }
    let ((x, x_rest), (y, y_rest), (hits, hits_rest)) =
        (x.as_chunks_mut::<LANES>(), y.as_chunks::<LANES>(), hits.as_chunks::<LANES>());
    for ((x, y), hits) in x.iter_mut().zip(y).zip(hits) {
        let (old, y, hits) = (*x, *y, *hits);
        *x = std::array::from_fn(|lane| old[lane] + y[lane] * hits[lane]);
    }
    x_rest.iter_mut().zip(y_rest).zip(hits_rest).for_each(|((x, &y), &hit)| *x += y * hit);
}

/// `hits = open` where `x[i·stride] = y[i]`, else 0. Positions that were hit are no longer open.
#[inline(always)]
fn compare<T: Element>(x: &[T], y: &[T], stride: usize, hits: &mut [T], open: &mut [T]) {
    // Gather first, so that the rest is a loop over contiguous slices.
    combine(hits, x, stride, |_, x| x);
    let ((hits, hits_rest), (open, open_rest)) = (hits.as_chunks_mut::<LANES>(), open.as_chunks_mut::<LANES>());
    let (y, y_rest) = y.as_chunks::<LANES>();
    for ((hits, open), y) in hits.iter_mut().zip(open).zip(y) {
        let (x, was, y) = (*hits, *open, *y);
        let hit: [T; LANES] = std::array::from_fn(|lane| if x[lane] == y[lane] { was[lane] } else { T::zero() });
        *hits = hit;
        *open = std::array::from_fn(|lane| was[lane] - hit[lane]);
    }
    for ((hit, open), &y) in hits_rest.iter_mut().zip(open_rest).zip(y_rest) {
        *hit = if *hit == y { *open } else { T::zero() };
        *open -= *hit;
    }
}

fn planes<T>(g: &Geometry, y: &[T]) -> usize {
    y.len().checked_div(g.plane_out()).unwrap_or(0)
}

/// The largest number in each window. Samples are treated as further channels.
pub(super) fn largest<T: Element>(g: &Geometry, x: &[T], y: &mut [T]) {
    y.fill(T::neg_infinity());
    dispatch(
        #[inline(always)]
        || {
            each_row(
                g,
                planes(g, y),
                #[inline(always)]
                |plane, at, to| {
                    let row = &mut y[to..to + g.row()];
                    each_point(
                        g,
                        plane,
                        at,
                        #[inline(always)]
                        |from, end, start, length| {
                            combine(&mut row[start..start + length], &x[from..end], g.strides[2], |y, x| {
                                if x > y { x } else { y }
                            });
                        },
                    );
                },
            );
        },
    );
}

/// One over the number of points that count along the last axis, for a row of positions.
fn row_scale<T: Element>(g: &Geometry, count_padding: bool, scale: &mut [T]) {
    for (at, scale) in scale.iter_mut().enumerate() {
        *scale = T::one() / T::narrow(g.count(2, at, count_padding).max(1) as f64);
    }
}

/// One over the number of points that count along the other axes.
fn outer_scale<T: Element>(g: &Geometry, [d, h]: [usize; 2], count_padding: bool) -> T {
    T::one() / T::narrow((g.count(0, d, count_padding) * g.count(1, h, count_padding)).max(1) as f64)
}

/// The average of each window; `scale` is memory for a row.
pub(super) fn average<T: Element>(g: &Geometry, x: &[T], y: &mut [T], count_padding: bool, scale: &mut [T]) {
    row_scale(g, count_padding, scale);
    y.fill(T::zero());
    dispatch(
        #[inline(always)]
        || {
            each_row(
                g,
                planes(g, y),
                #[inline(always)]
                |plane, at, to| {
                    let row = &mut y[to..to + g.row()];
                    each_point(
                        g,
                        plane,
                        at,
                        #[inline(always)]
                        |from, end, start, length| {
                            combine(&mut row[start..start + length], &x[from..end], g.strides[2], |y, x| y + x);
                        },
                    );
                    let outer: T = outer_scale(g, at, count_padding);
                    row.iter_mut().zip(&*scale).for_each(|(y, &scale)| *y *= outer * scale);
                },
            );
        },
    );
}

/// Adds the cotangent of averages to `dx`. Samples and seeds are treated as further channels.
pub(super) fn average_back<T: Element>(
    g: &Geometry,
    dy: &[T],
    dx: &mut [T],
    count_padding: bool,
    scale: &mut [T],
    scaled: &mut [T],
) {
    row_scale(g, count_padding, scale);
    dispatch(
        #[inline(always)]
        || {
            each_row(
                g,
                planes(g, dy),
                #[inline(always)]
                |plane, at, to| {
                    let outer: T = outer_scale(g, at, count_padding);
                    let terms = scaled.iter_mut().zip(dy[to..to + g.row()].iter().zip(&*scale));
                    terms.for_each(|(scaled, (&dy, &scale))| *scaled = dy * (outer * scale));
                    each_point(
                        g,
                        plane,
                        at,
                        #[inline(always)]
                        |from, end, start, length| {
                            add_spaced(&mut dx[from..end], &scaled[start..start + length], g.strides[2]);
                        },
                    );
                },
            );
        },
    );
}

/// Finds the first maximum of each window again: `body(at, from, end, step, hits)` tells for positions `at..` of the
/// result whether their maximum is (1) or is not (0) the element of `from..end` in steps of `step`. `hits` and `open`
/// are memory for a row.
#[inline(always)]
pub(super) fn hits<T: Element>(
    g: &Geometry,
    x: &[T],
    y: &[T],
    hits: &mut [T],
    open: &mut [T],
    mut body: impl FnMut(usize, usize, usize, usize, &[T]),
) {
    dispatch(
        #[inline(always)]
        || {
            each_row(
                g,
                planes(g, y),
                #[inline(always)]
                |plane, at, to| {
                    open.fill(T::one());
                    each_point(
                        g,
                        plane,
                        at,
                        #[inline(always)]
                        |from, end, start, length| {
                            let (hits, open) = (&mut hits[..length], &mut open[start..start + length]);
                            compare(&x[from..end], &y[to + start..to + start + length], g.strides[2], hits, open);
                            body(to + start, from, end, g.strides[2], hits);
                        },
                    );
                },
            );
        },
    );
}
