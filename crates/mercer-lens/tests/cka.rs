//! CKA from features and strips, against Gram matrices.

mod common;

use common::{features, gram, normals};
use mercer_lens::cka::{CkaStrips, cka_from_features, test_from_features, test_from_grams};
use mercer_lens::{LensError, likeness};
use ndarray::{Array2, s};

fn strips(a: &Array2<f64>, b: &Array2<f64>, size: usize) -> mercer_lens::cka::Cka {
    let n = a.nrows();
    let mut found = CkaStrips::new(n).unwrap();
    // From the last strip to the first.
    for start in (0..n).step_by(size).rev() {
        let rows = s![start..(start + size).min(n), ..];
        found.add(start, a.slice(rows), b.slice(rows)).unwrap();
    }
    found.finish().unwrap()
}

/// Related features of several widths: more samples than features, and fewer.
fn pairs() -> Vec<(Array2<f64>, Array2<f64>)> {
    [(40, 3, 5), (300, 6, 4), (12, 30, 50), (300, 500, 2)]
        .map(|(n, p, q)| {
            let x = features(n, p, 1) + 3.0;
            let y = x.dot(&features(p, q, 2)) + features(n, q, 3) * 0.5 - 8.0;
            (x, y)
        })
        .into()
}

/// Song's estimate as it is printed. It loses digits to the mean of the kernels.
fn printed(k: &Array2<f64>, l: &Array2<f64>) -> f64 {
    let n = k.nrows() as f64;
    let [k, l] = [k, l].map(|matrix| matrix - &Array2::from_diag(&matrix.diag()));
    let product = k.dot(&l);
    product.diag().sum() + k.sum() * l.sum() / ((n - 1.0) * (n - 2.0)) - 2.0 * product.sum() / (n - 2.0)
}

#[test]
fn features_strips_and_matrices_agree() {
    for (x, y) in pairs() {
        let (k, l) = (gram(&x), gram(&y));
        let whole = likeness(k.view(), l.view()).unwrap().cka.unwrap();
        let expected = printed(&k, &l) / (printed(&k, &k) * printed(&l, &l)).sqrt();
        assert!((whole - expected).abs() < 1e-7, "{whole} {expected}");
        let of_features = cka_from_features(x.view(), y.view()).unwrap();
        assert!((of_features.debiased.unwrap() - whole).abs() < 1e-10, "{of_features:?} {whole}");
        let of_grams = test_from_grams(k.view(), l.view(), 0, 0).unwrap().cka;
        assert!((of_grams.debiased.unwrap() - whole).abs() < 1e-10);
        assert!((of_grams.biased.unwrap() - of_features.biased.unwrap()).abs() < 1e-10);
        for size in [1, 7, 300] {
            let found = strips(&k, &l, size);
            assert!((found.debiased.unwrap() - whole).abs() < 1e-10, "{found:?} {whole}");
            assert!((found.biased.unwrap() - of_features.biased.unwrap()).abs() < 1e-10);
        }
    }
}

/// The biased value by its definition, with centring matrices.
#[test]
fn the_biased_value_is_that_of_centred_matrices() {
    let (x, y) = pairs().remove(0);
    let n = x.nrows();
    let h = Array2::from_shape_fn((n, n), |(i, j)| f64::from(u8::from(i == j)) - 1.0 / n as f64);
    let (k, l) = (h.dot(&gram(&x)).dot(&h), h.dot(&gram(&y)).dot(&h));
    let inner = |a: &Array2<f64>, b: &Array2<f64>| (a * b).sum();
    let expected = inner(&k, &l) / (inner(&k, &k) * inner(&l, &l)).sqrt();
    assert!((cka_from_features(x.view(), y.view()).unwrap().biased.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn independent_features_have_no_debiased_similarity() {
    let (draws, n, width) = (2000_u64, 32, 8);
    let (mut debiased, mut biased) = (Vec::new(), 0.0);
    let all = normals(n * draws as usize, 2 * width, 17);
    for draw in 0..draws as usize {
        let rows = all.slice(s![draw * n..(draw + 1) * n, ..]);
        let found = cka_from_features(rows.slice(s![.., ..width]), rows.slice(s![.., width..])).unwrap();
        debiased.push(found.debiased.unwrap());
        biased += found.biased.unwrap() / draws as f64;
    }
    let mean = debiased.iter().sum::<f64>() / draws as f64;
    let variance = debiased.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (draws - 1) as f64;
    assert!(mean.abs() < 4.0 * (variance / draws as f64).sqrt(), "{mean} {variance}");
    assert!((biased - 0.2).abs() < 0.01, "{biased}");
}

/// The p-value of independent sides is uniform; that of related ones is the smallest possible.
#[test]
fn p_values() {
    let uniform: Vec<f64> = (0..200)
        .map(|seed| {
            let (x, y) = (normals(16, 3, 100 + seed), normals(16, 2, 900 + seed));
            test_from_features(x.view(), y.view(), 39, seed).unwrap().p_value.unwrap()
        })
        .collect();
    let below = |level: f64| uniform.iter().filter(|p| **p <= level).count() as f64 / 200.0;
    // Within four standard errors of a share of 200.
    for level in [0.1, 0.25, 0.5, 0.75] {
        assert!(
            (below(level) - level).abs() < 4.0 * (level * (1.0 - level) / 200.0).sqrt(),
            "{level}: {}",
            below(level)
        );
    }
    for (x, y) in pairs().into_iter().take(3) {
        let found = test_from_features(x.view(), y.view(), 99, 5).unwrap();
        let other = test_from_grams(gram(&x).view(), gram(&y).view(), 99, 5).unwrap();
        assert_eq!((found.p_value, other.p_value), (Some(0.01), Some(0.01)));
        assert_eq!(found, test_from_features(x.view(), y.view(), 99, 5).unwrap());
    }
    // Features and Gram matrices see the same permutations.
    let (x, y) = (normals(20, 2, 3), normals(20, 3, 4));
    let found = test_from_features(x.view(), y.view(), 199, 5).unwrap().p_value;
    assert_eq!(found, test_from_grams(gram(&x).view(), gram(&y).view(), 199, 5).unwrap().p_value);
}

#[test]
fn constant_sides_and_wrong_strips() {
    let x = features(8, 2, 1);
    let constant = Array2::from_elem((8, 3), 0.7);
    let found = test_from_features(x.view(), constant.view(), 9, 0).unwrap();
    assert_eq!((found.cka.debiased, found.cka.biased, found.p_value), (None, None, None));
    assert_eq!(strips(&gram(&x), &gram(&constant), 3).debiased, None);
    // Constant off the diagonal.
    let diagonal = Array2::from_diag(&features(8, 1, 4).column(0)) + 0.3;
    assert_eq!(test_from_grams(gram(&x).view(), diagonal.view(), 9, 0).unwrap().cka.debiased, None);
    assert_eq!(strips(&gram(&x), &diagonal, 3).debiased, None);
    assert_eq!(likeness(gram(&x).view(), diagonal.view()).unwrap().cka, None);
    assert!(cka_from_features(x.slice(s![..3, ..]), x.slice(s![..3, ..])).is_err());
    assert!(CkaStrips::new(3).is_err());
    let k = gram(&x);
    let mut some = CkaStrips::new(8).unwrap();
    some.add(2, k.slice(s![2..5, ..]), k.slice(s![2..5, ..])).unwrap();
    assert!(matches!(some.add(4, k.slice(s![4..6, ..]), k.slice(s![4..6, ..])), Err(LensError::Setting { .. })));
    assert!(matches!(some.add(7, k.slice(s![..2, ..]), k.slice(s![..2, ..])), Err(LensError::Setting { .. })));
    assert!(some.add(0, k.slice(s![..2, ..3]), k.slice(s![..2, ..3])).is_err());
    assert!(matches!(some.finish(), Err(LensError::Rows { expected: 8, found: 3, .. })));
}
