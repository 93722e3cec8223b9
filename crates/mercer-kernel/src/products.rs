//! Inner products between the rows of two matrices, the last step of all kernels.

use mercer_linalg::{Scalar, gemm_rows, mirror_lower};
use ndarray::ArrayViewMut2;

/// Rows per strip of a symmetric product: small enough to waste only half a strip, and large enough for fast products.
const STRIP: usize = 64;

/// The number of elements over all rows that stay in the cache while strips are multiplied.
const CACHED: usize = 1 << 20;

/// The minimum length of a piece of a row: a product needs some depth.
const PIECE: usize = 2048;

/// Rows in a slice: the data, the number of rows and the stride between them.
pub(crate) type Rows<'a, T> = (&'a [T], usize, usize);

/// `tile[i, j] = x_i · y_j` over the first `width` numbers of the rows, or added to it. If both are the same memory, only
/// one triangle is computed and the result is symmetric to the last bit.
pub(crate) fn products<T: Scalar>(x: Rows<'_, T>, y: Rows<'_, T>, width: usize, add: bool, tile: &mut [T]) {
    let (n, m) = (x.1, y.1);
    if !std::ptr::eq(x.0, y.0) || n != m {
        gemm_rows([n, m, width], (x.0, x.2, 1), (y.0, 1, y.2), add, tile, m);
        return;
    }
    if width == 0 && !add {
        tile.fill(T::zero());
    }
    // Long rows are multiplied piece by piece, so that the data shared by all strips is in the cache after the first
    // strip.
    let piece = (CACHED / n.max(1)).max(PIECE);
    for from in (0..width).step_by(piece) {
        let length = piece.min(width - from);
        upper_strips(n, |rows| {
            let start = rows.start;
            let (left, right) = (&x.0[start * x.2 + from..], &y.0[start * y.2 + from..]);
            let sizes = [rows.len(), n - start, length];
            gemm_rows(sizes, (left, x.2, 1), (right, 1, y.2), add || from > 0, &mut tile[start * n + start..], n);
        });
    }
    mirror(tile, n);
}

/// Strips of the rows of a symmetric matrix of `n` rows. A strip needs only the columns from its first row on.
pub(crate) fn upper_strips(n: usize, mut each: impl FnMut(std::ops::Range<usize>)) {
    let strip = if n >= 4 * STRIP { 2 * STRIP } else { STRIP };
    (0..n).step_by(strip).for_each(|start| each(start..(start + strip).min(n)));
}

/// Copies the upper triangle of a square onto the lower one, in pieces that stay in the first-level cache.
pub(crate) fn mirror<T: Copy>(tile: &mut [T], n: usize) {
    let tile = ArrayViewMut2::from_shape((n, n), &mut tile[..n * n]).expect("a square tile");
    mirror_lower(tile.reversed_axes());
}

/// The squared length of every row of `rows` equal rows.
pub(crate) fn squares<T: Scalar>(data: &[T], rows: usize) -> Vec<T> {
    let width = data.len() / rows.max(1);
    if width == 0 {
        return vec![T::zero(); rows];
    }
    data.chunks_exact(width).map(square).collect()
}

/// The squared length of a vector, with several running sums: accurate enough for a million terms, and fast.
pub(crate) fn square<T: Scalar>(row: &[T]) -> T {
    const LANES: usize = 32;
    mercer_linalg::simd::dispatch(
        #[inline(always)]
        || {
            let mut sums = [T::zero(); LANES];
            let chunks = row.chunks_exact(LANES);
            let rest: T = chunks.remainder().iter().map(|&x| x * x).sum();
            for chunk in chunks {
                sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += x * x);
            }
            sums.iter().fold(rest, |total, &sum| total + sum)
        },
    )
}

/// Whether all numbers are finite, without a branch per number: `0·x` is either zero or NaN.
pub(crate) fn all_finite<T: Scalar>(data: &[T]) -> bool {
    const LANES: usize = 32;
    mercer_linalg::simd::dispatch(
        #[inline(always)]
        || {
            let mut sums = [T::zero(); LANES];
            let chunks = data.chunks_exact(LANES);
            let rest = chunks.remainder().iter().all(|x| x.is_finite());
            for chunk in chunks {
                sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += x * T::zero());
            }
            rest && sums.iter().all(|&sum| sum == T::zero())
        },
    )
}
