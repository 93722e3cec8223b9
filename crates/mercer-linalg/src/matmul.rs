//! Matrix products. One thread each: parallelism lives above, across tiles and shards.

use crate::Scalar;
use faer::{MatMut, MatRef};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

pub(crate) fn lend<'a, T>(view: &ArrayView2<'a, T>) -> MatRef<'a, T> {
    let (rows, cols) = view.dim();
    let strides = view.strides();
    // SAFETY: an ndarray view is exactly this: a pointer, a shape and strides valid for reads for 'a.
    unsafe { MatRef::from_raw_parts(view.as_ptr(), rows, cols, strides[0], strides[1]) }
}

pub(crate) fn lend_mut<'a, T>(view: &'a mut ArrayViewMut2<'_, T>) -> MatMut<'a, T> {
    let (rows, cols) = view.dim();
    let (row_stride, col_stride) = (view.strides()[0], view.strides()[1]);
    // SAFETY: as above, and a mutable view does not alias.
    unsafe { MatMut::from_raw_parts_mut(view.as_mut_ptr(), rows, cols, row_stride, col_stride) }
}

/// `c = alpha · a · b` or, with `add`, `c += alpha · a · b`.
///
/// # Panics
/// If the shapes do not fit; shapes are the caller's, never a user's.
pub fn matmul_into<T: Scalar>(
    alpha: T,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    add: bool,
    mut c: ArrayViewMut2<'_, T>,
) {
    assert_eq!(a.ncols(), b.nrows(), "inner dimensions of a product");
    assert_eq!((a.nrows(), b.ncols()), c.dim(), "shape of a product");
    T::gemm_seq(lend_mut(&mut c), add, lend(&a), lend(&b), alpha);
}

/// `a · b` as a new array.
///
/// ```
/// use ndarray::array;
/// let c = mercer_linalg::matmul(array![[1.0, 2.0]].view(), array![[3.0], [4.0]].view());
/// assert_eq!(c, array![[11.0]]);
/// ```
pub fn matmul<T: Scalar>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) -> Array2<T> {
    let mut c = Array2::zeros((a.nrows(), b.ncols()));
    matmul_into(T::one(), a, b, false, c.view_mut());
    c
}

/// A matrix in a slice: `(data, row_stride, col_stride)`.
pub type Strided<'a, T> = (&'a [T], usize, usize);

/// `c (m × n, row-major) = a (m × k) · b (k × n)`, or added to it: the product for slices, without views.
///
/// ```
/// let (a, b, mut c) = ([1.0, 2.0], [3.0, 4.0], [0.0]);
/// mercer_linalg::gemm([1, 1, 2], (&a, 2, 1), (&b, 1, 1), false, &mut c);
/// assert_eq!(c, [11.0]);
/// ```
///
/// # Panics
/// If a slice is too short for its shape; shapes are the caller's, never a user's.
pub fn gemm<T: Scalar>(sizes: [usize; 3], a: Strided<'_, T>, b: Strided<'_, T>, add: bool, c: &mut [T]) {
    gemm_rows(sizes, a, b, add, c, sizes[1]);
}

/// [`gemm`] into rows of `c` that are `row_stride` apart: a block of columns of a larger matrix.
pub fn gemm_rows<T: Scalar>(
    [m, n, k]: [usize; 3],
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    add: bool,
    c: &mut [T],
    row_stride: usize,
) {
    if m == 0 || n == 0 {
        return;
    }
    let last = |rows: usize, cols: usize, row: usize, col: usize| (rows - 1) * row + (cols - 1) * col;
    assert!(k == 0 || (last(m, k, a.1, a.2) < a.0.len() && last(k, n, b.1, b.2) < b.0.len()), "operand of a product");
    assert!(row_stride >= n && last(m, n, row_stride, 1) < c.len(), "result of a product");
    // SAFETY: the last element of every operand was just checked to lie inside its slice; `c` is borrowed mutably and
    // its rows do not overlap.
    unsafe {
        let a = MatRef::from_raw_parts(a.0.as_ptr(), m, k, a.1 as isize, a.2 as isize);
        let b = MatRef::from_raw_parts(b.0.as_ptr(), k, n, b.1 as isize, b.2 as isize);
        T::gemm_seq(MatMut::from_raw_parts_mut(c.as_mut_ptr(), m, n, row_stride as isize, 1), add, a, b, T::one());
    }
}
