//! Closed forms, operators and features.

use crate::problems::{POLYNOMIAL, Problem, points};
use mercer_data::Dataset;
use mercer_kernel::{Ntk, NtkKind, NtkOperator, Selection};
use mercer_linalg::{matmul, syrk};
use mercer_run::Context;
use mercer_spectral::{Comparison, Solver, Spectrum, exact, gram_matrix};
use ndarray::Array2;
use std::sync::Arc;

const SOLVERS: [Solver; 3] = [Solver::Full, Solver::Lanczos, Solver::Randomised { seed: 0 }];

/// `∫ (x x' + 1.5)⁴ ψ(x') dx'/2` over [-1, 1] has the eigenvalues 6.944, 5.239, 0.924, 0.118, 0.0055. On a grid of midpoints, whose
/// quadrature error is of the order `1/N²`, those of the matrix over `N` are theirs.
#[test]
fn the_polynomial_kernel_has_its_known_eigenvalues() {
    let n = 400;
    let grid = Array2::from_shape_fn((n, 1), |(i, _)| (2 * i + 1) as f64 / n as f64 - 1.0);
    let problem = Problem::new("grid", POLYNOMIAL, grid, 5);
    for solver in SOLVERS {
        let spectrum = Spectrum::of_matrix(problem.gram.view(), 5, solver, &Context::new()).expect("solves");
        for (found, expected) in spectrum.values.iter().zip([6.944, 5.239, 0.924, 0.118, 0.0055]) {
            // The reference is given to the digits shown.
            assert!((found - expected).abs() < 5.1e-4_f64.min(0.01 * expected), "{solver:?}: {found} {expected}");
        }
    }
}

/// `Φ Φᵀ` by its features and by its matrix, tall and wide.
#[test]
fn features_have_the_spectrum_of_their_products() {
    for (rows, width) in [(60, 9), (20, 45)] {
        let features = points(rows, width, 1.0);
        let truth =
            Spectrum::of_matrix(syrk(features.view()).view(), 5, Solver::Full, &Context::new()).expect("solves");
        for solver in SOLVERS {
            let (spectrum, weights) =
                Spectrum::of_features(features.view(), 5, solver, &Context::new()).expect("solves");
            let compared =
                Comparison::new(spectrum.values.view(), spectrum.functions.view(), &truth).expect("same rows");
            // Subspace iteration is not run to convergence, and these eigenvalues fall slowly.
            let limit = if matches!(solver, Solver::Randomised { .. }) { 0.05 } else { 1e-8 };
            assert!(compared.value_errors.iter().all(|e| e.abs() < limit), "{solver:?}: {compared:?}");
            let extended = matmul(features.view(), weights.view());
            assert!(
                (&extended - &spectrum.functions).iter().all(|e| e.abs() < 1e-9),
                "{solver:?}: weights fit the functions"
            );
        }
    }
}

#[test]
fn a_tangent_kernel_without_its_matrix() {
    let network = mercer_net::arch::Mlp::new(2, &[12], 3).build(1).expect("builds");
    let data = vec![Dataset::from_array("x", points(40, 2, 1.0).into_dyn().view()).expect("data")];
    for kind in [NtkKind::Trace, NtkKind::Full] {
        let ntk = Ntk::<f64>::new(&network, &[vec![2]], kind).expect("a kernel");
        let gram = gram_matrix(&ntk, &data, &Context::new()).expect("a matrix");
        let truth = Spectrum::of_matrix(gram.view(), 4, Solver::Full, &Context::new()).expect("solves");
        let operator = NtkOperator::<f64>::new(&network, &data, kind, &Selection::default(), &Context::new())
            .expect("an operator");
        let found = Spectrum::of_operator(&operator, 4, Solver::Lanczos, &Context::new()).expect("solves");
        let compared = Comparison::new(found.values.view(), found.functions.view(), &truth).expect("same rows");
        // Lanczos' tolerance is 4e-11 of the largest eigenvalue.
        assert!(compared.value_errors.iter().all(|e| e.abs() < 1e-7), "{kind:?}: {compared:?}");
        assert!(compared.cosines.iter().all(|c| *c > 1.0 - 1e-9), "{kind:?}: {compared:?}");
    }
}

/// Single precision agrees with double to its rounding.
#[test]
fn single_precision() {
    let network = mercer_net::arch::Mlp::new(2, &[12], 3).build(1).expect("builds");
    let data = vec![Dataset::from_array("x", points(40, 2, 1.0).into_dyn().view()).expect("data")];
    let narrow: Arc<Ntk<f32>> = Arc::new(Ntk::new(&network, &[vec![2]], NtkKind::Trace).expect("a kernel"));
    let wide: Arc<Ntk<f64>> = Arc::new(Ntk::new(&network, &[vec![2]], NtkKind::Trace).expect("a kernel"));
    let (_, truth) = exact(wide, &data, 4, Solver::Full, &Context::new()).expect("solves");
    for solver in SOLVERS {
        let (functions, _) = exact(Arc::clone(&narrow) as _, &data, 4, solver, &Context::new()).expect("solves");
        for (found, expected) in functions.values().iter().zip(&truth.values) {
            assert!((found - expected).abs() < 1e-5 * truth.values[0], "{solver:?}: {found} {expected}");
        }
        let psi = functions.eval_data(&data, &Context::new()).expect("evaluates").mapv(f64::from);
        let compared = Comparison::new(functions.values().view(), psi.view(), &truth).expect("same rows");
        assert!(compared.cosines.iter().all(|c| *c > 0.9999), "{solver:?}: {compared:?}");
    }
}
