//! Neural collapse against constructed cases and a direct computation with matrices of units by units.

mod common;

use common::normals;
use mercer_lens::collapse::{Decided, collapse};
use mercer_linalg::symmetric_eigen;
use ndarray::{Array1, Array2, Axis};

/// The corners of a simplex with `n` corners, in `width` dimensions, rotated by nothing and moved by a constant.
fn simplex(n: usize, width: usize) -> Array2<f64> {
    let shift = Array1::from_shape_fn(width, |j| 0.3 * j as f64 - 1.0);
    let corners = Array2::from_shape_fn(
        (n, width),
        |(i, j)| if i == j { 1.0 } else { 0.0 } - if j < n { 1.0 / n as f64 } else { 0.0 },
    );
    corners + &shift
}

#[test]
fn a_simplex_without_spread_is_fully_collapsed() {
    for n_classes in [2, 3, 10] {
        let corners = simplex(n_classes, 12);
        let labels: Vec<usize> = (0..5 * n_classes).map(|i| i * 7 % n_classes).collect();
        let features = corners.select(Axis(0), &labels);
        let weight = 3.0 * (&corners - &corners.mean_axis(Axis(0)).unwrap());
        let decided = Decided { decisions: &labels, weight: Some(weight.view()) };
        let found = collapse(features.view(), &labels, n_classes, decided).unwrap();
        assert!(found.nc1.unwrap() < 1e-20, "{found:?}");
        assert!(found.nc2_norms.unwrap() < 1e-7 && found.nc2_angles.unwrap() < 1e-12, "{found:?}");
        assert!(found.nc3.unwrap() < 1e-20 && found.nc4 == 0.0, "{found:?}");
    }
}

#[test]
fn random_features_match_a_direct_computation() {
    let (n, width, n_classes) = (90, 14, 4);
    let labels: Vec<usize> = (0..n).map(|i| (i * 5 + i / 7) % n_classes).collect();
    let mut features = normals(n, width, 5);
    for (mut row, &label) in features.outer_iter_mut().zip(&labels) {
        row[label] += 2.0;
        row[5] += 3.0;
    }
    let weight = normals(n_classes, width, 6);
    let decisions: Vec<usize> = (0..n).map(|i| i % n_classes).collect();
    let decided = Decided { decisions: &decisions, weight: Some(weight.view()) };
    let found = collapse(features.view(), &labels, n_classes, decided).unwrap();

    let of_class = |class: usize| features.select(Axis(0), &(0..n).filter(|&i| labels[i] == class).collect::<Vec<_>>());
    let means: Vec<Array1<f64>> = (0..n_classes).map(|class| of_class(class).mean_axis(Axis(0)).unwrap()).collect();
    let centre = means.iter().fold(Array1::zeros(width), |sum: Array1<f64>, mean| sum + mean) / n_classes as f64;
    let outer = |v: &Array1<f64>| {
        let column = v.view().insert_axis(Axis(1));
        column.dot(&column.t())
    };
    let mut within = Array2::<f64>::zeros((width, width));
    for (row, &label) in features.outer_iter().zip(&labels) {
        within += &(outer(&(&row - &means[label])) / n as f64);
    }
    let mut between = Array2::<f64>::zeros((width, width));
    means.iter().for_each(|mean| between += &(outer(&(mean - &centre)) / n_classes as f64));
    let eigen = symmetric_eigen(between.view()).unwrap();
    let mut trace = 0.0;
    for k in 0..n_classes - 1 {
        let u = eigen.vectors.column(k);
        trace += u.dot(&within.dot(&u)) / eigen.values[k];
    }
    assert!((found.nc1.unwrap() - trace / n_classes as f64).abs() < 1e-10 * trace);

    let centred: Vec<Array1<f64>> = means.iter().map(|mean| mean - &centre).collect();
    let norms: Vec<f64> = centred.iter().map(|m| m.dot(m).sqrt()).collect();
    let mean = norms.iter().sum::<f64>() / 4.0;
    let spread = (norms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0).sqrt() / mean;
    assert!((found.nc2_norms.unwrap() - spread).abs() < 1e-12);
    let mut angles = Vec::new();
    for i in 0..4 {
        for j in i + 1..4 {
            angles.push((centred[i].dot(&centred[j]) / norms[i] / norms[j] + 1.0 / 3.0).abs());
        }
    }
    assert!((found.nc2_angles.unwrap() - angles.iter().sum::<f64>() / 6.0).abs() < 1e-12);

    let length = weight.iter().map(|x| x * x).sum::<f64>().sqrt();
    let all = norms.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut distance = 0.0;
    for (class, mean) in centred.iter().enumerate() {
        distance += (&weight.row(class) / length - mean / all).iter().map(|x| x * x).sum::<f64>();
    }
    assert!((found.nc3.unwrap() - distance).abs() < 1e-12);

    let nearest = |row: ndarray::ArrayView1<'_, f64>| {
        let far: Vec<f64> = means.iter().map(|mean| (&row - mean).mapv(|x| x * x).sum()).collect();
        (0..4).min_by(|&a, &b| far[a].total_cmp(&far[b])).unwrap()
    };
    let different = features.outer_iter().zip(&decisions).filter(|(row, decision)| nearest(*row) != **decision).count();
    assert_eq!(found.nc4, different as f64 / n as f64);
}

#[test]
fn features_that_carry_no_class_have_no_ratio() {
    let features = Array2::<f64>::ones((6, 3));
    let labels = [0, 1, 2, 0, 1, 2];
    let found = collapse(features.view(), &labels, 3, Decided { decisions: &labels, weight: None }).unwrap();
    assert_eq!((found.nc1, found.nc2, found.nc3), (None, None, None));
    let found = collapse(features.view(), &[0; 6], 3, Decided { decisions: &[0; 6], weight: None }).unwrap();
    assert_eq!((found.nc1, found.nc4), (None, 0.0));
}
