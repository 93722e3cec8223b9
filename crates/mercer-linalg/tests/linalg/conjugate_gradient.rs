use crate::references::random;
use mercer_linalg::{
    ConjugateGradient, LinalgError, LinearOperator, LowRankInverse, PivotedCholesky, cholesky, conjugate_gradient, syrk,
};
use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1, Axis, array};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_solution_of_cholesky(n in 1usize..60, rank in 1usize..60, shift in 0.01f64..10.0, seed: u64) {
        let gram = syrk(random::<f64>(n, rank, seed).view());
        let rhs = random::<f64>(n, 1, seed ^ 1).remove_axis(Axis(1));
        let found = conjugate_gradient(&gram, rhs.view(), shift, 1e-12, 10 * n + 10).unwrap();
        let shifted = &gram + &(Array2::<f64>::eye(n) * shift);
        let factor = cholesky(shifted.view()).unwrap();
        let expected = factor.solve(rhs.view().insert_axis(Axis(1))).unwrap().remove_axis(Axis(1));
        // ‖x − x*‖ ≤ ‖A⁻¹‖ ‖r‖, and the smallest eigenvalue is at least the shift.
        let allowed = 2e-12 * rhs.dot(&rhs).sqrt() / shift;
        let error = &found.solution - &expected;
        prop_assert!(error.dot(&error).sqrt() <= allowed, "{} {}", error.dot(&error).sqrt(), allowed);
        let residual = &rhs - &shifted.dot(&found.solution);
        prop_assert!(residual.dot(&residual).sqrt() <= 1.1e-12 * rhs.dot(&rhs).sqrt());
        prop_assert!(found.residual <= 1e-12);
    }
}

#[test]
fn as_many_steps_as_there_are_eigenvalues() {
    // Three distinct eigenvalues: exact after three steps, and one more product checks it.
    let diagonal: Array1<f64> = (0..300).map(|i| [1.0, 2.0, 5.0][i % 3]).collect();
    let found = conjugate_gradient(&Array2::from_diag(&diagonal), Array1::ones(300).view(), 0.0, 1e-13, 10).unwrap();
    assert_eq!(found.iterations, 4);
    assert!(found.solution.iter().zip(&diagonal).all(|(x, d)| (x * d - 1.0).abs() < 1e-12));
}

#[test]
fn single_precision_reaches_what_it_promises() {
    let gram = syrk(random::<f32>(80, 40, 3).view());
    let rhs = random::<f32>(80, 1, 4).remove_axis(Axis(1));
    let found = conjugate_gradient(&gram, rhs.view(), 0.5, 1e-5, 500).unwrap();
    let wide = gram.mapv(f64::from) + Array2::<f64>::eye(80) * 0.5;
    let residual = rhs.mapv(f64::from) - wide.dot(&found.solution.mapv(f64::from));
    // Beyond the tolerance only the rounding of the last product, 80 ε ‖A‖ ‖x‖ at most.
    let norm = |x: &Array1<f64>| x.dot(x).sqrt();
    assert!(norm(&residual) <= 2e-5 * norm(&rhs.mapv(f64::from)), "{}", norm(&residual));
}

#[test]
fn nothing_to_solve() {
    let a = array![[2.0, 0.0], [0.0, 1.0]];
    let found = conjugate_gradient(&a, array![0.0, 0.0].view(), 0.0, 1e-10, 0).unwrap();
    assert_eq!((found.solution, found.iterations, found.residual), (array![0.0, 0.0], 0, 0.0));
}

/// An operator that gives up.
struct Broken;

impl LinearOperator<f64> for Broken {
    fn dim(&self) -> usize {
        2
    }

    fn apply(&self, _: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
        y.fill(f64::NAN);
    }
}

#[test]
fn failures_are_named() {
    let (a, rhs) = (array![[1.0, 0.0], [0.0, -1.0]], array![1.0, 1.0]);
    let solve = |shift: f64, limit| conjugate_gradient(&a, rhs.view(), shift, 1e-10, limit);
    assert!(matches!(solve(0.0, 10), Err(LinalgError::Indefinite { iteration: 0, .. })));
    assert!(matches!(solve(f64::NAN, 10), Err(LinalgError::NotFinite { .. })));
    assert!(matches!(solve(2.0, 1), Err(LinalgError::NotSolved { iterations: 1, .. })));
    assert!(solve(2.0, 3).is_ok());
    let short = conjugate_gradient(&a, array![1.0].view(), 0.0, 1e-10, 10);
    assert!(matches!(short, Err(LinalgError::ShapeMismatch { expected: 2, found: 1, .. })));
    assert!(matches!(conjugate_gradient(&Broken, rhs.view(), 0.0, 1e-10, 10), Err(LinalgError::NotFinite { .. })));
}

/// A spectrum that decays: few pivots explain most of it, and what they leave is well conditioned.
fn decaying(n: usize) -> Array2<f64> {
    let basis = mercer_linalg::thin_qr(random::<f64>(n, n, 7).view()).unwrap().q;
    let values = Array1::from_shape_fn(n, |i| (-0.3 * i as f64).exp());
    let half = &basis * &values.mapv(f64::sqrt);
    syrk(half.view())
}

#[test]
fn a_preconditioner_saves_products_and_changes_nothing() {
    let a = decaying(200);
    let rhs = random::<f64>(200, 3, 8);
    let method = ConjugateGradient { shift: 1e-6, tolerance: 1e-10, max_iterations: 2000 };
    let plain = method.solve(&a, rhs.view(), None).unwrap();
    let mut state = 0.5;
    let uniform = || {
        state = (state + 0.618_033_988_749_895_f64).fract();
        state
    };
    let low =
        PivotedCholesky::new(a.diag(), |row| Ok::<_, LinalgError>(a.column(row).to_owned()), 60, uniform).unwrap();
    let inverse = LowRankInverse::new(low.factor.clone(), 1e-6).unwrap();
    let apply = |x: ndarray::ArrayView2<'_, f64>| inverse.apply(x).unwrap();
    let quick = method.solve(&a, rhs.view(), Some(&apply)).unwrap();
    assert!(quick.iterations * 4 < plain.iterations, "{} against {}", quick.iterations, plain.iterations);
    let mut shifted = a.clone();
    shifted.diag_mut().mapv_inplace(|v| v + 1e-6);
    let expected = cholesky(shifted.view()).unwrap().solve(rhs.view()).unwrap();
    for found in [&plain.solution, &quick.solution] {
        let error = mercer_linalg::verify::frobenius((found - &expected).view());
        // ‖x − x*‖ ≤ ‖A⁻¹‖ ‖r‖: 10⁻¹⁰ over a shift of 10⁻⁶.
        assert!(error <= 1e-4 * mercer_linalg::verify::frobenius(rhs.view()) * 2.0, "{error:e}");
    }
}

#[test]
fn the_low_rank_inverse_is_the_inverse() {
    let factor = random::<f64>(30, 4, 9);
    let inverse = LowRankInverse::new(factor.clone(), 0.3).unwrap();
    let mut a = syrk(factor.view());
    a.diag_mut().mapv_inplace(|v| v + 0.3);
    let identity = inverse.apply(a.view()).unwrap();
    assert!((identity - Array2::<f64>::eye(30)).iter().all(|d| d.abs() < 1e-12));
}

#[test]
fn pivots_are_never_drawn_twice_and_the_trace_falls() {
    let a = decaying(50);
    for rank in [0, 1, 10, 50, 80] {
        let found = PivotedCholesky::new(a.diag(), |row| Ok::<_, LinalgError>(a.column(row).to_owned()), rank, || 0.37)
            .unwrap();
        let mut unique = found.pivots.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), found.pivots.len());
        let left = (a.diag().sum() - syrk(found.factor.view()).diag().sum()) / a.diag().sum();
        assert!((left - found.left).abs() < 1e-12, "{rank}");
        assert!(found.least > -1e-14, "{rank}: {}", found.least);
    }
}

#[test]
fn an_indefinite_matrix_is_noticed() {
    // Eigenvalues 3 and -1: a positive diagonal does not tell, what the first pivot leaves does.
    let hidden = array![[1.0, 2.0], [2.0, 1.0]];
    let negative = array![[1.0, 0.0], [0.0, -0.5]];
    for (a, expected) in [(hidden, -3.0), (negative, -0.5)] {
        let found =
            PivotedCholesky::new(a.diag(), |row| Ok::<_, LinalgError>(a.column(row).to_owned()), 2, || 0.1).unwrap();
        assert!((found.least - expected).abs() < 1e-12, "{}", found.least);
    }
}
