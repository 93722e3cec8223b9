//! Inner products, distances and chords of pairs of vectors.
//!
//! `‖x − y‖² = ‖x‖² + ‖y‖² − 2 x·y` is one matrix product, but it loses all digits if `x` and `y` are close. Such
//! pairs, with `‖x − y‖² < (‖x‖² + ‖y‖²)/64`, are computed again from differences. The rest have a relative error of
//! about 64 roundings. Short vectors are always subtracted, which is as fast for them.

use crate::products::{mirror, products};
use mercer_linalg::Scalar;
use mercer_linalg::simd::dispatch;

/// Vectors no longer than this are subtracted.
const SHORT: usize = 16;
/// Pairs closer than this fraction of their squared lengths are computed again.
const CLOSE: f64 = 1.0 / 64.0;
/// Elements of a row that are processed together.
const LANES: usize = 32;

/// Vectors of equal length, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors<'a, T> {
    pub(super) data: &'a [T],
    pub(super) count: usize,
    pub(super) width: usize,
}

impl<'a, T: Scalar> Vectors<'a, T> {
    fn row(&self, at: usize) -> &'a [T] {
        &self.data[at * self.width..(at + 1) * self.width]
    }

    /// Whether both are the same vectors, so that half of the pairs suffice.
    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.data, other.data)
    }
}

/// `tile[i, j] = x_i · y_j`.
pub(super) fn dots<T: Scalar>(x: Vectors<'_, T>, y: Vectors<'_, T>, tile: &mut [T]) {
    products((x.data, x.count, x.width), (y.data, y.count, y.width), x.width, false, tile);
}

/// `tile[i, j] = ‖x_i − y_j‖²`, given the squared lengths.
pub(super) fn squared_distances<T: Scalar>(
    (x, x_squares): (Vectors<'_, T>, &[T]),
    (y, y_squares): (Vectors<'_, T>, &[T]),
    tile: &mut [T],
) {
    if x.width <= SHORT {
        return differences(x, y, tile, |d| d * d);
    }
    dots(x, y, tile);
    let (two, close, mark) = (T::narrow(2.0), T::narrow(CLOSE), -T::one());
    for (at, row) in tile.chunks_exact_mut(y.count.max(1)).enumerate() {
        let own = x_squares[at];
        let least = dispatch(
            #[inline(always)]
            || {
                let mut least = T::zero();
                for (to, &other) in row.iter_mut().zip(y_squares) {
                    let both = own + other;
                    let distance = both - two * *to;
                    // Not negated: a vector of zeros has distance zero to another.
                    *to = if distance > close * both { distance } else { mark };
                    least = least.min(*to);
                }
                least
            },
        );
        if least < T::zero() {
            for (other, to) in row.iter_mut().enumerate().filter(|(_, to)| **to < T::zero()) {
                *to = reduce(x.row(at), y.row(other), |a, b| (a - b) * (a - b));
            }
        }
    }
}

/// `tile[i, j] = Σ |x_ik − y_jk|`.
pub(super) fn absolute_distances<T: Scalar>(x: Vectors<'_, T>, y: Vectors<'_, T>, tile: &mut [T]) {
    differences(x, y, tile, |d| d.abs());
}

/// For unit vectors (or zero), the squared chord of the angle between them: `‖x − y‖²` for an acute angle; `−‖x + y‖²`
/// for an obtuse one, with the sign even if that is zero.
pub(super) fn chords<T: Scalar>(x: Vectors<'_, T>, y: Vectors<'_, T>, tile: &mut [T]) {
    dots(x, y, tile);
    // The squared lengths of two unit vectors sum to 2.
    let (two, close) = (T::narrow(2.0), T::narrow(2.0 * CLOSE));
    for (at, row) in tile.chunks_exact_mut(y.count.max(1)).enumerate() {
        let least = dispatch(
            #[inline(always)]
            || {
                let mut least = two;
                for to in row.iter_mut() {
                    let chord = two - two * to.abs();
                    least = least.min(chord);
                    *to = if *to >= T::zero() { chord } else { -chord };
                }
                least
            },
        );
        if least <= close {
            for (other, to) in row.iter_mut().enumerate().filter(|(_, to)| to.abs() <= close) {
                let (near, far) = (x.row(at), y.row(other));
                // A chord that rounding made negative has the wrong sign; the vectors decide.
                let together = reduce(near, far, |a, b| (a - b) * (a - b));
                let apart = reduce(near, far, |a, b| (a + b) * (a + b));
                *to = if together <= apart { together } else { -apart };
            }
        }
    }
}

/// `tile[i, j] = Σ_k f(x_ik − y_jk)`, for an even function.
fn differences<T: Scalar>(x: Vectors<'_, T>, y: Vectors<'_, T>, tile: &mut [T], f: impl Fn(T) -> T) {
    let (n, m, width) = (x.count, y.count, x.width);
    let symmetric = x.is(&y) && n == m;
    if width > SHORT {
        dispatch(
            #[inline(always)]
            || {
                for at in 0..n {
                    for other in if symmetric { at } else { 0 }..m {
                        tile[at * m + other] = lanes(x.row(at), y.row(other), |a, b| f(a - b));
                    }
                }
            },
        );
    } else {
        // Vectorised over the other vectors, whose coordinates are transposed.
        let mut columns = vec![T::zero(); m * width];
        for (at, row) in y.data.chunks_exact(width.max(1)).enumerate() {
            row.iter().enumerate().for_each(|(k, &value)| columns[k * m + at] = value);
        }
        dispatch(
            #[inline(always)]
            || {
                for at in 0..n {
                    let from = if symmetric { at } else { 0 };
                    let row = &mut tile[at * m + from..(at + 1) * m];
                    row.fill(T::zero());
                    for (k, &own) in x.row(at).iter().enumerate() {
                        let column = &columns[k * m + from..(k + 1) * m];
                        row.iter_mut().zip(column).for_each(|(to, &other)| *to += f(own - other));
                    }
                }
            },
        );
    }
    if symmetric {
        mirror(tile, n);
    }
}

/// `Σ f(a_k, b_k)`.
fn reduce<T: Scalar>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> T {
    dispatch(
        #[inline(always)]
        || lanes(a, b, f),
    )
}

#[inline(always)]
fn lanes<T: Scalar>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> T {
    let mut sums = [T::zero(); LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let rest: T = rest.map(|(&a, &b)| f(a, b)).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += f(a, b);
        }
    }
    sums.iter().fold(rest, |total, &sum| total + sum)
}
