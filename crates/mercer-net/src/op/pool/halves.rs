//! The most common pool: the maximum of 2 × 2 squares side by side, which halves an image.

use super::geometry::Geometry;
use crate::element::Element;
use mercer_linalg::simd::dispatch;

/// Calls `body(upper, to)` for every pair of rows that is pooled: the upper one starts at `upper`, the row of the result
/// at `to`.
#[inline(always)]
fn each_pair(g: &Geometry, planes: usize, mut body: impl FnMut(usize, usize)) {
    let [_, height, width] = g.input;
    let mut to = 0;
    for plane in 0..planes * g.input[0] {
        for row in 0..g.output[1] {
            body((plane * height + 2 * row) * width, to);
            to += g.row();
        }
    }
}

fn planes<T>(g: &Geometry, y: &[T]) -> usize {
    y.len().checked_div(g.plane_out()).unwrap_or(0)
}

#[inline(always)]
fn larger<T: Element>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// The largest number in each square; samples are just more channels.
pub(super) fn largest<T: Element>(g: &Geometry, x: &[T], y: &mut [T]) {
    let (width, used) = (g.input[2], 2 * g.row());
    dispatch(
        #[inline(always)]
        || {
            each_pair(
                g,
                planes(g, y),
                #[inline(always)]
                |upper, to| {
                    let (upper, lower) = (&x[upper..][..used], &x[upper + width..][..used]);
                    let pairs = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
                    for (y, (a, b)) in y[to..to + g.row()].iter_mut().zip(pairs) {
                        *y = larger(larger(a[0], a[1]), larger(b[0], b[1]));
                    }
                },
            );
        },
    );
}

/// The cotangent for one sample and all its seeds, written or added.
pub(super) fn largest_back<T: Element>(g: &Geometry, x: &[T], y: &[T], dy: &[T], dx: &mut [T], add: bool) {
    if x.is_empty() || y.is_empty() {
        return super::clear(dx, add);
    }
    for (dy, dx) in dy.chunks_exact(y.len()).zip(dx.chunks_exact_mut(x.len())) {
        if add {
            seed_back::<T, true>(g, x, y, dy, dx);
        } else {
            seed_back::<T, false>(g, x, y, dy, dx);
        }
    }
}

fn seed_back<T: Element, const ADD: bool>(g: &Geometry, x: &[T], y: &[T], dy: &[T], dx: &mut [T]) {
    let (width, used) = (g.input[2], 2 * g.row());
    if !ADD && (used < width || 2 * g.output[1] < g.input[1]) {
        // What no square covers.
        dx.fill(T::zero());
    }
    dispatch(
        #[inline(always)]
        || {
            each_pair(
                g,
                planes(g, y),
                #[inline(always)]
                |upper, to| {
                    let (da, db) = dx[upper..upper + width + used].split_at_mut(width);
                    let x = [&x[upper..][..used], &x[upper + width..][..used]];
                    let (y, dy) = (&y[to..to + g.row()], &dy[to..to + g.row()]);
                    pair_back::<T, ADD>(x[0], x[1], y, dy, &mut da[..used], db);
                },
            );
        },
    );
}

/// One pair of rows `a`, `b`. The slices are arguments because the compiler then knows that they do not overlap.
#[inline(always)]
fn pair_back<T: Element, const ADD: bool>(a: &[T], b: &[T], y: &[T], dy: &[T], da: &mut [T], db: &mut [T]) {
    let put = |to: &mut T, x: T| if ADD { *to += x } else { *to = x };
    let zero = T::zero();
    let squares = a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0);
    let into = da.as_chunks_mut::<2>().0.iter_mut().zip(db.as_chunks_mut::<2>().0);
    for (((a, b), (da, db)), (&y, &dy)) in squares.zip(into).zip(y.iter().zip(dy)) {
        // What is left of dy after each place: none once it found its own.
        let first = if a[0] == y { dy } else { zero };
        let rest = if a[0] == y { zero } else { dy };
        let second = if a[1] == y { rest } else { zero };
        let rest = if a[1] == y { zero } else { rest };
        let third = if b[0] == y { rest } else { zero };
        let rest = if b[0] == y { zero } else { rest };
        let fourth = if b[1] == y { rest } else { zero };
        put(&mut da[0], first);
        put(&mut da[1], second);
        put(&mut db[0], third);
        put(&mut db[1], fourth);
    }
}
