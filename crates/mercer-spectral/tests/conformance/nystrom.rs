//! Landmarks and the estimate of the error.

use crate::problems::{POLYNOMIAL, Plain, Problem, RBF, points, problems};
use mercer_data::Dataset;
use mercer_kernel::Kernel;
use mercer_kernel::classic::{Classic, Formula};
use mercer_linalg::matmul;
use mercer_run::Context;
use mercer_spectral::{Landmarks, Nystrom};
use std::sync::Arc;

fn choices(count: usize) -> [Landmarks; 3] {
    [Landmarks::Uniform(count), Landmarks::KMeansPlusPlus(count), Landmarks::PivotedCholesky(count)]
}

/// `tr(K - K̃)` from the functions themselves, with all components.
#[test]
fn the_trace_residual_is_what_the_functions_leave() {
    for problem in problems() {
        for landmarks in choices(12) {
            let method = Nystrom::new(landmarks).seed(5);
            let k = problem.gram.nrows();
            let fit = method.fit(Arc::clone(&problem.kernel), &problem.data, k, &Context::new()).expect("fits");
            let n = problem.samples();
            let approximate = fit.functions.kernel(&[problem.rows(n)], n, &[problem.rows(n)], n).expect("a kernel");
            let trace = problem.gram.diag().sum();
            let left = (trace - approximate.diag().sum()) / trace;
            let residual = fit.trace_residual.expect("the data's measure");
            // Components at the level of rounding are dropped from the sum.
            assert!((left - residual).abs() < 1e-6, "{}, {}: {left} {residual}", problem.name, landmarks.name());
            // The approximation never exceeds the kernel.
            let rest = &problem.gram - &approximate;
            let probe = points(rest.nrows(), 1, 1.0);
            let form = matmul(probe.t(), matmul(rest.view(), probe.view()).view())[(0, 0)];
            assert!(form > -1e-8 * trace, "{}, {}: {form}", problem.name, landmarks.name());
        }
    }
}

#[test]
fn landmarks_are_distinct_and_repeatable() {
    let problem = Problem::new("rbf", RBF, points(80, 2, 2.0), 4);
    for landmarks in choices(30) {
        let choose = |seed| landmarks.choose(&*problem.kernel, &problem.data, seed, &Context::new()).expect("chooses");
        let rows = choose(1);
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((rows.len(), sorted.len()), (30, 30), "{}", landmarks.name());
        assert_eq!(rows, choose(1), "{}", landmarks.name());
        assert_ne!(rows, choose(2), "{}", landmarks.name());
    }
}

/// A copy adds nothing, and a kernel of rank five needs five landmarks.
#[test]
fn landmarks_that_add_nothing_are_left_out_and_counted() {
    let mut twice = points(20, 2, 2.0);
    twice.append(ndarray::Axis(0), twice.clone().view()).expect("same width");
    let copies = Problem::new("copies", RBF, twice, 4);
    for landmarks in [Landmarks::KMeansPlusPlus(40), Landmarks::PivotedCholesky(40)] {
        let method = Nystrom::new(landmarks);
        let fit = method.fit(Arc::clone(&copies.kernel), &copies.data, 4, &Context::new()).expect("fits");
        assert!(fit.landmarks.len() <= 20, "{}: {:?}", landmarks.name(), fit.landmarks);
        assert_eq!(fit.functions.repairs().landmarks_removed, 40 - fit.landmarks.len());
    }
    let low_rank = Problem::new("rank five", POLYNOMIAL, points(50, 1, 1.0), 5);
    let method = Nystrom::new(Landmarks::PivotedCholesky(30));
    let fit = method.fit(Arc::clone(&low_rank.kernel), &low_rank.data, 5, &Context::new()).expect("fits");
    assert_eq!(fit.landmarks.len(), 5);
    assert!(fit.trace_residual.expect("the data's measure") < 1e-12);
}

/// Where points lie in clusters of very unlike sizes, choosing by what is unexplained beats choosing blindly.
#[test]
fn pivoted_cholesky_finds_the_small_clusters() {
    let mut data = points(200, 2, 0.2);
    for (row, mut point) in data.outer_iter_mut().enumerate().skip(190) {
        point += (row - 185) as f64 * 4.0;
    }
    let problem = Problem::new("clusters", RBF, data, 4);
    let residual = |landmarks| {
        let fits = (0..5).map(|seed| {
            let method = Nystrom::new(landmarks).seed(seed);
            let fit = method.fit(Arc::clone(&problem.kernel), &problem.data, 4, &Context::new()).expect("fits");
            fit.trace_residual.expect("the data's measure")
        });
        fits.sum::<f64>() / 5.0
    };
    let (uniform, spread, pivoted) = (
        residual(Landmarks::Uniform(15)),
        residual(Landmarks::KMeansPlusPlus(15)),
        residual(Landmarks::PivotedCholesky(15)),
    );
    assert!(pivoted < 0.1 * uniform && spread < 0.3 * uniform, "{uniform} {spread} {pivoted}");
}

/// A kernel with as many negative eigenvalues as positive ones: what small eigenvalues of the landmarks' matrix would do to
/// the approximation is kept out of it.
#[test]
fn indefinite_kernels_are_approximated_too() {
    const SIGMOID: Plain = Plain {
        name: "sigmoid",
        outputs: 1,
        function: |x, y, out| out[0] = (0.5 * x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>()).tanh(),
    };
    let problem = Problem::new("sigmoid", SIGMOID, points(300, 5, 2.0), 5);
    for landmarks in [Landmarks::Uniform(150), Landmarks::KMeansPlusPlus(150)] {
        for seed in 0..3 {
            let method = Nystrom::new(landmarks).seed(seed);
            let fit = method.fit(Arc::clone(&problem.kernel), &problem.data, 5, &Context::new()).expect("fits");
            let values = fit.functions.values();
            let error = |j: usize| (values[j] / problem.truth.values[j] - 1.0).abs();
            assert!((0..5).all(|j| error(j) < 0.02), "{}: {values} {}", landmarks.name(), problem.truth.values);
            let repairs = fit.functions.repairs();
            let (found, there) = (repairs.most_negative, problem.truth.repairs.most_negative);
            assert!((found / there - 1.0).abs() < 0.25 && !repairs.all_seen, "{repairs:?} {there}");
            assert_eq!(repairs.landmarks_removed, 0);
            assert_eq!(fit.trace_residual, None, "nothing bounds the error");
        }
    }
}

/// Half of the samples cannot show that a kernel is indefinite if none of its entries among them says so; the others do.
#[test]
fn samples_that_are_no_landmarks_tell_that_a_kernel_is_indefinite() {
    // Negative only for samples on the right, which are no landmarks.
    const RIGHT: Plain =
        Plain { name: "right", outputs: 1, function: |x, y, out| out[0] = 1.0 - 3.0 * x[0].max(0.0) * y[0].max(0.0) };
    let mut data = points(60, 1, 1.0);
    data.column_mut(0).mapv_inplace(|x| if x.abs() > 0.9 { 1.0 } else { -1.0 });
    let problem = Problem::new("right", RIGHT, data, 1);
    let right = problem.points.iter().filter(|x| **x > 0.0).count();
    let mut seen = 0;
    for seed in 0..20 {
        let method = Nystrom::new(Landmarks::Uniform(3)).seed(seed);
        let fit = method.fit(Arc::clone(&problem.kernel), &problem.data, 1, &Context::new()).expect("fits");
        let repairs = fit.functions.repairs();
        let chosen = fit.landmarks.iter().any(|&row| problem.points[(row, 0)] > 0.0);
        seen += usize::from(!chosen);
        assert!(repairs.negative == 1 && repairs.most_negative < 0.0, "{chosen}: {repairs:?}");
        // A quadratic form is never below the least eigenvalue.
        let least = problem.truth.repairs.most_negative;
        assert!(chosen || repairs.most_negative >= least * (1.0 + 1e-9), "{repairs:?} {least}");
    }
    assert!(right > 0 && seen > 0, "{right} samples on the right; {seen} choices without one of them");
}

/// In single precision, positive semidefinite kernels of any smoothness are never taken for others.
#[test]
fn rounding_is_not_taken_for_a_negative_eigenvalue() {
    for formula in
        ["rbf(lengthscale=3)", "rbf(lengthscale=0.2)", "laplacian()", "polynomial(degree=6, bias=2)", "linear()"]
    {
        let kernel = formula.parse::<Formula>().expect("a kernel");
        let kernel: Arc<dyn Kernel<f32>> = Arc::new(Classic::new(&kernel, 3).expect("a size"));
        let data = vec![Dataset::from_array("x", points(400, 3, 1.5).into_dyn().view()).expect("data")];
        for landmarks in choices(120).into_iter().chain([Landmarks::All]) {
            let fit = Nystrom::new(landmarks).fit(Arc::clone(&kernel), &data, 4, &Context::new()).expect("fits");
            let repairs = fit.functions.repairs();
            assert!(
                repairs.negative == 0 && fit.trace_residual.is_some(),
                "{formula}, {}: {repairs:?}",
                landmarks.name()
            );
        }
    }
}
