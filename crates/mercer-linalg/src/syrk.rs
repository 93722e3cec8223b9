//! The symmetric rank-k update `C = α·A·Aᵀ`, as a few large products.
//!
//! Only the blocks on and below the diagonal are computed, one product per strip of rows, and then mirrored. Most of
//! the flops of the other triangle are saved, the products stay large enough to run at full speed, and the result is
//! symmetric to the last bit.

use crate::{Scalar, matmul_into};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

/// Rows per strip: the wasted half of a diagonal block is small, the product still large.
const STRIP: usize = 256;

/// Both triangles of a mirrored tile fit in the first-level cache.
const TILE: usize = 32;

/// `a · aᵀ`, symmetric to the last bit.
///
/// ```
/// use ndarray::array;
/// assert_eq!(mercer_linalg::syrk(array![[1.0, 2.0], [3.0, 4.0]].view()), array![[5.0, 11.0], [11.0, 25.0]]);
/// ```
pub fn syrk<T: Scalar>(a: ArrayView2<'_, T>) -> Array2<T> {
    let mut c = Array2::zeros((a.nrows(), a.nrows()));
    syrk_into(T::one(), a, false, c.view_mut());
    c
}

/// `c = alpha · a · aᵀ` or, with `add`, `c += alpha · a · aᵀ`, reading the lower triangle of `c` and writing both.
///
/// # Panics
/// If `c` is not square with as many rows as `a`; shapes are the caller's, never a user's.
pub fn syrk_into<T: Scalar>(alpha: T, a: ArrayView2<'_, T>, add: bool, mut c: ArrayViewMut2<'_, T>) {
    let n = a.nrows();
    assert_eq!(c.dim(), (n, n), "shape of a symmetric product");
    for start in (0..n).step_by(STRIP) {
        let end = (start + STRIP).min(n);
        let (strip, above) = (a.slice(s![start..end, ..]), a.slice(s![..end, ..]));
        matmul_into(alpha, strip, above.t(), add, c.slice_mut(s![start..end, ..end]));
    }
    mirror_lower(c);
}

/// Copies the lower triangle of a square matrix onto the upper one.
pub fn mirror_lower<T: Copy>(mut c: ArrayViewMut2<'_, T>) {
    let n = c.nrows();
    for row_tile in (0..n).step_by(TILE) {
        for column_tile in (0..=row_tile).step_by(TILE) {
            for row in row_tile..(row_tile + TILE).min(n) {
                for column in column_tile..(column_tile + TILE).min(row) {
                    c[(column, row)] = c[(row, column)];
                }
            }
        }
    }
}
