//! TwoNN on manifolds of known dimension.

mod common;

use common::{features, normals};
use mercer_lens::dimension::two_nn;
use ndarray::Array2;

fn gram(x: &Array2<f64>) -> Array2<f64> {
    mercer_linalg::syrk(x.view())
}

/// Points of a cube in a `d`-dimensional plane, turned into `width` dimensions.
fn cube(n: usize, d: usize, width: usize, seed: u64) -> Array2<f64> {
    turned(&features(n, d, seed), width, seed + 1)
}

/// Points of the surface of a ball, of dimension `d`, turned into `width` dimensions.
fn sphere(n: usize, d: usize, width: usize, seed: u64) -> Array2<f64> {
    let mut x = normals(n, d + 1, seed);
    for mut row in x.outer_iter_mut() {
        let norm = row.dot(&row).sqrt();
        row /= norm;
    }
    turned(&x, width, seed + 1)
}

fn turned(x: &Array2<f64>, width: usize, seed: u64) -> Array2<f64> {
    x.dot(&mercer_linalg::thin_qr(normals(width, x.ncols(), seed).view()).unwrap().q.t())
}

#[test]
fn the_dimension_of_a_manifold_is_found() {
    for (d, tolerance) in [(1, 0.05), (2, 0.05), (5, 0.05), (10, 0.10)] {
        let found = two_nn(gram(&sphere(5000, d, 20, 3)).view()).unwrap();
        let dimension = found.dimension.unwrap();
        println!("sphere of dimension {d}: {dimension:.3}, bias {:+.1} %", 100.0 * (dimension / d as f64 - 1.0));
        assert!((dimension / d as f64 - 1.0).abs() < tolerance, "{d}: {found:?}");
        assert_eq!(found.n_used + found.n_copies, 5000);
        assert!(found.n_copies < 3, "{found:?}");
    }
}

/// Samples at the faces of a cube have neighbours on one side only. In ten dimensions nearly all are at a face.
#[test]
fn a_boundary_makes_the_dimension_too_small() {
    for (d, least, most) in [(2, 0.95, 1.05), (5, 0.9, 0.97), (10, 0.84, 0.92)] {
        let dimension = two_nn(gram(&cube(5000, d, 20, 3)).view()).unwrap().dimension.unwrap();
        println!("cube of dimension {d}: {dimension:.3}, bias {:+.1} %", 100.0 * (dimension / d as f64 - 1.0));
        assert!((least..most).contains(&(dimension / d as f64)), "{d}: {dimension}");
    }
}

#[test]
fn copies_are_left_out() {
    let x = cube(400, 3, 6, 9);
    let twice: Vec<usize> = (0..400).chain(0..400).collect();
    let (once, copied) =
        (two_nn(gram(&x).view()).unwrap(), two_nn(gram(&x.select(ndarray::Axis(0), &twice)).view()).unwrap());
    assert_eq!(once.dimension, copied.dimension);
    assert_eq!(copied.n_copies, 400);
}

#[test]
fn equal_samples_have_no_dimension() {
    assert_eq!(two_nn(Array2::ones((5, 5)).view()).unwrap().dimension, None);
}
