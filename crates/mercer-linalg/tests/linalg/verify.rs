//! The checks themselves: sound results pass, damaged ones do not, in both depths.

use crate::references::{random, symmetric};
use mercer_linalg::verify::{Depth, LIMIT, eigen_residual, orthogonality, residual};
use mercer_linalg::{Scalar, matmul, symmetric_eigen, thin_qr};
use ndarray::Array2;

const DEPTHS: [Depth; 2] = [Depth::Full, Depth::Probes];

fn damage_is_seen<T: Scalar>(n: usize, slip: f64) {
    let a = symmetric::<T>(n, 3);
    let eigen = symmetric_eigen(a.view()).unwrap();
    for depth in DEPTHS {
        let sound = [
            eigen_residual(a.view(), eigen.values.view(), eigen.vectors.view(), depth),
            orthogonality(eigen.vectors.view(), depth),
        ];
        println!("{} {n} {depth:?}: {sound:.3?}", T::NAME);
        // A sixth of the limit, so that the limit itself is never a matter of luck.
        assert!(sound.iter().all(|ratio| *ratio < LIMIT / 6.0), "{sound:?}");

        let mut values = eigen.values.clone();
        values[n / 2] += T::narrow(slip * n as f64);
        assert!(eigen_residual(a.view(), values.view(), eigen.vectors.view(), depth) > LIMIT, "a value is off");

        let mut vectors = eigen.vectors.clone();
        vectors.column_mut(n / 3).assign(&eigen.vectors.column(n / 3 + 1));
        assert!(orthogonality(vectors.view(), depth) > LIMIT, "a vector comes twice");
        assert!(eigen_residual(a.view(), eigen.values.view(), vectors.view(), depth) > LIMIT, "and fits its value not");

        vectors[(0, 0)] = T::nan();
        let broken = orthogonality(vectors.view(), depth);
        assert!(broken.is_nan() || broken > LIMIT, "NaN never passes");
    }
}

#[test]
fn damage_is_seen_in_both_depths_and_scalars() {
    damage_is_seen::<f64>(60, 1e-10);
    damage_is_seen::<f64>(300, 1e-10);
    damage_is_seen::<f32>(60, 1e-1);
    damage_is_seen::<f32>(300, 1e-1);
}

#[test]
fn probes_estimate_the_full_ratio() {
    let q = thin_qr(random::<f64>(400, 200, 1).view()).unwrap().q;
    let bent = &q + &(random::<f64>(400, 200, 2) * 1e-9);
    let [full, probes] = DEPTHS.map(|depth| orthogonality(bent.view(), depth));
    // Four probes: the estimate of the squared norm has a relative deviation of at most √(2/4).
    assert!(probes / full > 0.5 && probes / full < 2.0, "{full} {probes}");
}

#[test]
fn a_lost_sign_is_seen() {
    let a = random::<f64>(50, 30, 1);
    let qr = thin_qr(a.view()).unwrap();
    let mut r = qr.r.clone();
    r[(29, 29)] = -r[(29, 29)];
    for depth in DEPTHS {
        let product = |r: &Array2<f64>, p: Array2<f64>| matmul(qr.q.view(), matmul(r.view(), p.view()).view());
        assert!(residual(a.view(), |p| product(&qr.r, p), depth) < LIMIT / 6.0);
        assert!(residual(a.view(), |p| product(&r, p), depth) > LIMIT);
    }
}

#[test]
fn zero_has_to_be_reproduced_exactly() {
    let zero = Array2::<f64>::zeros((3, 3));
    for depth in DEPTHS {
        assert_eq!(residual(zero.view(), |p| p * 0.0, depth), 0.0);
        assert!(residual(zero.view(), |p| p * 1e-30, depth) > LIMIT);
    }
}

#[test]
fn sound_results_stay_clear_of_the_limit() {
    // Structure that could concentrate rounding: one dominant direction, low rank, a smooth kernel with fast decay.
    let n = 500;
    let smooth = |i: usize, j: usize| (-((i as f64 - j as f64) / 60.0).powi(2)).exp();
    let features = random::<f64>(n, 5, 1);
    let matrices = [
        Array2::ones((n, n)),
        mercer_linalg::syrk(features.view()),
        Array2::from_shape_fn((n, n), |(i, j)| smooth(i, j)),
        Array2::from_shape_fn((n, n), |(i, j)| (i.min(j) + 1) as f64),
        Array2::from_shape_fn((n, n), |(i, j)| if i == j { 1.0 + 1e-9 } else { 1.0 }),
    ];
    for (i, a) in matrices.iter().enumerate() {
        clear(i, a);
        clear(i, &a.mapv(|v| v as f32));
    }
}

fn clear<T: Scalar>(case: usize, a: &Array2<T>) {
    let eigen = symmetric_eigen(a.view()).unwrap();
    let svd = mercer_linalg::thin_svd(a.view()).unwrap();
    let qr = thin_qr(a.view()).unwrap();
    let factor = mercer_linalg::cholesky(a.view()).unwrap();
    let shifted = a + &(Array2::<T>::eye(a.nrows()) * factor.jitter);
    let two = |x: &Array2<T>, y: &Array2<T>, p: Array2<T>| matmul(x.view(), matmul(y.view(), p.view()).view());
    let scaled = &svd.left * &svd.values;
    let ratios = [
        eigen_residual(a.view(), eigen.values.view(), eigen.vectors.view(), Depth::Full),
        orthogonality(eigen.vectors.view(), Depth::Full),
        residual(a.view(), |p| two(&scaled, &svd.right.t().to_owned(), p), Depth::Full),
        orthogonality(svd.left.view(), Depth::Full),
        orthogonality(svd.right.view(), Depth::Full),
        // faer drops up to 16 n ε of a nearly dependent column, so this one is measured in n, not √n.
        residual(a.view(), |p| two(&qr.q, &qr.r, p), Depth::Full) / (a.nrows() as f64).sqrt(),
        orthogonality(qr.q.view(), Depth::Full),
        residual(shifted.view(), |p| two(&factor.lower, &factor.lower.t().to_owned(), p), Depth::Full),
    ];
    println!("{} {case}: {ratios:.2?}", T::NAME);
    assert!(ratios.iter().all(|ratio| *ratio < LIMIT / 3.0), "case {case}: {ratios:.2?}");
}
