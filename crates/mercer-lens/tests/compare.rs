//! Comparisons of kernels, against closed forms and what must not change them.

mod common;

use common::{features, gram};
use mercer_learn::regression::Ridge;
use mercer_learn::{Fit, Predict, SampleRows};
use mercer_lens::{LensError, Linearised, Valued, block_mass, extent, kernel_likeness, likeness, relative_difference};
use mercer_linalg::symmetric_eigen;
use ndarray::linalg::kron;
use ndarray::{Array2, array, s};

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
    let found = extent(array![[2.0, 1.0], [1.0, 2.0]].view(), f64::EPSILON).unwrap();
    assert!((found.lambda_max - 3.0).abs() < 1e-14 && (found.lambda_min - 1.0).abs() < 1e-14);
    assert!((found.condition.unwrap() - 3.0).abs() < 1e-13);
    assert_eq!(extent(gram(&features(6, 2, 5)).view(), f64::EPSILON).unwrap().condition, None, "its rank is two");
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
        assert!(matches!(extent(bad.view(), f64::EPSILON), Err(LensError::Algebra(_))));
    }
    let small = gram(&features(3, 2, 7));
    assert!(matches!(likeness(small.view(), small.view()), Err(LensError::TooFew { least: 4, found: 3, .. })));
    assert!(matches!(likeness(good.view(), small.view()), Err(LensError::Rows { expected: 5, found: 3, .. })));
    assert!(matches!(extent(Array2::zeros((0, 0)).view(), f64::EPSILON), Err(LensError::TooFew { .. })));
}

/// A kernel with `c` outputs per sample, those of a sample next to each other.
fn full(n: usize, c: usize, seed: u64) -> Array2<f64> {
    gram(&features(n * c, 3 * n, seed))
}

fn valued(matrix: &Array2<f64>, n_outputs: usize) -> Valued<'_> {
    Valued { matrix: matrix.view(), n_outputs }
}

/// Distance, scale and alignment without the Kronecker product are those of the matrices that are written out.
#[test]
fn a_scalar_kernel_stands_for_its_kronecker_product() {
    for (n, c, seed) in [(7, 3, 11), (12, 2, 12), (5, 6, 13)] {
        let (theta, kappa) = (full(n, c, seed), gram(&features(n, 4, seed + 100)) + 0.3);
        let written = kron(&kappa, &Array2::<f64>::eye(c));
        for (found, expected) in [
            (
                kernel_likeness(valued(&theta, c), valued(&kappa, 1)).unwrap(),
                likeness(theta.view(), written.view()).unwrap(),
            ),
            (
                kernel_likeness(valued(&kappa, 1), valued(&theta, c)).unwrap(),
                likeness(written.view(), theta.view()).unwrap(),
            ),
        ] {
            for (found, expected) in [
                (found.frobenius, expected.frobenius),
                (found.scale.unwrap(), expected.scale.unwrap()),
                (found.scaled_frobenius, expected.scaled_frobenius),
                (found.cka.unwrap(), expected.cka.unwrap()),
            ] {
                assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{n} {c}: {found} {expected}");
            }
        }
        // The eigenvalues of the product are those of the kernel.
        let (small, large) =
            (extent(kappa.view(), f64::EPSILON).unwrap(), extent(written.view(), f64::EPSILON).unwrap());
        assert!((small.lambda_max - large.lambda_max).abs() < 1e-12 * large.lambda_max);
        assert!((small.lambda_min - large.lambda_min).abs() < 1e-12 * large.lambda_max);
    }
    let constant = Array2::ones((6, 6));
    assert_eq!(kernel_likeness(valued(&full(6, 2, 1), 2), valued(&(&constant * 0.0), 1)).unwrap().cka, None);
    assert_eq!(kernel_likeness(valued(&Array2::ones((12, 12)), 2), valued(&constant, 1)).unwrap().cka, None);
}

/// The nearest multiple is nearer than any other.
#[test]
fn the_scale_is_the_best_one() {
    let (theta, kappa) = (full(6, 3, 21), gram(&features(6, 4, 22)));
    let best = kernel_likeness(valued(&theta, 3), valued(&kappa, 1)).unwrap();
    let scale = best.scale.unwrap();
    for factor in [0.9, 0.99, 1.01, 1.1] {
        let other = kernel_likeness(valued(&theta, 3), valued(&(&kappa * (scale * factor)), 1)).unwrap();
        assert!(other.frobenius > best.scaled_frobenius, "{factor}");
    }
}

#[test]
fn blocks_have_the_mass_they_were_given() {
    // Two samples, two outputs: ones within an output, a half between outputs.
    let matrix = kron(&Array2::ones((2, 2)), &array![[1.0, 0.5], [0.5, 1.0]]);
    let found = block_mass(valued(&matrix, 2)).unwrap();
    assert_eq!((found.ratio, found.per_entry, found.share), (Some(0.5), Some(0.5), Some(0.2)));
    assert!((found.least_distance.unwrap() - 0.2_f64.sqrt()).abs() < 1e-15, "all of it is off the diagonals");
    // A scalar kernel has no mass there, and is its own nearest scalar kernel.
    let product = kron(&gram(&features(5, 3, 31)), &Array2::eye(4));
    let found = block_mass(valued(&product, 4)).unwrap();
    assert_eq!((found.ratio, found.share), (Some(0.0), Some(0.0)));
    assert!(found.least_distance.unwrap() < 1e-7);
    // Outputs with different diagonals: no scalar kernel fits, though nothing is off the diagonals.
    let uneven = kron(&Array2::ones((2, 2)), &array![[3.0, 0.0], [0.0, 1.0]]);
    let found = block_mass(valued(&uneven, 2)).unwrap();
    assert_eq!(found.share, Some(0.0));
    assert!((found.least_distance.unwrap() - 0.2_f64.sqrt()).abs() < 1e-15);
    // The mean of the diagonals is the nearest scalar kernel.
    let theta = full(6, 3, 32);
    let mean =
        Array2::from_shape_fn((6, 6), |(i, j)| theta.slice(s![3 * i..3 * i + 3, 3 * j..3 * j + 3]).diag().sum() / 3.0);
    let found = block_mass(valued(&theta, 3)).unwrap();
    let nearest = kernel_likeness(valued(&theta, 3), valued(&mean, 1)).unwrap();
    assert!((found.least_distance.unwrap() - nearest.frobenius).abs() < 1e-12);
    assert!((nearest.scale.unwrap() - 1.0).abs() < 1e-12);
    // One output has nothing off the diagonal.
    let found = block_mass(valued(&gram(&features(4, 3, 33)), 1)).unwrap();
    assert_eq!((found.ratio, found.per_entry, found.share), (Some(0.0), None, Some(0.0)));
    assert!(matches!(block_mass(valued(&theta, 4)), Err(LensError::Setting { .. })));
}

/// Predictions of (5) and (6) of the paper, by the inverse written out, and by ridge regression.
#[test]
fn linear_networks_solve_their_equations() {
    let (n, m, c) = (6, 4, 3);
    let features_of = features((n + m) * c, 40, 41);
    let all = gram(&features_of);
    let (train, rows) = (all.slice(s![..n * c, ..n * c]).to_owned(), all.slice(s![n * c.., ..n * c]).to_owned());
    let targets = features(n, c, 42);
    for ridge in [0.0, 0.3] {
        let fit = Linearised::fit(valued(&train, c), targets.view(), ridge).unwrap();
        let shift = ridge * train.diag().sum() / (n * c) as f64;
        assert!((fit.ridge - shift).abs() < 1e-15);
        let eigen = symmetric_eigen(train.view()).unwrap();
        let inverse = eigen.vectors.dot(&Array2::from_diag(&eigen.values.mapv(|value| 1.0 / (value + shift))));
        let inverse = inverse.dot(&eigen.vectors.t());
        let flat = targets.clone().into_shape_with_order((n * c, 1)).unwrap();
        let expected = rows.dot(&inverse).dot(&flat).into_shape_with_order((m, c)).unwrap();
        let found = fit.predict(rows.view()).unwrap();
        assert!(relative_difference(expected.view(), found.view()).unwrap().unwrap() < 1e-10);
        let machine = Ridge::new(shift).unwrap().fit(&SampleRows::Gram(train.view()), &flat).unwrap();
        let predicted = machine.predict(&SampleRows::Gram(rows.view())).unwrap();
        let predicted = predicted.into_shape_with_order((m, c)).unwrap();
        assert!(relative_difference(predicted.view(), found.view()).unwrap().unwrap() < 1e-12);
        assert_eq!(fit.residual < 1e-10, ridge == 0.0, "{}", fit.residual);
    }
    // A scalar kernel learns every output by itself, as its Kronecker product does.
    let kappa = gram(&features(n + m, 20, 43));
    let (own, other) = (kappa.slice(s![..n, ..n]).to_owned(), kappa.slice(s![n.., ..n]).to_owned());
    let [wide, wide_rows] = [&own, &other].map(|matrix| kron(matrix, &Array2::<f64>::eye(c)));
    let expected = Linearised::fit(valued(&wide, c), targets.view(), 0.0).unwrap().predict(wide_rows.view()).unwrap();
    let found = Linearised::fit(valued(&own, 1), targets.view(), 0.0).unwrap().predict(other.view()).unwrap();
    assert!(relative_difference(expected.view(), found.view()).unwrap().unwrap() < 1e-10);
}

/// A singular kernel gets the least jitter, and the residual says what it could not fit.
#[test]
fn a_singular_kernel_leaves_a_residual() {
    let kernel = array![[1.0, 1.0], [1.0, 1.0]];
    let fit = Linearised::fit(valued(&kernel, 1), array![[1.0], [0.0]].view(), 0.0).unwrap();
    assert_eq!(fit.ridge, 1e-12);
    assert!((fit.residual - 0.5_f64.sqrt()).abs() < 1e-3, "{}", fit.residual);
    assert_eq!(relative_difference(array![[0.0]].view(), array![[1.0]].view()).unwrap(), None);
    let wrong = Linearised::fit(valued(&kernel, 2), array![[1.0]].view(), 0.0);
    assert!(matches!(wrong, Err(LensError::Rows { .. })));
    assert!(matches!(
        Linearised::fit(valued(&kernel, 1), array![[1.0], [0.0]].view(), -1.0),
        Err(LensError::Setting { .. })
    ));
    assert!(fit.predict(array![[1.0]].view()).is_err());
}
