use crate::references::{distance, jacobi_eigenvalues, product, random, skew, symmetric, wide};
use mercer_linalg::{LinalgError, Scalar, symmetric_eigen};
use ndarray::{Array2, array};
use proptest::prelude::*;
use std::f64::consts::PI;

/// Residual, orthogonality and order by naive loops. A backward stable solver leaves a small multiple of n ε ‖A‖;
/// entries are below two, so ‖A‖ ≤ 2n.
fn assert_eigen<T: Scalar>(a: &Array2<T>) -> Vec<f64> {
    let eigen = symmetric_eigen(a.view()).unwrap();
    let n = a.nrows() as f64;
    let unit = T::epsilon().wide() * n;
    let image = product(a.view(), eigen.vectors.view());
    let scaled = product(eigen.vectors.view(), Array2::from_diag(&eigen.values).view());
    assert!(distance(&image, &scaled) <= 10.0 * unit * 2.0 * n.max(1.0));
    assert!(skew(eigen.vectors.view()) <= 10.0 * unit);
    assert!(eigen.values.iter().zip(eigen.values.iter().skip(1)).all(|(x, y)| x >= y));
    eigen.values.iter().map(|v| v.wide()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn values_match_jacobi_rotations(n in 0usize..40, seed: u64) {
        let a = symmetric::<f64>(n, seed);
        let expected = jacobi_eigenvalues(&a);
        // Both are backward stable, so by Weyl they differ by a small multiple of n ε ‖A‖.
        let tolerance = 20.0 * f64::EPSILON * (n * n) as f64;
        prop_assert!(assert_eigen(&a).iter().zip(&expected).all(|(x, y)| (x - y).abs() <= tolerance));
        let a = symmetric::<f32>(n, seed);
        let expected = jacobi_eigenvalues(&wide(a.view()));
        let tolerance = 20.0 * f32::EPSILON as f64 * (n * n) as f64;
        prop_assert!(assert_eigen(&a).iter().zip(&expected).all(|(x, y)| (x - y).abs() <= tolerance));
    }
}

#[test]
fn the_second_difference_has_cosines_for_eigenvalues() {
    // Sizes on both sides of the switch from QR iteration to divide and conquer.
    for n in [1, 2, 3, 31, 127, 128, 129, 300] {
        let a = Array2::from_shape_fn((n, n), |(i, j)| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        });
        let values = symmetric_eigen(a.view()).unwrap().values;
        for (i, value) in values.iter().enumerate() {
            let exact = 2.0 - 2.0 * ((n - i) as f64 * PI / (n + 1) as f64).cos();
            // ‖A‖ < 4, so the bound is 4 n ε times a small constant.
            assert!((value - exact).abs() <= 16.0 * n as f64 * f64::EPSILON, "{n}: {value} {exact}");
        }
    }
}

#[test]
fn repeated_eigenvalues() {
    for n in [1, 4, 33, 150] {
        assert!(assert_eigen(&Array2::<f64>::eye(n)).iter().all(|v| *v == 1.0));
        assert!(assert_eigen(&Array2::<f64>::zeros((n, n))).iter().all(|v| *v == 0.0));
        let values = assert_eigen(&Array2::<f64>::ones((n, n)));
        assert!((values[0] - n as f64).abs() <= 1e-12 && values[1..].iter().all(|v| v.abs() <= 1e-12));
        // Two clusters, rotated: a reflection has eigenvalues ±1 only.
        let v = random::<f64>(n, 1, 9);
        let reflection = Array2::<f64>::eye(n) - product(v.view(), v.t()) * (2.0 / product(v.t(), v.view())[(0, 0)]);
        let values = assert_eigen(&reflection);
        assert!((values[n - 1] + 1.0).abs() <= 1e-12 && values[..n - 1].iter().all(|v| (v - 1.0).abs() <= 1e-12));
    }
}

#[test]
fn a_gram_matrix_of_low_rank_and_many_scales() {
    let features = random::<f64>(260, 20, 4) * &ndarray::Array1::from_shape_fn(20, |i| 10f64.powi(-(i as i32)));
    let gram = mercer_linalg::syrk(features.view());
    let values = assert_eigen(&gram);
    assert!(values[20..].iter().all(|v| v.abs() <= 260.0 * f64::EPSILON * values[0]), "rank 20");
    let trace = gram.diag().sum();
    assert!((values.iter().sum::<f64>() - trace).abs() <= 1e-12 * trace);
}

#[test]
fn extreme_magnitudes() {
    for scale in [1e-300, 1e-160, 1e160, 1e300] {
        let values = symmetric_eigen((array![[2.0f64, 1.0], [1.0, 2.0]] * scale).view()).unwrap().values;
        assert!((values[0] / scale - 3.0).abs() < 1e-14 && (values[1] / scale - 1.0).abs() < 1e-14, "{scale}");
    }
    let subnormal = symmetric_eigen((array![[2.0f64, 1.0], [1.0, 2.0]] * 1e-312).view()).unwrap().values;
    assert!((subnormal[0] / 1e-312 - 3.0).abs() < 1e-8);
    let single = symmetric_eigen((array![[2.0f32, 1.0], [1.0, 2.0]] * 1e-30).view()).unwrap().values;
    assert!((single[0] / 3e-30 - 1.0).abs() < 1e-6);
}

#[test]
fn rounding_is_symmetric_enough_and_more_is_not() {
    let mut a = symmetric::<f64>(80, 2);
    a[(70, 3)] += 1e-14;
    assert!(symmetric_eigen(a.view()).is_ok());
    a[(70, 3)] += 1e-9;
    assert!(matches!(symmetric_eigen(a.view()), Err(LinalgError::NotSymmetric { row: 70, column: 3, .. })));
}

#[test]
fn inputs_are_checked() {
    assert_eq!(symmetric_eigen(Array2::<f64>::zeros((0, 0)).view()).unwrap().values.len(), 0);
    assert!(matches!(symmetric_eigen(Array2::<f64>::zeros((2, 3)).view()), Err(LinalgError::ShapeMismatch { .. })));
    let error = symmetric_eigen(array![[1.0, f64::NAN], [f64::NAN, 1.0]].view()).unwrap_err();
    assert!(matches!(error, LinalgError::NotFinite { row: 0, column: 1, .. }));
    assert!(error.to_string().contains("row 0, column 1"));
}
