use crate::references::{distance, product, random, wide};
use mercer_linalg::{LADDER, LinalgError, Scalar, Triangle, cholesky, cholesky_with_ladder, solve_triangular};
use ndarray::{Array2, array, s};
use proptest::prelude::*;

/// `A·Aᵀ + I`: eigenvalues from 1 to about n, so solves lose at most a factor n.
fn definite<T: Scalar>(n: usize, seed: u64) -> Array2<T> {
    let a = random::<T>(n, n, seed);
    product(a.view(), a.t()).mapv(T::narrow) + Array2::eye(n)
}

fn hilbert(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, n), |(i, j)| 1.0 / (i + j + 1) as f64)
}

proptest! {
    /// Cholesky is backward stable: ‖A - LLᵀ‖ ≤ (n+1) ε ‖A‖ entry by entry, with ‖A‖ ≤ n + 1 here; and a solve has
    /// residual of the same size times ‖x‖, with ‖x‖ ≤ ‖b‖ ≤ √n.
    #[test]
    fn factors_and_solves_reproduce_the_matrix(n in 0usize..40, k in 0usize..5, seed: u64) {
        let a = definite::<f64>(n, seed);
        let factor = cholesky(a.view()).unwrap();
        let size = ((n + 1) * (n + 1)) as f64 * f64::EPSILON;
        prop_assert_eq!(factor.jitter, 0.0);
        prop_assert!(distance(&product(factor.lower.view(), factor.lower.t()), &a) <= size);
        let b = random::<f64>(n, k, !seed);
        let x = factor.solve(b.view()).unwrap();
        prop_assert!(distance(&product(a.view(), x.view()), &b) <= 4.0 * size * (n as f64).sqrt());
        let y = factor.solve_lower(b.view()).unwrap();
        prop_assert!(distance(&product(factor.lower.view(), y.view()), &b) <= 4.0 * size);
        let z = factor.solve_upper(y.view()).unwrap();
        prop_assert!(distance(&z, &x) <= 1e-15);
    }

    #[test]
    fn single_precision_too(n in 0usize..30, seed: u64) {
        let a = definite::<f32>(n, seed);
        let factor = cholesky(a.view()).unwrap();
        let size = ((n + 1) * (n + 1)) as f64 * f32::EPSILON as f64;
        prop_assert!(distance(&product(factor.lower.view(), factor.lower.t()), &wide(a.view())) <= size);
    }
}

#[test]
fn the_minimum_matrix_has_a_factor_of_ones() {
    // min(i, j) = L·Lᵀ with L all ones below the diagonal: integers throughout, so everything is exact.
    let n = 200;
    let a = Array2::from_shape_fn((n, n), |(i, j)| (i.min(j) + 1) as f64);
    let factor = cholesky(a.view()).unwrap();
    assert_eq!(factor.lower, Array2::from_shape_fn((n, n), |(i, j)| if j <= i { 1.0 } else { 0.0 }));
    assert_eq!((factor.log_det(), factor.jitter), (0.0, 0.0));
    assert_eq!(factor.solve_vector(a.column(7)).unwrap(), Array2::<f64>::eye(n).column(7));
}

#[test]
fn the_logarithm_of_the_determinant_of_a_hilbert_matrix() {
    // det H₅ = 1 / 266 716 800 000; its condition number 5·10⁵ leaves ten digits.
    let factor = cholesky(hilbert(5).view()).unwrap();
    assert!((factor.log_det() + 266_716_800_000f64.ln()).abs() < 1e-9);
}

#[test]
fn singular_matrices_get_the_least_jitter_that_helps_and_say_so() {
    let ones = Array2::from_elem((5, 5), 3.0f64);
    let factor = cholesky(ones.view()).unwrap();
    assert_eq!(factor.relative_jitter, 1e-12);
    assert!((factor.jitter - 3e-12).abs() < 1e-24);
    let with_jitter = &ones + &(Array2::<f64>::eye(5) * factor.jitter);
    assert!(distance(&product(factor.lower.view(), factor.lower.t()), &with_jitter) < 1e-14);

    // A condition number of 10¹⁸: without jitter the last pivots are rounding errors.
    let factor = cholesky(hilbert(14).view()).unwrap();
    assert!(factor.relative_jitter > 0.0 && factor.relative_jitter <= 1e-10, "{}", factor.relative_jitter);
    let single = cholesky(hilbert(10).mapv(|v| v as f32).view()).unwrap();
    assert!(single.relative_jitter >= 1e-6);
}

#[test]
fn badly_scaled_is_not_singular() {
    let graded = Array2::from_diag(&array![1.0, 1e-20, 1e-40]);
    let factor = cholesky(graded.view()).unwrap();
    assert_eq!((factor.jitter, factor.lower[(2, 2)]), (0.0, 1e-20));
}

#[test]
fn the_pivot_that_fails_is_named() {
    let mut a = Array2::<f64>::eye(6);
    a[(4, 4)] = -1.0;
    let error = cholesky(a.view()).unwrap_err();
    assert_eq!(error, LinalgError::NotPositiveDefinite { pivot: 4, relative_jitter: LADDER[5] });
    let singular = array![[1.0, 1.0], [1.0, 1.0]];
    let error = cholesky_with_ladder(singular.view(), &[0.0]).unwrap_err();
    assert_eq!(error, LinalgError::NotPositiveDefinite { pivot: 1, relative_jitter: 0.0 });
    assert!(cholesky(Array2::<f64>::zeros((3, 3)).view()).is_err(), "zero has no mean diagonal to be relative to");
}

#[test]
fn size_zero_and_one() {
    let empty = cholesky(Array2::<f64>::zeros((0, 0)).view()).unwrap();
    assert_eq!((empty.log_det(), empty.solve(Array2::zeros((0, 2)).view()).unwrap().dim()), (0.0, (0, 2)));
    assert_eq!(cholesky(array![[9.0]].view()).unwrap().lower, array![[3.0]]);
    assert!(cholesky(array![[-9.0]].view()).is_err());
}

#[test]
fn the_unit_of_measurement_does_not_matter() {
    let a = definite::<f64>(20, 3);
    let lower = cholesky(a.view()).unwrap().lower;
    for exponent in [-500, 400] {
        // A power of four, so that the factors agree to the last bit.
        let scale = 4f64.powi(exponent);
        let scaled = cholesky((&a * scale).view()).unwrap().lower / 2f64.powi(exponent);
        assert_eq!(scaled, lower, "4^{exponent}");
    }
    let tiny = cholesky((definite::<f32>(20, 3) * 1e-30).view()).unwrap();
    assert_eq!(tiny.jitter, 0.0);
}

#[test]
fn inputs_are_checked() {
    let mut a = definite::<f64>(4, 1);
    assert!(matches!(cholesky(a.slice(s![..3, ..])), Err(LinalgError::ShapeMismatch { expected: 3, found: 4, .. })));
    a[(3, 1)] += 1e-6;
    assert!(matches!(cholesky(a.view()), Err(LinalgError::NotSymmetric { row: 3, column: 1, .. })));
    a[(2, 0)] = f64::INFINITY;
    assert!(matches!(cholesky(a.view()), Err(LinalgError::NotFinite { row: 2, column: 0, .. })));

    let factor = cholesky(definite::<f64>(4, 1).view()).unwrap();
    assert!(matches!(factor.solve(Array2::zeros((3, 1)).view()), Err(LinalgError::ShapeMismatch { .. })));
    let mut b = Array2::zeros((4, 2));
    b[(1, 1)] = f64::NAN;
    assert!(matches!(factor.solve(b.view()), Err(LinalgError::NotFinite { row: 1, column: 1, .. })));
}

#[test]
fn triangular_solves_read_one_triangle_only() {
    let noisy = array![[2.0, 7.0], [1.0, 4.0]];
    let b = array![[2.0, 4.0], [9.0, 2.0]];
    let lower = solve_triangular(Triangle::Lower, noisy.view(), b.view()).unwrap();
    assert_eq!(lower, array![[1.0, 2.0], [2.0, 0.0]]);
    let upper = solve_triangular(Triangle::Upper, noisy.view(), array![[11.0], [4.0]].view()).unwrap();
    assert_eq!(upper, array![[2.0], [1.0]]);
    let singular = array![[1.0, 0.0], [1.0, 0.0]];
    assert_eq!(solve_triangular(Triangle::Lower, singular.view(), b.view()), Err(LinalgError::Singular { pivot: 1 }));
    let tiny = array![[1e-200]];
    let overflow = solve_triangular(Triangle::Lower, tiny.view(), array![[1e200]].view());
    assert!(matches!(overflow, Err(LinalgError::NotFinite { .. })), "a result that overflows is an error");
}
