//! Comparisons of kernels, against closed forms and what must not change them.

mod common;

use common::{features, gram};
use mercer_lens::{LensError, extent, likeness};
use ndarray::{Array2, array};

/// The estimate as its definition has it: the mean over all ordered quadruples of different samples.
fn by_quadruples(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let n = a.nrows();
    let (mut sum, mut count) = (0.0, 0.0);
    for i in 0..n {
        for j in (0..n).filter(|&j| j != i) {
            for q in (0..n).filter(|&q| q != i && q != j) {
                for r in (0..n).filter(|&r| r != i && r != j && r != q) {
                    sum += a[[i, j]] * (b[[i, j]] + b[[q, r]] - 2.0 * b[[i, q]]);
                    count += 1.0;
                }
            }
        }
    }
    sum / count
}

#[test]
fn the_alignment_is_the_mean_over_quadruples() {
    let (a, b) = (gram(&features(7, 3, 1)), gram(&features(7, 2, 2)));
    let own = |matrix: &Array2<f64>| by_quadruples(matrix, matrix);
    let expected = by_quadruples(&a, &b) / (own(&a) * own(&b)).sqrt();
    let found = likeness(a.view(), b.view()).unwrap().cka.unwrap();
    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
}

/// Kernels that have nothing to do with each other: zero on average, where the biased estimate is near 0.4.
#[test]
fn unrelated_kernels_are_not_alike() {
    let found = (0..200u64).map(|seed| {
        let (a, b) = (gram(&features(16, 8, 2 * seed + 1)), gram(&features(16, 8, 2 * seed + 2)));
        likeness(a.view(), b.view()).unwrap().cka.unwrap()
    });
    let mean = found.sum::<f64>() / 200.0;
    assert!(mean.abs() < 0.03, "{mean}");
}

#[test]
fn order_scale_and_copies() {
    let (x, y) = (features(9, 4, 3), features(9, 4, 4));
    let (a, b) = (gram(&x), gram(&y));
    let found = likeness(a.view(), b.view()).unwrap();
    let order = [4, 2, 8, 0, 1, 7, 3, 6, 5];
    let moved = |matrix: &Array2<f64>| Array2::from_shape_fn((9, 9), |(i, j)| matrix[[order[i], order[j]]]);
    let other = likeness(moved(&a).view(), moved(&b).view()).unwrap();
    assert!((found.cka.unwrap() - other.cka.unwrap()).abs() < 1e-12);
    assert!((found.frobenius - other.frobenius).abs() < 1e-12);
    for scale in [1e-180, 7.0, 1e180] {
        let scaled = likeness((&a * scale).view(), b.view()).unwrap().cka.unwrap();
        assert!((scaled - found.cka.unwrap()).abs() < 1e-10, "{scale}: {scaled}");
    }
    let twice = ndarray::concatenate![ndarray::Axis(0), x, x];
    let copies = gram(&twice);
    assert!((likeness(copies.view(), copies.view()).unwrap().cka.unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(likeness(a.view(), a.view()).unwrap().frobenius, 0.0);
    // A kernel that tells no samples apart is like none.
    assert_eq!(likeness(Array2::ones((9, 9)).view(), b.view()).unwrap().cka, None);
}

#[test]
fn spectra_end_where_they_should() {
    let found = extent(array![[2.0, 1.0], [1.0, 2.0]].view()).unwrap();
    assert!((found.lambda_max - 3.0).abs() < 1e-14 && (found.lambda_min - 1.0).abs() < 1e-14);
    assert!((found.condition.unwrap() - 3.0).abs() < 1e-13);
    assert_eq!(extent(gram(&features(6, 2, 5)).view()).unwrap().condition, None, "its rank is two");
}

#[test]
fn bad_input_is_refused() {
    let good = gram(&features(5, 2, 6));
    let mut hole = good.clone();
    hole[[1, 2]] = f64::NAN;
    let mut crooked = good.clone();
    crooked[[1, 2]] += 1.0;
    for bad in [&hole, &crooked] {
        assert!(matches!(likeness(good.view(), bad.view()), Err(LensError::Algebra(_))));
        assert!(matches!(extent(bad.view()), Err(LensError::Algebra(_))));
    }
    let small = gram(&features(3, 2, 7));
    assert!(matches!(likeness(small.view(), small.view()), Err(LensError::TooFew { least: 4, found: 3, .. })));
    assert!(matches!(likeness(good.view(), small.view()), Err(LensError::Rows { expected: 5, found: 3, .. })));
    assert!(matches!(extent(Array2::zeros((0, 0)).view()), Err(LensError::TooFew { .. })));
}
