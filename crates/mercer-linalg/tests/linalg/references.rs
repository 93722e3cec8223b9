//! What results are compared with: slow, obvious, and not what the crate does.

use mercer_linalg::Scalar;
use ndarray::{Array2, ArrayView2};

/// Numbers in `[-1, 1)` from a linear congruential generator, so that a failing case can be repeated.
pub(crate) fn random<T: Scalar>(rows: usize, columns: usize, seed: u64) -> Array2<T> {
    let mut state = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
    Array2::from_shape_simple_fn((rows, columns), || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::narrow((state >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    })
}

/// `a·b`, three loops in `f64`.
pub(crate) fn product<T: Scalar>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) -> Array2<f64> {
    Array2::from_shape_fn((a.nrows(), b.ncols()), |(i, j)| {
        (0..a.ncols()).map(|k| a[(i, k)].wide() * b[(k, j)].wide()).sum()
    })
}

pub(crate) fn wide<T: Scalar>(a: ArrayView2<'_, T>) -> Array2<f64> {
    a.mapv(|v| v.wide())
}

/// The largest difference between two matrices.
pub(crate) fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    a.iter().zip(b).fold(0.0, |most, (x, y)| if (x - y).abs() <= most { most } else { (x - y).abs() })
}

/// How far the columns are from orthonormal.
pub(crate) fn skew<T: Scalar>(q: ArrayView2<'_, T>) -> f64 {
    distance(&product(q.t(), q), &Array2::eye(q.ncols()))
}

/// A random symmetric matrix with entries up to two.
pub(crate) fn symmetric<T: Scalar>(n: usize, seed: u64) -> Array2<T> {
    let a = random::<T>(n, n, seed);
    &a + &a.t()
}

/// The eigenvalues of a symmetric matrix by cyclic Jacobi rotations, descending.
pub(crate) fn jacobi_eigenvalues(a: &Array2<f64>) -> Vec<f64> {
    let (mut a, n) = (a.clone(), a.nrows());
    for _ in 0..30 {
        for p in 0..n {
            for q in p + 1..n {
                if a[(p, q)] == 0.0 {
                    continue;
                }
                let theta = (a[(q, q)] - a[(p, p)]) / (2.0 * a[(p, q)]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[(k, p)], a[(k, q)]);
                    (a[(k, p)], a[(k, q)]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[(p, k)], a[(q, k)]);
                    (a[(p, k)], a[(q, k)]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut values: Vec<f64> = a.diag().to_vec();
    values.sort_by(|x, y| y.total_cmp(x));
    values
}
