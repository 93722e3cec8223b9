//! Unknown poison: planted directions and clusters, and features against kernels.

mod common;

use common::{gram, normals};
use mercer_learn::metrics::area_under_roc;
use mercer_lens::LensError;
use mercer_lens::signatures::{
    Clustering, class_clusters_from_features, class_clusters_from_gram, class_spectral_from_features,
    class_spectral_from_gram, clusters_from_features, clusters_from_gram, combined, spectral_from_features,
    spectral_from_gram,
};
use ndarray::{Array2, Axis, array};

/// Samples of three classes; a tenth of class 1 has an offset of its own.
fn planted(width: usize, seed: u64) -> (Array2<f64>, Vec<usize>, Vec<bool>) {
    let n = 300;
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let poisoned: Vec<bool> = (0..n).map(|i| i % 30 == 1).collect();
    let mut x = normals(n, width, seed);
    for i in 0..n {
        x[[i, labels[i]]] += 20.0;
        if poisoned[i] {
            x[[i, 3]] += 12.0;
        }
    }
    (x, labels, poisoned)
}

/// Fewer features than samples, and more.
#[test]
fn a_planted_direction_is_found() {
    for width in [5, 150] {
        let (x, labels, poisoned) = planted(width, 1);
        let spectral = spectral_from_features(x.view(), &labels, 3).unwrap();
        let of_class = |scores: &[f64]| {
            let pick = |i: &usize| labels[*i] == 1;
            let chosen: Vec<usize> = (0..300).filter(pick).collect();
            let truth: Vec<bool> = chosen.iter().map(|&i| poisoned[i]).collect();
            area_under_roc(&chosen.iter().map(|&i| scores[i]).collect::<Vec<_>>(), &truth).unwrap()
        };
        assert_eq!(of_class(&spectral.scores), 1.0, "{width}");
        assert_eq!(of_class(&spectral.relative), 1.0, "{width}");
        assert!(area_under_roc(&spectral.relative, &poisoned).unwrap() > 0.98, "{width}");
        let clusters = clusters_from_features(x.view(), &labels, 3, Clustering::default()).unwrap();
        let found: Vec<bool> = clusters.scores.iter().zip(&labels).map(|(s, l)| *l == 1 && *s > 0.0).collect();
        assert_eq!(found, poisoned, "{width}");
        let class = clusters.classes[1];
        assert!((class.smaller.unwrap() - 0.1).abs() < 1e-12, "{class:?}");
        assert!(class.silhouette.unwrap() > clusters.classes[0].silhouette.unwrap(), "{width}");
        let both = combined(&spectral, &clusters).unwrap();
        assert!(area_under_roc(&both, &poisoned).unwrap() > 0.98, "{width}");
    }
}

#[test]
fn features_and_their_kernel_agree() {
    for width in [4, 40, 400] {
        let (x, labels, _) = planted(width, 2);
        let kernel = gram(&x);
        let (a, b) = (
            spectral_from_features(x.view(), &labels, 3).unwrap(),
            spectral_from_gram(kernel.view(), &labels, 3).unwrap(),
        );
        for (a, b) in a.scores.iter().zip(&b.scores) {
            assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{width}: {a} {b}");
        }
        for (a, b) in a.classes.iter().zip(&b.classes) {
            assert!((a.share.unwrap() - b.share.unwrap()).abs() < 1e-9, "{width}");
        }
        let settings = Clustering { components: 3, restarts: 4, seed: 7 };
        let (a, b) = (
            clusters_from_features(x.view(), &labels, 3, settings).unwrap(),
            clusters_from_gram(kernel.view(), &labels, 3, settings).unwrap(),
        );
        let of_class = |scores: &[f64]| (0..300).filter(|i| labels[*i] == 1).map(|i| scores[i]).collect::<Vec<_>>();
        for (a, b) in of_class(&a.scores).iter().zip(of_class(&b.scores)) {
            assert!((a - b).abs() < 1e-6, "{width}: {a} {b}");
        }
    }
}

/// Four points of a line and their kernel: everything is known.
#[test]
fn a_line_by_hand() {
    let x = array![[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [10.0, 10.0]];
    let expected = [-3.0f64, -2.0, -1.0, 6.0].map(|t| 2.0 * t * t);
    let kernel = gram(&x);
    for found in [class_spectral_from_features(x.view()).unwrap(), class_spectral_from_gram(kernel.view()).unwrap()] {
        assert!(found.scores.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-10), "{found:?}");
        assert!((found.relative.iter().sum::<f64>() - 4.0).abs() < 1e-12);
        assert!((found.share.unwrap() - 1.0).abs() < 1e-12);
    }
    let settings = Clustering::default();
    for found in [
        class_clusters_from_features(x.view(), settings).unwrap(),
        class_clusters_from_gram(kernel.view(), settings).unwrap(),
    ] {
        assert_eq!(found.in_smaller, [false, false, false, true]);
        // Silhouettes: a = 1.5, 1, 1.5 and b = 9, 8, 7 (in units of √2), and 0 for the single sample.
        let mean = (7.5 / 9.0 + 7.0 / 8.0 + 5.5 / 7.0) / 4.0;
        assert!((found.classes[0].silhouette.unwrap() - mean).abs() < 1e-9, "{found:?}");
        assert!((found.scores[3] - mean * 0.5 * 0.5).abs() < 1e-9);
    }
}

/// The best of several starts has the least sum of squares of all divisions.
#[test]
fn two_means_are_the_best_division() {
    for seed in 0..5 {
        let x = normals(9, 2, 100 + seed);
        let squares = |second: &dyn Fn(usize) -> bool| -> f64 {
            [false, true]
                .iter()
                .map(|which| {
                    let rows: Vec<usize> = (0..9).filter(|&i| second(i) == *which).collect();
                    let part = x.select(Axis(0), &rows);
                    let mean = part.mean_axis(Axis(0)).unwrap();
                    (&part - &mean).iter().map(|v| v * v).sum::<f64>()
                })
                .sum()
        };
        let best = (1..(1 << 9) - 1).map(|mask: usize| squares(&|i| mask >> i & 1 == 1)).fold(f64::INFINITY, f64::min);
        let settings = Clustering { components: 2, restarts: 50, seed };
        let found = class_clusters_from_features(x.view(), settings).unwrap();
        let ours = squares(&|i| found.in_smaller[i]);
        assert!((ours - best).abs() < 1e-9 * best, "{seed}: {ours} {best}");
    }
}

#[test]
fn classes_without_a_direction() {
    let x = array![[1.0, 2.0], [3.0, 3.0], [3.0, 3.0], [3.0, 3.0]];
    let labels = [0, 2, 2, 2];
    let kernel = gram(&x);
    let settings = Clustering::default();
    for found in [spectral_from_features(x.view(), &labels, 3), spectral_from_gram(kernel.view(), &labels, 3)] {
        let found = found.unwrap();
        assert_eq!(found.scores, [0.0; 4]);
        assert!(found.classes.iter().all(|class| class.share.is_none()));
        assert_eq!(found.classes.iter().map(|class| class.samples).collect::<Vec<_>>(), [1, 0, 3]);
    }
    let found = clusters_from_features(x.view(), &labels, 3, settings).unwrap();
    assert!(found.scores == [0.0; 4] && found.classes.iter().all(|class| class.silhouette.is_none()));
    assert!(matches!(
        clusters_from_features(x.view(), &labels, 3, Clustering { components: 0, ..settings }),
        Err(LensError::Setting { .. })
    ));
    assert!(matches!(spectral_from_features(x.view(), &[0; 3], 1), Err(LensError::Rows { .. })));
    assert!(matches!(spectral_from_features((&x * 1e200).view(), &labels, 3), Err(LensError::Setting { .. })));
    assert!(matches!(spectral_from_gram(x.view(), &labels, 3), Err(LensError::Rows { .. })));
}

/// More components than the kernel of many samples has, and directions of equal variance.
#[test]
fn kernels_of_low_rank() {
    let x = normals(300, 2, 11);
    let found = class_clusters_from_gram(gram(&x).view(), Clustering::default()).unwrap();
    let expected = class_clusters_from_features(x.view(), Clustering::default()).unwrap();
    assert!((found.classes[0].silhouette.unwrap() - expected.classes[0].silhouette.unwrap()).abs() < 1e-6);
    let corners = Array2::from_shape_fn((400, 4), |(i, j)| f64::from(u8::from(i % 4 == j)));
    let found = class_spectral_from_gram(gram(&corners).view()).unwrap();
    assert!((found.share.unwrap() - 1.0 / 3.0).abs() < 1e-9, "{:?}", found.share);
}

#[test]
fn the_same_seed_gives_the_same_clusters() {
    let (x, labels, _) = planted(20, 3);
    let settings = Clustering { components: 10, restarts: 3, seed: 5 };
    let once = clusters_from_features(x.view(), &labels, 3, settings).unwrap();
    assert_eq!(once, clusters_from_features(x.view(), &labels, 3, settings).unwrap());
}
