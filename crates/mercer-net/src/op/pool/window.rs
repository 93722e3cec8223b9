//! Pools of any window: one point of the window at a time over whole rows of positions, which vectorises.

use super::geometry::Geometry;
use crate::element::Element;
use mercer_linalg::simd::dispatch;

/// Calls `row(plane, row, to)` for every row of positions of every channel, and after that `point(plane, from, end, to,
/// length)` for every point of the window that is inside at some of its positions: they read `from..end` in steps of the
/// stride, and are `to..to + length` of the result.
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
                let (inside, first) = g.inside(kw);
                if !inside.is_empty() {
                    let length = inside.len();
                    let from = line + first;
                    body(from, from + (length - 1) * g.strides[2] + 1, inside.start, length);
                }
            }
        }
    }
}

/// `y[i] = f(y[i], x[i·stride])`, with loops of their own for the usual strides.
#[inline(always)]
fn combine<T: Element>(y: &mut [T], x: &[T], stride: usize, f: impl Fn(T, T) -> T) {
    match stride {
        1 => y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(*y, x)),
        2 => {
            // The last pair may be half.
            let (last, y) = y.split_last_mut().expect("not empty");
            y.iter_mut().zip(x.as_chunks::<2>().0).for_each(|(y, x)| *y = f(*y, x[0]));
            *last = f(*last, x[x.len() - 1]);
        }
        _ => y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, &x)| *y = f(*y, x)),
    }
}

fn planes<T>(g: &Geometry, y: &[T]) -> usize {
    y.len().checked_div(g.plane_out()).unwrap_or(0)
}

/// The largest number in each window; samples are just more channels.
pub(super) fn largest<T: Element>(g: &Geometry, x: &[T], y: &mut [T]) {
    y.fill(T::neg_infinity());
    dispatch(|| {
        each_row(g, planes(g, y), |plane, at, to| {
            let row = &mut y[to..to + g.row()];
            each_point(g, plane, at, |from, end, start, length| {
                let larger = |y: T, x: T| if x > y { x } else { y };
                combine(&mut row[start..start + length], &x[from..end], g.strides[2], larger);
            });
        });
    });
}

/// One over the number of points that count along the last axis, for a row of positions.
fn row_scale<T: Element>(g: &Geometry, count_padding: bool, scale: &mut [T]) {
    for (at, scale) in scale.iter_mut().enumerate() {
        *scale = T::one() / T::of(g.count(2, at, count_padding).max(1) as f64);
    }
}

/// One over the number of points that count along the other axes.
fn outer_scale<T: Element>(g: &Geometry, [d, h]: [usize; 2], count_padding: bool) -> T {
    T::one() / T::of((g.count(0, d, count_padding) * g.count(1, h, count_padding)).max(1) as f64)
}

/// The average of each window; `scale` is memory for a row.
pub(super) fn average<T: Element>(g: &Geometry, x: &[T], y: &mut [T], count_padding: bool, scale: &mut [T]) {
    row_scale(g, count_padding, scale);
    y.fill(T::zero());
    dispatch(|| {
        each_row(g, planes(g, y), |plane, at, to| {
            let row = &mut y[to..to + g.row()];
            each_point(g, plane, at, |from, end, start, length| {
                combine(&mut row[start..start + length], &x[from..end], g.strides[2], |y, x| y + x);
            });
            let outer: T = outer_scale(g, at, count_padding);
            row.iter_mut().zip(&*scale).for_each(|(y, &scale)| *y *= outer * scale);
        });
    });
}

/// Adds the cotangent of averages to `dx`; samples and seeds are just more channels.
pub(super) fn average_back<T: Element>(
    g: &Geometry,
    dy: &[T],
    dx: &mut [T],
    count_padding: bool,
    scale: &mut [T],
    scaled: &mut [T],
) {
    row_scale(g, count_padding, scale);
    dispatch(|| {
        each_row(g, planes(g, dy), |plane, at, to| {
            let outer: T = outer_scale(g, at, count_padding);
            let terms = scaled.iter_mut().zip(dy[to..to + g.row()].iter().zip(&*scale));
            terms.for_each(|(scaled, (&dy, &scale))| *scaled = dy * (outer * scale));
            each_point(g, plane, at, |from, end, start, length| {
                let dx = dx[from..end].iter_mut().step_by(g.strides[2]);
                dx.zip(&scaled[start..start + length]).for_each(|(dx, &dy)| *dx += dy);
            });
        });
    });
}

/// Finds the first maximum of each window again: `body(at, from, end, step, hits)` says for positions `at..` of the result
/// which of the elements `from..end` in steps of `step` they are (1) and are not (0). `hits` and `open` are memory for a
/// row.
#[inline(always)]
pub(super) fn hits<T: Element>(
    g: &Geometry,
    x: &[T],
    y: &[T],
    hits: &mut [T],
    open: &mut [T],
    mut body: impl FnMut(usize, usize, usize, usize, &[T]),
) {
    let (zero, one) = (T::zero(), T::one());
    dispatch(|| {
        each_row(g, planes(g, y), |plane, at, to| {
            open.fill(one);
            each_point(g, plane, at, |from, end, start, length| {
                let (hits, open) = (&mut hits[..length], &mut open[start..start + length]);
                let pairs = x[from..end].iter().step_by(g.strides[2]).zip(&y[to + start..to + start + length]);
                for ((hit, open), (&x, &y)) in hits.iter_mut().zip(open).zip(pairs) {
                    *hit = if x == y { *open } else { zero };
                    *open -= *hit;
                }
                body(to + start, from, end, g.strides[2], hits);
            });
        });
    });
}
