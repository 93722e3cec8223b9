//! The most common pool: the maximum of adjacent 2 × 2 squares, which halves an image.

use super::geometry::Geometry;
use crate::element::Element;
use mercer_linalg::simd::dispatch;

/// Calls `body(upper, to)` for every pair of rows that is pooled: the upper one starts at `upper`, the row of the
/// result at `to`.
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

/// The largest number in each square. Samples are treated as further channels.
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

/// Squares that are processed together.
const SQUARES: usize = 64;

/// The cotangent for one sample and all its seeds, written or added.
pub(super) fn largest_back<T: Element>(g: &Geometry, x: &[T], y: &[T], dy: &[T], dx: &mut [T], add: bool) {
    if x.is_empty() || y.is_empty() {
        return super::clear(dx, add);
    }
    if !add && (2 * g.row() < g.input[2] || 2 * g.output[1] < g.input[1]) {
        // The part that no square covers.
        dx.fill(T::zero());
    }
    for (dy, dx) in dy.chunks_exact(y.len()).zip(dx.chunks_exact_mut(x.len())) {
        dispatch(
            #[inline(always)]
            || {
                for first in (0..g.row()).step_by(SQUARES) {
                    columns_back(g, [x, y, dy], dx, first, add);
                }
            },
        );
    }
}

/// The squares of at most [`SQUARES`] columns from `column` on. As many pairs of rows as fit are laid side by side,
/// because a short row alone would not fill a vector, and the remainder of a vector loop has unpredictable branches
/// (measured: a seventh of the time of a small CNN).
#[inline(always)]
fn columns_back<T: Element>(g: &Geometry, [x, y, dy]: [&[T]; 3], dx: &mut [T], column: usize, add: bool) {
    let width = g.input[2];
    let squares = (g.row() - column).min(SQUARES);
    let (rows, pairs) = (g.output[1], planes(g, y) * g.input[0] * g.output[1]);
    let at_once = SQUARES / squares;
    let mut images = [[T::zero(); 2 * SQUARES]; 2];
    let mut slopes = [[T::zero(); 2 * SQUARES]; 2];
    let (mut maxima, mut given) = ([T::zero(); SQUARES], [T::zero(); SQUARES]);
    for first in (0..pairs).step_by(at_once) {
        // The position of each pair of rows: in the buffer, in the image, and in the result.
        let places = (first..pairs.min(first + at_once)).map(|pair| {
            let upper = (pair / rows * g.input[1] + pair % rows * 2) * width + 2 * column;
            ((pair - first) * squares, upper, pair * g.row() + column)
        });
        for (at, upper, to) in places.clone() {
            maxima[at..][..squares].copy_from_slice(&y[to..][..squares]);
            given[at..][..squares].copy_from_slice(&dy[to..][..squares]);
            for (half, image) in images.iter_mut().enumerate() {
                image[2 * at..][..2 * squares].copy_from_slice(&x[upper + half * width..][..2 * squares]);
            }
        }
        let [upper, lower] = &mut slopes;
        squares_back(&images[0], &images[1], &maxima, &given, upper, lower);
        for (at, upper, _) in places {
            for (half, slopes) in slopes.iter().enumerate() {
                let to = &mut dx[upper + half * width..][..2 * squares];
                let from = &slopes[2 * at..][..2 * squares];
                if add {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
                } else {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

/// Squares side by side, their upper halves `a` and their lower halves `b`. The slices are arguments because the
/// compiler then knows that they do not overlap.
#[inline(always)]
fn squares_back<T: Element>(a: &[T], b: &[T], y: &[T], dy: &[T], da: &mut [T], db: &mut [T]) {
    let zero = T::zero();
    let squares = a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0);
    let into = da.as_chunks_mut::<2>().0.iter_mut().zip(db.as_chunks_mut::<2>().0);
    for (((a, b), (da, db)), (&y, &dy)) in squares.zip(into).zip(y.iter().zip(dy)) {
        // The part of dy that is left after each position: zero once it has found its maximum.
        let first = if a[0] == y { dy } else { zero };
        let rest = if a[0] == y { zero } else { dy };
        let second = if a[1] == y { rest } else { zero };
        let rest = if a[1] == y { zero } else { rest };
        let third = if b[0] == y { rest } else { zero };
        let rest = if b[0] == y { zero } else { rest };
        let fourth = if b[1] == y { rest } else { zero };
        *da = [first, second];
        *db = [third, fourth];
    }
}
