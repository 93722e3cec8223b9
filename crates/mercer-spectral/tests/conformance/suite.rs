//! What every method must do.

use crate::members::{Member, members};
use crate::problems::{Problem, problems};
use mercer_data::Existing;
use mercer_kernel::FeatureMap;
use mercer_linalg::matmul;
use mercer_run::Context;
use mercer_spectral::{Comparison, Eigenfunctions, integral_residuals, orient};
use ndarray::{Array2, s};
use std::sync::Arc;

#[test]
fn every_method_on_every_problem() {
    let problems = problems();
    for member in members() {
        for problem in problems.iter().filter(|problem| (member.applies)(problem)) {
            check(&member, problem);
        }
    }
}

fn close(name: &str, what: &str, found: f64, limit: f64) {
    assert!(found <= limit, "{name}: {what} is {found:e}, more than {limit:e}");
}

fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |most: f64, v| if v.is_nan() { f64::NAN } else { most.max(v.abs()) })
}

fn check(member: &Member, problem: &Problem) {
    let name = format!("{} on {}", member.name, problem.name);
    let functions = (member.fit)(problem).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (values, k) = (functions.values(), functions.n_components());
    let tolerance = member.tolerance;

    let rank = problem.truth.values.len();
    assert!(k == problem.k.min(rank), "{name}: {k} components of {} wanted and {rank} there", problem.k);
    assert_eq!(functions.repairs().dropped, problem.k - k, "{name}: what is missing is reported");
    assert_eq!(functions.repairs().negative, 0, "{name}: nothing negative is made up");
    assert!(values.iter().zip(values.iter().skip(1)).all(|(a, b)| a >= b), "{name}: {values} descend");
    assert!(values.iter().all(|v| *v > 0.0), "{name}: {values} are positive");

    let psi = functions.eval_data(&problem.data, &Context::new()).expect("evaluates");
    let rows = problem.gram.nrows();
    assert_eq!(psi.dim(), (rows, k), "{name}");
    let products = matmul(psi.t(), psi.view()) / rows as f64 - Array2::<f64>::eye(k);
    close(&name, "(1/R) ΨᵀΨ - I", largest(products), tolerance.orthonormal);
    let residuals = integral_residuals(problem.gram.view(), values.view(), psi.view());
    close(&name, "the residual of the integral equation", largest(residuals), tolerance.residual);

    let compared = Comparison::new(values.view(), psi.view(), &problem.truth).expect("same rows");
    let errors = values.iter().zip(&problem.truth.values).map(|(a, b)| (a - b) / problem.truth.values[0]);
    close(&name, "the error of eigenvalues", largest(errors), tolerance.values);
    // A gap after the last function makes their span unique.
    if k == rank || problem.truth.values[k] < 0.9 * problem.truth.values[k - 1] {
        close(&name, "the angle", compared.subspace_angles[k - 1], tolerance.degrees);
    }

    evaluation(&name, problem, &functions, &psi);
    if !name.starts_with("features") {
        saving(&name, problem, &functions, &psi);
    }
}

/// Any piece of the data gives what the whole gives; sums and features are those of the functions.
fn evaluation(name: &str, problem: &Problem, functions: &Eigenfunctions<f64>, psi: &Array2<f64>) {
    let (outputs, k) = (functions.per_sample(), functions.n_components());
    let scale = largest(psi.iter().copied());
    // Other sizes of blocks round differently.
    let limit = 1e-7 * scale;
    for count in [1, 5] {
        let part = functions.eval(&[problem.rows(count)], count).expect("evaluates");
        close(name, "a piece", largest(&part - &psi.slice(s![..count * outputs, ..])), limit);
    }
    let (a, b) = (problem.rows(4), problem.rows(3));
    let kernel = functions.kernel(&[a], 4, &[b], 3).expect("a kernel");
    let head = psi.slice(s![..4 * outputs, ..]);
    let sum = matmul((&head * &functions.values().view()).view(), psi.slice(s![..3 * outputs, ..]).t());
    close(name, "Mercer's sum", largest(&kernel - &sum), limit * functions.values()[0] * scale);
    let mut features = vec![f64::NAN; 4 * functions.n_features()];
    functions.features(&[a], 4, &mut features).expect("features");
    let roots = functions.values().mapv(f64::sqrt);
    let expected = &head * &roots;
    let found = Array2::from_shape_vec((4 * outputs, k), features).expect("as many");
    close(name, "features", largest(&found - &expected), limit * roots[0]);

    let short = functions.truncated(2);
    assert_eq!(short.n_components(), k.min(2), "{name}");
    let part = short.eval(&[a], 4).expect("evaluates");
    close(name, "truncation", largest(&part - &head.slice(s![.., ..k.min(2)])), limit);

    let mut signed = psi.clone();
    let flips = orient(signed.view_mut()).iter().filter(|sign| **sign < 0.0).count();
    assert!(name.contains("landmarks' measure") || flips == 0, "{name}: {flips} functions have the other sign");
}

/// What is loaded is what was saved.
fn saving(name: &str, problem: &Problem, functions: &Eigenfunctions<f64>, psi: &Array2<f64>) {
    let folder = tempfile::tempdir().expect("a folder");
    functions.save(folder.path(), Existing::Refuse).expect("saves");
    let kernel = Some(Arc::clone(&problem.kernel));
    let loaded = Eigenfunctions::<f64>::load(folder.path(), kernel).expect("loads");
    assert_eq!(loaded.values(), functions.values(), "{name}");
    assert_eq!(loaded.repairs(), functions.repairs(), "{name}");
    assert_eq!(loaded.notes(), functions.notes(), "{name}");
    let again = loaded.eval_data(&problem.data, &Context::new()).expect("evaluates");
    assert_eq!(&again, psi, "{name}: the same bits");
}
