//! What a user may give by mistake: a result with the repair reported, or a typed error.

use crate::members::{Member, members};
use crate::problems::{Plain, Problem, RBF, points};
use mercer_data::Dataset;
use mercer_run::Context;
use mercer_spectral::{Landmarks, Nystrom, Solver, SpectralError, Spectrum, exact};
use ndarray::{Array2, array};
use std::sync::Arc;

const SOLVERS: [Solver; 3] = [Solver::Full, Solver::Lanczos, Solver::Randomised { seed: 0 }];

#[test]
fn negative_eigenvalues_are_counted_and_measured() {
    // diag(4, 2, -1, -3), rotated by a reflection.
    let v = array![1.0, 2.0, -1.0, 3.0];
    let reflection: Array2<f64> = Array2::eye(4) - 2.0 / 15.0 * Array2::from_shape_fn((4, 4), |(i, j)| v[i] * v[j]);
    let matrix = reflection.dot(&Array2::from_diag(&array![4.0, 2.0, -1.0, -3.0])).dot(&reflection);
    for solver in SOLVERS {
        let spectrum = Spectrum::of_matrix(matrix.view(), 4, solver, &Context::new()).expect("solves");
        assert!((&spectrum.values - &array![1.0, 0.5]).iter().all(|e| e.abs() < 1e-12), "{solver:?}");
        let repairs = spectrum.repairs;
        assert_eq!((repairs.dropped, repairs.negative, repairs.all_seen), (2, 2, true), "{solver:?}");
        assert!((repairs.most_negative + 0.75).abs() < 1e-12, "{solver:?}: {repairs:?}");
        assert_eq!(repairs.sentences().len(), 2);
    }
}

#[test]
fn constant_and_zero_kernels() {
    let constant = Plain { name: "constant", outputs: 1, function: |_, _, out| out[0] = 2.0 };
    let problem = Problem::new("constant", constant, points(30, 2, 1.0), 5);
    for solver in SOLVERS {
        let (functions, _) =
            exact(Arc::clone(&problem.kernel), &problem.data, 5, solver, &Context::new()).expect("solves");
        assert!((functions.values()[0] - 2.0).abs() < 1e-12 && functions.n_components() == 1, "{solver:?}");
        assert_eq!(functions.repairs().dropped, 4, "{solver:?}");
        let psi = functions.eval(&[&[7.0, 8.0]], 1).expect("evaluates");
        assert!((psi[(0, 0)] - 1.0).abs() < 1e-12, "{solver:?}");
    }
    for solver in SOLVERS {
        let found = Spectrum::of_matrix(Array2::<f64>::zeros((6, 6)).view(), 2, solver, &Context::new());
        assert!(matches!(found, Err(SpectralError::NoSpectrum { rows: 6, .. })), "{solver:?}: {found:?}");
    }
    for landmarks in [Landmarks::KMeansPlusPlus(4), Landmarks::PivotedCholesky(4), Landmarks::Uniform(4)] {
        let method = Nystrom::new(landmarks);
        let fit = method.fit(Arc::clone(&problem.kernel), &problem.data, 3, &Context::new()).expect("fits");
        assert_eq!(fit.functions.n_components(), 1, "{}", landmarks.name());
    }
}

#[test]
fn more_components_than_rows() {
    let matrix = Array2::from_diag(&array![3.0, 2.0, 1.0]);
    for solver in SOLVERS {
        let spectrum = Spectrum::of_matrix(matrix.view(), 7, solver, &Context::new()).expect("solves");
        assert_eq!((spectrum.values.len(), spectrum.repairs.dropped), (3, 4), "{solver:?}");
    }
    let nothing = Spectrum::of_matrix(matrix.view(), 0, Solver::Full, &Context::new());
    assert!(matches!(nothing, Err(SpectralError::Setting(_))), "{nothing:?}");
}

#[test]
fn numbers_that_are_none() {
    let mut matrix = Array2::<f64>::eye(5);
    matrix[(3, 1)] = f64::NAN;
    for solver in SOLVERS {
        let found = Spectrum::of_matrix(matrix.view(), 2, solver, &Context::new());
        assert!(matches!(found, Err(SpectralError::Algebra(_))), "{solver:?}: {found:?}");
    }
    let poles = Plain { name: "poles", outputs: 1, function: |x, y, out| out[0] = 1.0 / (x[0] * y[0]) };
    let data = vec![Dataset::from_array("x", array![[1.0], [0.0], [2.0]].into_dyn().view()).expect("data")];
    for landmarks in [Landmarks::All, Landmarks::PivotedCholesky(2)] {
        let found = Nystrom::new(landmarks).fit(Arc::new(poles), &data, 2, &Context::new());
        assert!(matches!(found, Err(SpectralError::Kernel(_))), "{found:?}");
    }
    let asymmetric = array![[1.0, 2.0], [0.0, 1.0]];
    for solver in SOLVERS {
        assert!(matches!(
            Spectrum::of_matrix(asymmetric.view(), 1, solver, &Context::new()),
            Err(SpectralError::Algebra(_))
        ));
    }
}

#[test]
fn inputs_of_another_shape() {
    let problem = Problem::new("rbf", RBF, points(10, 2, 1.0), 2);
    let (functions, _) =
        exact(Arc::clone(&problem.kernel), &problem.data, 2, Solver::Full, &Context::new()).expect("solves");
    assert!(matches!(functions.eval(&[&[1.0]], 1), Err(SpectralError::Input { input: 0, found: 1, .. })));
    assert!(matches!(functions.eval(&[], 1), Err(SpectralError::Inputs { found: 0, expected: 1 })));
    assert_eq!(functions.eval(&[&[]], 0).expect("nothing").dim(), (0, 2));
    let none = Landmarks::Uniform(0).choose(&*problem.kernel, &problem.data, 0, &Context::new());
    assert!(matches!(none, Err(SpectralError::Setting(_))));
}

/// Those members of the suite that take any kernel of points in the plane.
fn general() -> impl Iterator<Item = Member> {
    let any = Problem::new("any", CONSTANT, points(4, 2, 1.0), 1);
    members().into_iter().filter(move |member| (member.applies)(&any))
}

const CONSTANT: Plain = Plain { name: "constant", outputs: 1, function: |_, _, out| out[0] = 2.0 };

/// Two eigenvalues, one of them negative.
const SADDLE: Plain =
    Plain { name: "saddle", outputs: 1, function: |x, y, out| out[0] = x[0] * y[0] - 0.5 * x[1] * y[1] };

/// Half of its eigenvalues are negative, the largest of them almost as large as the largest positive one.
const SIGMOID: Plain = Plain {
    name: "sigmoid",
    outputs: 1,
    function: |x, y, out| out[0] = (2.0 * (x[0] * y[0] + x[1] * y[1]) - 0.5).tanh(),
};

/// Not a number between some samples, whatever the data.
const POLES: Plain =
    Plain { name: "poles", outputs: 1, function: |x, y, out| out[0] = if x[0] * y[0] < 0.0 { f64::NAN } else { 1.0 } };

/// One function, the constant, where more are asked for.
#[test]
fn every_method_on_a_constant_kernel() {
    let problem = Problem::new("constant", CONSTANT, points(40, 2, 1.0), 3);
    for member in general() {
        let found = (member.fit)(&problem).unwrap_or_else(|error| panic!("{}: {error}", member.name));
        assert_eq!((found.n_components(), found.repairs().dropped), (1, 2), "{}", member.name);
        assert!((found.values()[0] - 2.0).abs() < 2.0 * member.tolerance.values, "{}: {}", member.name, found.values());
        let psi = found.eval_data(&problem.data, &Context::new()).expect("evaluates");
        // What networks learn is constant as far as they have learnt it.
        let limit = if member.tolerance.residual < 0.05 { 1e-6 } else { 0.2 };
        assert!(psi.iter().all(|x| (x - 1.0).abs() < limit), "{}: {psi}", member.name);
    }
}

/// The positive part, and a word about the rest.
#[test]
fn every_method_on_an_indefinite_kernel() {
    for (kernel, k, there) in [(SADDLE, 3, 1), (SIGMOID, 2, 2)] {
        let problem = Problem::new(kernel.name, kernel, points(80, 2, 1.0), k);
        let truth = Spectrum::of_matrix(problem.gram.view(), problem.gram.nrows(), Solver::Full, &Context::new())
            .expect("solves");
        for member in general() {
            let name = format!("{} on {}", member.name, kernel.name);
            let found = match (member.fit)(&problem) {
                // Pivoted Cholesky has no meaning here.
                Err(SpectralError::Indefinite { least, .. }) if name.contains("rpcholesky") && least < -0.1 => continue,
                found => found.unwrap_or_else(|error| panic!("{name}: {error}")),
            };
            let (values, repairs) = (found.values(), found.repairs());
            assert_eq!((values.len(), repairs.dropped), (there, k - there), "{name}: {values}");
            let error = |j: usize| (values[j] / truth.values[j] - 1.0).abs();
            let limit = member.tolerance.values;
            assert!((0..there).all(|j| error(j) < limit), "{name}: {values} instead of {}", truth.values);
            let all = truth.repairs;
            assert!((1..=all.negative).contains(&repairs.negative), "{name}: {repairs:?} of {all:?}");
            assert!(repairs.negative == all.negative || !repairs.all_seen, "{name}: {repairs:?} of {all:?}");
            // Those that see all of the kernel see how negative it is; the others bound it.
            let near = (repairs.most_negative / all.most_negative - 1.0).abs();
            assert!(
                if limit < 1e-3 { near < 1e-3 } else { repairs.most_negative < 0.0 },
                "{name}: {repairs:?} of {all:?}"
            );
        }
    }
}

#[test]
fn every_method_on_a_kernel_that_is_no_number() {
    let points = points(40, 2, 1.0);
    let mut problem = Problem::new("poles", CONSTANT, points, 3);
    problem.kernel = Arc::new(POLES);
    problem.gram = Array2::from_shape_fn(problem.gram.dim(), |(i, j)| {
        if problem.points[(i, 0)] * problem.points[(j, 0)] < 0.0 { f64::NAN } else { 1.0 }
    });
    for member in general() {
        let found = (member.fit)(&problem).map(|functions| functions.values().clone());
        let typed = matches!(
            found,
            Err(SpectralError::Kernel(_)
                | SpectralError::Algebra(_)
                | SpectralError::Data(_)
                | SpectralError::Setting(_))
        );
        assert!(typed, "{}: {found:?}", member.name);
    }
}

/// What is not a number in the data is found when they are read.
#[test]
fn every_method_on_data_that_are_no_numbers() {
    let mut problem = Problem::new("holes", RBF, points(40, 2, 1.0), 3);
    let mut holes = problem.points.clone();
    holes[(7, 1)] = f64::NAN;
    problem.data = vec![Dataset::from_array("x", holes.view().into_dyn()).expect("data")];
    for member in members().into_iter().filter(|member| (member.applies)(&problem)) {
        let found = (member.fit)(&problem).map(|functions| functions.values().clone());
        assert!(found.is_err(), "{}: {found:?}", member.name);
    }
}
