//! Sums of products used by all structures.

use mercer_kernel::Real;
use mercer_linalg::{gemm, matmul_into, memory};
use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

/// Rows of a strip: small enough that the wasted half of its diagonal block is small, large enough for efficient
/// products.
const STRIP: usize = 256;

/// `h += rowsᵀ·rows`, the lower triangle only (see [`mirror_lower`](mercer_linalg::mirror_lower)); strips are
/// independent and run in parallel.
pub(super) fn add_gram(h: &mut Array2<f64>, rows: ArrayView2<'_, f64>) {
    let width = rows.ncols();
    assert_eq!(h.dim(), (width, width), "shape of a sum of squares");
    let slots = h.as_slice_mut().expect("made row-major");
    slots.par_chunks_mut((STRIP * width).max(1)).enumerate().for_each(|(strip, slots)| {
        let first = strip * STRIP;
        let end = (first + STRIP).min(width);
        let mut own = ArrayViewMut2::from_shape((end - first, width), slots).expect("a strip");
        let left = rows.slice(s![.., first..end]);
        matmul_into(1.0, left.t(), rows.slice(s![.., ..end]), true, own.slice_mut(s![.., ..end]));
    });
}

/// `Sᵀ·R` for every sample: rows `[samples, outputs, width]` weighted with roots of the curvature, so that their sum of
/// squares is `Σ RᵀΛR`; as `[samples · outputs, width]`.
pub(super) fn weighted<T: Real>(rows: &[T], roots: &Array3<f64>) -> Array2<f64> {
    let (samples, n_outputs, _) = roots.dim();
    let width = rows.len() / (samples * n_outputs).max(1);
    let mut out = memory::zeros::<f64>(rows.len());
    let sample = (n_outputs * width).max(1);
    let roots = roots.as_slice().expect("made row-major");
    out.par_chunks_mut(sample).zip(rows.par_chunks(sample)).enumerate().for_each(|(at, (out, rows))| {
        let root = &roots[at * n_outputs * n_outputs..(at + 1) * n_outputs * n_outputs];
        let wide: Vec<f64> = rows.iter().map(|x| x.wide()).collect();
        gemm([n_outputs, width, n_outputs], (root, 1, n_outputs), (&wide, width, 1), false, out);
    });
    Array2::from_shape_vec((samples * n_outputs, width), out).expect("as many as there are")
}

/// Numbers in `f64`, as a matrix of rows of this width.
pub(super) fn wide<T: Real>(data: &[T], width: usize) -> Array2<f64> {
    let rows = data.len() / width.max(1);
    Array2::from_shape_vec((rows, width), data.iter().map(|x| x.wide()).collect()).expect("as many as there are")
}

/// `out += rows·rowsᵀ`; symmetric to the last bit, because both triangles are the same sums.
pub(super) fn add_square(rows: &[f64], n_rows: usize, width: usize, out: &mut [f64]) {
    let mut product = vec![0.0; n_rows * n_rows];
    gemm([n_rows, n_rows, width], (rows, width, 1), (rows, 1, width), false, &mut product);
    for row in 0..n_rows {
        for column in 0..=row {
            let value = product[row * n_rows + column];
            out[row * n_rows + column] += value;
            if column < row {
                out[column * n_rows + row] += value;
            }
        }
    }
}
