use crate::references::{product, random, skew};
use mercer_linalg::{Lanczos, LinalgError, LinearOperator, Randomised, symmetric_eigen, syrk, top_eigen};
use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1, array};
use proptest::prelude::*;
use std::cell::Cell;

/// A diagonal matrix, so that the eigenvalues are given.
struct Diagonal(Vec<f64>);

impl LinearOperator<f64> for Diagonal {
    fn dim(&self) -> usize {
        self.0.len()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
        y.iter_mut().zip(x).zip(&self.0).for_each(|((y, x), d)| *y = d * x);
    }
}

/// Residuals are below ε^⅔ ‖A‖ and an eigenvalue is never off by more than its residual.
fn assert_values(found: &Array1<f64>, expected: &[f64]) {
    let tolerance = 1e-10 * expected.iter().fold(1e-300, |m: f64, v| m.max(v.abs()));
    assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= tolerance), "{found} {expected:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_top_of_the_dense_decomposition(n in 1usize..90, rank in 1usize..60, wanted in 0usize..12, seed: u64) {
        let gram = syrk(random::<f64>(n, rank, seed).view());
        let wanted = wanted.min(n);
        let top = top_eigen(gram.view(), wanted).unwrap();
        let all = symmetric_eigen(gram.view()).unwrap();
        let scale = all.values[0];
        prop_assert!(top.values.iter().zip(&all.values).all(|(x, y)| (x - y).abs() <= 1e-10 * scale));
        prop_assert!(skew(top.vectors.view()) <= 1e-13);
        let image = product(gram.view(), top.vectors.view());
        let scaled = product(top.vectors.view(), Array2::from_diag(&top.values).view());
        prop_assert!((image - scaled).iter().all(|v| v.abs() <= 1e-10 * scale));
    }
}

/// Its length is off by 48 ε, which sums of 70 squares may be.
#[test]
fn a_single_vector_passes_the_check() {
    let gram = syrk(random::<f64>(70, 57, 15_824_799_890_436_105_392).view());
    let top = top_eigen(gram.view(), 1).unwrap();
    assert!(skew(top.vectors.view()) <= 1e-13);
}

#[test]
fn slow_decay_needs_restarts() {
    let n = 1000;
    let values: Vec<f64> = (0..n).map(|i| 1.0 - i as f64 / n as f64).collect();
    let top = Lanczos::new(5).run(&Diagonal(values.clone())).unwrap();
    assert_values(&top.values, &values[..5]);
    assert!(top.n_applications < 2 * n, "{}", top.n_applications);
    assert!(top.residuals.iter().all(|r| *r <= 1e-10));
}

#[test]
fn multiple_eigenvalues_are_all_found() {
    for copies in 1..=5 {
        let mut values = vec![3.0; copies];
        values.extend((0..400).map(|i| 2.0 / (1.0 + i as f64)));
        let top = Lanczos::new(6).run(&Diagonal(values.clone())).unwrap();
        assert_values(&top.values, &values[..6]);
    }
    // Pairs, as in kernels with a mirror symmetry.
    let mut values: Vec<f64> = (0..300).map(|i| 0.7f64.powi(i / 2)).collect();
    values.reverse();
    let top = Lanczos::new(8).run(&Diagonal(values.clone())).unwrap();
    values.reverse();
    assert_values(&top.values, &values[..8]);
}

#[test]
fn the_largest_are_not_the_largest_in_magnitude() {
    let values: Vec<f64> = (0..200).map(|i| i as f64 - 150.0).collect();
    let top = Lanczos::new(2).run(&Diagonal(values)).unwrap();
    assert_values(&top.values, &[49.0, 48.0]);
}

/// The other Ritz values are as many bounds of the lower end.
#[test]
fn negative_eigenvalues_are_seen_on_the_way() {
    let mut values: Vec<f64> = (0..300).map(|i| 0.9f64.powi(i)).collect();
    values.extend([-0.05, -0.3, -0.6]);
    let operator = Diagonal(values);
    for (top, close) in
        [(Lanczos::new(4).run(&operator).unwrap(), 1e-3), (Randomised::new(4).run(&operator).unwrap(), 1e-2)]
    {
        let negative: Vec<f64> = top.others.iter().copied().filter(|v| *v < -1e-10).collect();
        assert!((1..=3).contains(&negative.len()), "{negative:?}");
        let least = negative[negative.len() - 1];
        assert!((-0.6 - 1e-12..-0.6 + close).contains(&least), "{negative:?}");
    }
    // A space that is everything sees everything.
    let few = Diagonal(vec![2.0, -1.0, 1.0, -3.0, 0.5]);
    for top in [Lanczos::new(2).run(&few).unwrap(), Randomised::new(2).run(&few).unwrap()] {
        assert!((top.others - array![0.5, -1.0, -3.0]).iter().all(|d| d.abs() < 1e-12));
    }
    // Nothing negative is found where nothing is.
    let positive = Diagonal((0..300).map(|i| 0.9f64.powi(i)).collect());
    for top in [Lanczos::new(4).run(&positive).unwrap(), Randomised::new(4).run(&positive).unwrap()] {
        assert!(top.others.iter().all(|v| *v > -1e-15), "{}", top.others);
    }
}

#[test]
fn trivial_operators() {
    assert_values(&Lanczos::new(4).run(&Array2::<f64>::eye(100)).unwrap().values, &[1.0; 4]);
    assert_values(&Lanczos::new(4).run(&Array2::<f64>::zeros((100, 100))).unwrap().values, &[0.0; 4]);
    assert_values(&top_eigen(array![[7.0]].view(), 1).unwrap().values, &[7.0]);
    assert_eq!(top_eigen(Array2::<f64>::eye(3).view(), 0).unwrap().vectors.dim(), (3, 0));
    assert_eq!(top_eigen(Array2::<f64>::zeros((0, 0)).view(), 0).unwrap().values.len(), 0);
    let all = top_eigen(Array2::from_diag(&array![1.0, 3.0, 2.0]).view(), 3).unwrap();
    assert_values(&all.values, &[3.0, 2.0, 1.0]);
}

#[test]
fn single_precision_to_its_own_tolerance() {
    let gram = syrk(random::<f32>(200, 50, 8).view());
    let top = top_eigen(gram.view(), 5).unwrap();
    let all = symmetric_eigen(gram.mapv(f64::from).view()).unwrap();
    // ε^⅔ = 2.4e-5.
    assert!(top.values.iter().zip(&all.values).all(|(x, y)| (*x as f64 - y).abs() <= 5e-5 * all.values[0]));
}

#[test]
fn the_same_operator_gives_the_same_bits() {
    let gram = syrk(random::<f64>(120, 40, 8).view());
    let (one, two) = (top_eigen(gram.view(), 5).unwrap(), top_eigen(gram.view(), 5).unwrap());
    assert_eq!((one.values, one.vectors), (two.values, two.vectors));
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let few = top_eigen(Array2::<f64>::eye(3).view(), 4);
    assert!(matches!(few, Err(LinalgError::TooManyComponents { wanted: 4, available: 3, .. })));
    let slow = Diagonal((0..5000).map(|i| 1.0 - 1e-7 * i as f64).collect());
    let error = Lanczos::new(3).max_restarts(2).run(&slow).unwrap_err();
    assert!(matches!(error, LinalgError::NotConverged { wanted: 3, .. }));

    let lopsided = random::<f64>(80, 80, 6);
    assert!(matches!(top_eigen(lopsided.view(), 3), Err(LinalgError::NotSymmetric { .. })));
    let error = Lanczos::new(3).run(&lopsided).unwrap_err();
    assert!(matches!(error, LinalgError::CheckFailed { .. } | LinalgError::NotConverged { .. }), "{error}");
}

#[test]
fn an_operator_that_breaks_names_the_row_and_the_application() {
    struct Breaks(Cell<usize>);
    impl LinearOperator<f64> for Breaks {
        fn dim(&self) -> usize {
            60
        }
        fn apply(&self, x: ArrayView1<'_, f64>, mut y: ArrayViewMut1<'_, f64>) {
            y.assign(&(&x * &Array1::linspace(1.0, 2.0, 60)));
            self.0.set(self.0.get() + 1);
            if self.0.get() == 5 {
                y[17] = f64::NAN;
            }
        }
    }
    let error = Lanczos::new(3).run(&Breaks(Cell::new(0))).unwrap_err();
    assert!(matches!(error, LinalgError::NotFinite { row: 17, column: 4, .. }), "{error}");
}

/// Randomised subspace iteration against the dense decomposition: eigenvalues fall by half, so that after five products
/// the eleventh and later ones are 2⁻⁵⁵ of what they were beside the first.
#[test]
fn randomised_iteration_finds_the_top_of_a_falling_spectrum() {
    let n = 80;
    let values: Vec<f64> = (0..n).map(|i| 0.5f64.powi(i)).collect();
    let top = Randomised::new(5).run(&Diagonal(values.clone())).unwrap();
    assert_values(&top.values, &values[..5]);
    assert!(top.residuals.iter().all(|r| *r <= 1e-9), "{}", top.residuals);
    let again = Randomised::new(5).seed(1).run(&Diagonal(values.clone())).unwrap();
    assert!(again.vectors != top.vectors && (again.values[4] - top.values[4]).abs() < 1e-12);
    assert!(matches!(Randomised::new(81).run(&Diagonal(values)), Err(LinalgError::TooManyComponents { .. })));
    // A matrix without rank, and one of rank one.
    assert!(Randomised::new(3).run(&Array2::<f64>::zeros((20, 20))).unwrap().values.iter().all(|v| *v == 0.0));
    let one = Randomised::new(3).run(&Array2::<f64>::ones((20, 20))).unwrap();
    assert!((one.values[0] - 20.0).abs() < 1e-12 && one.values[1].abs() < 1e-12);
    let broken = Array2::from_elem((5, 5), f64::NAN);
    assert!(matches!(Randomised::new(1).run(&broken), Err(LinalgError::NotFinite { .. })));
}
