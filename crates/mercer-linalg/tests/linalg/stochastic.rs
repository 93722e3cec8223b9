//! Traces and spectral densities from random vectors, against all eigenvalues.

use crate::references::random;
use mercer_linalg::{LinalgError, SpectralDensity, StochasticLanczos, hutch_plus_plus, symmetric_eigen, thin_qr};
use ndarray::{Array1, Array2};

/// A matrix with these eigenvalues and random eigenvectors.
fn with_values(values: &Array1<f64>, seed: u64) -> Array2<f64> {
    let q = thin_qr(random::<f64>(values.len(), values.len(), seed).view()).unwrap().q;
    (&q * values).dot(&q.t())
}

/// A Gaussian kernel on points of the plane: its eigenvalues fall fast, and are never zero.
fn kernel(n: usize) -> Array2<f64> {
    let x = random::<f64>(n, 2, 5);
    Array2::from_shape_fn((n, n), |(i, j)| {
        let square: f64 = (0..2).map(|k| (x[(i, k)] - x[(j, k)]).powi(2)).sum();
        // Squared values on the diagonal that differ, so that the trace is not known from one entry.
        (-square * 4.0).exp() * (1.0 + x[(i, 0)]) * (1.0 + x[(j, 0)])
    })
}

fn exact_trace(a: &Array2<f64>) -> f64 {
    a.diag().sum()
}

#[test]
fn hutch_plus_plus_is_within_a_percent_on_a_kernel() {
    let a = kernel(400);
    for seed in 0..5 {
        let found = hutch_plus_plus(&a, 100, seed).unwrap();
        assert!((found.value / exact_trace(&a) - 1.0).abs() < 0.01, "{found:?}");
        assert_eq!(found.n_applications, 100);
        assert_eq!(hutch_plus_plus(&a, 100, seed).unwrap(), found);
    }
    assert_ne!(hutch_plus_plus(&a, 100, 0).unwrap(), hutch_plus_plus(&a, 100, 1).unwrap());
}

#[test]
fn hutch_plus_plus_is_exact_on_low_rank_and_with_all_products() {
    let factor = random::<f64>(200, 8, 2);
    let low = factor.dot(&factor.t());
    let found = hutch_plus_plus(&low, 30, 3).unwrap();
    assert!((found.value / exact_trace(&low) - 1.0).abs() < 1e-12 && found.standard_error.unwrap() < 1e-9, "{found:?}");
    let a = kernel(50);
    let all = hutch_plus_plus(&a, 70, 3).unwrap();
    assert!((all.value - exact_trace(&a)).abs() < 1e-12 && all.standard_error == Some(0.0));
    assert_eq!(all.n_applications, 50);
    assert_eq!(hutch_plus_plus(&Array2::<f64>::zeros((0, 0)), 3, 0).unwrap().value, 0.0);
}

/// Estimates of a flat spectrum, where the basis does not help: unbiased, and as far off as the standard error says.
#[test]
fn the_standard_error_of_a_trace_is_that_of_repeated_runs() {
    let a = with_values(&Array1::from_shape_fn(120, |i| if i % 2 == 0 { 1.0 } else { -0.5 }), 9);
    let runs: Vec<_> = (0..300).map(|seed| hutch_plus_plus(&a, 30, seed).unwrap()).collect();
    let mean = runs.iter().map(|run| run.value).sum::<f64>() / 300.0;
    let spread = (runs.iter().map(|run| (run.value - mean).powi(2)).sum::<f64>() / 299.0).sqrt();
    let claimed = (runs.iter().map(|run| run.standard_error.unwrap().powi(2)).sum::<f64>() / 300.0).sqrt();
    assert!((mean - 30.0).abs() < 4.0 * spread / 300f64.sqrt(), "{mean}");
    assert!((claimed / spread - 1.0).abs() < 0.25, "{claimed} {spread}");
    assert_eq!(hutch_plus_plus(&a, 1, 0).unwrap().standard_error, None);
}

fn moment(values: &Array1<f64>, power: i32) -> f64 {
    values.iter().map(|value| value.powi(power)).sum()
}

/// With enough probes the moments are those of the eigenvalues, within what the standard error allows.
#[test]
fn moments_of_the_density_are_those_of_the_eigenvalues() {
    let a = kernel(200);
    let values = symmetric_eigen(a.view()).unwrap().values;
    let density = StochasticLanczos::new(20).probes(40).seed(4).run(&a).unwrap();
    assert_eq!(density.n_applications, 800);
    assert!((density.nodes().iter().map(|node| node.weight).sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((density.trace_of(|_| 1.0).value - 200.0).abs() < 1e-9);
    for power in 1..4 {
        let found = density.trace_of(|x| x.powi(power));
        let error = (found.value - moment(&values, power)).abs();
        assert!(error < 4.0 * found.standard_error.unwrap(), "moment {power}: {found:?}");
        // And the error claimed is small.
        assert!(found.standard_error.unwrap() < 0.15 * moment(&values, power), "moment {power}: {found:?}");
    }
    let softened = density.trace_of(|x| (1.0 + x.max(0.0)).ln());
    let expected: f64 = values.iter().map(|x| (1.0 + x.max(0.0)).ln()).sum();
    assert!((softened.value - expected).abs() < 4.0 * softened.standard_error.unwrap(), "{softened:?} {expected}");
}

/// As many steps as there are distinct eigenvalues: every probe finds all of them, once each.
#[test]
fn a_few_distinct_eigenvalues_are_found_exactly() {
    let a = with_values(&Array1::from_shape_fn(60, |i| [3.0, 1.0, -2.0][i % 3]), 6);
    let density = StochasticLanczos::new(30).probes(3).run(&a).unwrap();
    for nodes in &density.probes {
        assert_eq!(nodes.len(), 3, "{nodes:?}");
        nodes.iter().zip([3.0, 1.0, -2.0]).for_each(|(node, value)| assert!((node.value - value).abs() < 1e-10));
    }
    // The second moment of one probe is the quadratic form with A², whatever the steps beyond two.
    let two = StochasticLanczos::new(2).probes(3).run(&a).unwrap();
    let square = |density: &SpectralDensity| density.trace_of(|x| x * x).value;
    assert!((square(&two) - square(&density)).abs() < 1e-9);
}

/// The density in single precision agrees with that in double precision.
#[test]
fn single_precision_has_the_same_density() {
    let a = kernel(80);
    let narrow = a.mapv(|x| x as f32);
    let [wide, narrow] = [
        StochasticLanczos::new(15).run(&a).unwrap().trace_of(|x| x * x).value,
        StochasticLanczos::new(15).run(&narrow).unwrap().trace_of(|x| x * x).value,
    ];
    assert!((wide / narrow - 1.0).abs() < 1e-5, "{wide} {narrow}");
}

#[test]
fn no_products_and_numbers_that_are_not_finite_are_errors() {
    let broken = Array2::from_elem((5, 5), f64::NAN);
    assert!(matches!(StochasticLanczos::new(3).run(&broken), Err(LinalgError::NotFinite { .. })));
    assert!(matches!(hutch_plus_plus(&broken, 3, 0), Err(LinalgError::NotFinite { .. })));
    let a = Array2::<f64>::eye(4);
    assert!(matches!(StochasticLanczos::new(0).run(&a), Err(LinalgError::ShapeMismatch { .. })));
    assert!(matches!(StochasticLanczos::new(3).probes(0).run(&a), Err(LinalgError::ShapeMismatch { .. })));
    assert!(matches!(hutch_plus_plus(&a, 0, 0), Err(LinalgError::ShapeMismatch { .. })));
    let empty = StochasticLanczos::new(3).run(&Array2::<f64>::zeros((0, 0))).unwrap();
    assert!(empty.nodes().is_empty() && empty.trace_of(|x| x).value == 0.0);
    let zero = StochasticLanczos::new(3).run(&Array2::<f64>::zeros((9, 9))).unwrap();
    assert_eq!(zero.trace_of(|x| x).value, 0.0);
}
