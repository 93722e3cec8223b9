//! Singular values and QR.

use crate::references::{distance, jacobi_eigenvalues, product, random, skew, wide};
use mercer_linalg::{LinalgError, Scalar, cholesky, thin_qr, thin_svd};
use ndarray::{Array1, Array2, array, s};
use proptest::prelude::*;

/// Residual and orthogonality by naive loops, within a small multiple of n ε ‖A‖; entries are below one, so ‖A‖ ≤ n.
fn assert_svd<T: Scalar>(a: &Array2<T>) -> Vec<f64> {
    let svd = thin_svd(a.view()).unwrap();
    let n = a.nrows().max(a.ncols()) as f64;
    let unit = 10.0 * T::epsilon().wide() * n;
    let middle = Array2::from_diag(&svd.values);
    let left = product(svd.left.view(), middle.view());
    assert!(distance(&product(left.view(), wide(svd.right.view()).t()), &wide(a.view())) <= unit * n.max(1.0));
    assert!(skew(svd.left.view()) <= unit && skew(svd.right.view()) <= unit);
    assert!(svd.values.iter().zip(svd.values.iter().skip(1)).all(|(x, y)| x >= y));
    svd.values.iter().map(|v| v.wide()).collect()
}

fn assert_qr<T: Scalar>(a: &Array2<T>) -> Array2<T> {
    let qr = thin_qr(a.view()).unwrap();
    let n = a.nrows().max(a.ncols()) as f64;
    let unit = 10.0 * T::epsilon().wide() * n;
    assert!(distance(&product(qr.q.view(), qr.r.view()), &wide(a.view())) <= unit * n.max(1.0));
    assert!(skew(qr.q.view()) <= unit);
    assert!(qr.r.indexed_iter().all(|((i, j), v)| j > i || (j == i && *v >= T::zero()) || *v == T::zero()));
    qr.r
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn squared_singular_values_are_eigenvalues(m in 0usize..36, n in 0usize..36, seed: u64) {
        let a = random::<f64>(m, n, seed);
        let values = assert_svd(&a);
        let gram = if m < n { product(a.view(), a.t()) } else { product(a.t(), a.view()) };
        // Squares are compared, because the eigenvalues of the product carry an error of n ε ‖A‖² themselves.
        let tolerance = 20.0 * f64::EPSILON * (m.max(n).pow(3)) as f64;
        prop_assert!(values.iter().zip(jacobi_eigenvalues(&gram)).all(|(s, l)| (s * s - l).abs() <= tolerance));
        assert_svd(&random::<f32>(m, n, seed));
    }

    #[test]
    fn the_triangle_is_the_cholesky_factor_of_the_normal_equations(m in 0usize..36, n in 0usize..36, seed: u64) {
        let a = random::<f64>(m, n, seed);
        let r = assert_qr(&a);
        assert_qr(&random::<f32>(m, n, seed));
        // Only where the normal equations are well conditioned: twice as many rows as columns.
        if m >= 2 * n && n > 0 {
            let lower = cholesky(product(a.t(), a.view()).view()).unwrap().lower;
            prop_assert!(distance(&r, &lower.t().to_owned()) <= 1e-10);
        }
    }

    #[test]
    fn rank_deficient(m in 1usize..60, n in 1usize..60, rank in 0usize..8, seed: u64) {
        let a = product(random::<f64>(m, rank, seed).view(), random::<f64>(rank, n, !seed).view());
        let a = a / (rank.max(1) as f64);
        let values = assert_svd(&a);
        prop_assert!(values.iter().skip(rank).all(|v| *v <= 1e-13));
        assert_qr(&a);
        // Columns of exact zeros, and columns that repeat.
        let mut holes = a.clone();
        holes.columns_mut().into_iter().step_by(3).for_each(|mut c| c.fill(0.0));
        assert_qr(&holes);
        assert_svd(&holes);
    }
}

#[test]
fn known_singular_values() {
    let values = assert_svd(&array![[3.0, 0.0], [4.0, 5.0]]);
    assert!((values[0] - 45f64.sqrt()).abs() < 1e-14 && (values[1] - 5f64.sqrt()).abs() < 1e-14);
    assert!(assert_svd(&Array2::<f64>::eye(70)).iter().all(|v| (v - 1.0).abs() < 1e-14));
    assert!(assert_svd(&Array2::<f64>::zeros((9, 5))).iter().all(|v| *v == 0.0));
    let ones = assert_svd(&Array2::<f64>::ones((200, 150)));
    assert!((ones[0] - 30_000f64.sqrt()).abs() < 1e-11 && ones[1] < 1e-12);
}

#[test]
fn singular_values_that_are_all_rounding_are_sorted() {
    // Regression: for this matrix faer 0.24.4 gives a value of 8e-4 behind zeros.
    for n in [200, 300, 500] {
        let values = thin_svd(Array2::<f32>::ones((n, n)).view()).unwrap().values;
        assert!(values.iter().zip(values.iter().skip(1)).all(|(x, y)| x >= y));
    }
}

#[test]
fn shapes_that_take_other_routes() {
    // Tall (QR first), wide (transposed), blocked and larger than the recursion thresholds.
    for (m, n) in [(500, 3), (3, 500), (300, 100), (100, 300), (220, 220), (1, 40), (40, 1)] {
        let a = random::<f64>(m, n, 11);
        assert_svd(&a);
        assert_qr(&a);
        assert_svd(&a.slice(s![..;-1, ..]).to_owned());
        assert_qr(&a.mapv(|v| v as f32));
    }
}

#[test]
fn graded_columns_over_many_orders() {
    let scales = Array1::from_shape_fn(40, |i| 10f64.powi(-(i as i32) / 2));
    let a = random::<f64>(120, 40, 3) * &scales;
    let r = assert_qr(&a);
    // Householder QR is stable column by column: the last pivot keeps its digits although it is 10⁻¹⁹ of the first.
    let unscaled = thin_qr((&a / &scales).view()).unwrap().r;
    assert!((r[(39, 39)] / scales[39] / unscaled[(39, 39)] - 1.0).abs() < 1e-8);
    assert_svd(&a);
}

#[test]
fn extreme_magnitudes() {
    for scale in [1e-300, 1e-170, 1e170, 1e300] {
        let a = array![[3.0, 0.0], [4.0, 5.0]] * scale;
        assert!((thin_svd(a.view()).unwrap().values[0] / scale - 45f64.sqrt()).abs() < 1e-14);
        assert!((thin_qr(a.view()).unwrap().r[(0, 0)] / scale - 5.0).abs() < 1e-14);
    }
}

#[test]
fn inputs_are_checked() {
    let mut a = random::<f32>(5, 4, 1);
    a[(4, 2)] = f32::NEG_INFINITY;
    assert!(matches!(thin_svd(a.view()), Err(LinalgError::NotFinite { row: 4, column: 2, .. })));
    assert!(matches!(thin_qr(a.view()), Err(LinalgError::NotFinite { row: 4, column: 2, .. })));
    let empty = thin_svd(Array2::<f64>::zeros((0, 3)).view()).unwrap();
    assert_eq!((empty.left.dim(), empty.right.dim()), ((0, 0), (3, 0)));
    assert_eq!(thin_qr(Array2::<f64>::zeros((3, 0)).view()).unwrap().q.dim(), (3, 0));
}
