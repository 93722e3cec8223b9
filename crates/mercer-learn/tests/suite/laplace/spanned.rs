//! Posteriors through eigenfunctions of matrix-valued and of scalar kernels, against equation 22 written down.

use super::nets::{Case, distance, iris};
use mercer_data::Existing;
use mercer_kernel::{NtkKind, Recipe, SavedKernel, Selection};
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Posterior, Structure, features_of};
use mercer_learn::softmax;
use mercer_linalg::cholesky;
use mercer_net::network::SavedNetwork;
use mercer_run::Context;
use mercer_spectral::{Eigenfunctions, Landmarks, Nystrom};
use ndarray::{Array2, Array3, Axis, s};

fn functions(case: &Case, kind: NtkKind, k: usize) -> Eigenfunctions<f64> {
    let shapes = [case.train[0].sample_shape().to_vec()];
    let recipe = Recipe::Tangent { kind, selection: Selection::default(), by_layer: false };
    let kernel = recipe.build::<f64>(Some(&case.network), &shapes).expect("a kernel").kernel;
    let found = Nystrom::new(Landmarks::Uniform(40)).fit(kernel, &case.train, k, &Context::new()).expect("fits");
    let network = SavedNetwork::new(case.network.to_onnx_bytes().expect("exports"));
    found.functions.with_kernel(Some(SavedKernel::new(recipe, Some(network))))
}

fn settings(residual: bool) -> LaplaceSettings {
    LaplaceSettings::new(Structure::Features { residual }, Likelihood::Categorical).prior_precision(0.7)
}

fn fit(case: &Case, functions: &[Eigenfunctions<f64>], residual: bool) -> Laplace<f64> {
    let map = features_of(functions, 3).expect("features");
    Laplace::fit_features(&case.network, map, &case.train, &case.labels, &settings(residual), &Context::new())
        .expect("fits")
}

/// `√μ_j ψ_j` of every sample: `[samples, rows, k]`.
fn scaled(functions: &Eigenfunctions<f64>, data: &[mercer_data::Dataset]) -> Array3<f64> {
    let values = functions.eval_data(data, &Context::new()).expect("values") * &functions.values().mapv(f64::sqrt);
    let (rows, k) = (functions.per_sample(), values.ncols());
    let samples = values.nrows() / rows;
    values.as_standard_layout().into_owned().into_shape_with_order((samples, rows, k)).expect("rows")
}

/// `Ψ(x) [Σ Ψ(xᵢ)ᵀ Λᵢ Ψ(xᵢ) + δI]⁻¹ Ψ(x)ᵀ`.
fn dense(case: &Case, rows: impl Fn(&[mercer_data::Dataset]) -> Array3<f64>) -> Array3<f64> {
    let (train, test) = (rows(&case.train), rows(&case.test));
    let outputs = case.fit(Structure::LastLayerDiagonal).predict(&case.train, &Context::new()).expect("predicts").mean;
    let p = softmax(outputs.view());
    let k = train.dim().2;
    let mut curvature = Array2::<f64>::eye(k) * 0.7;
    for (own, p) in train.axis_iter(Axis(0)).zip(p.outer_iter()) {
        let lambda = Array2::from_shape_fn((3, 3), |(c, d)| p[c] * (f64::from(u8::from(c == d)) - p[d]));
        curvature += &own.t().dot(&lambda).dot(&own);
    }
    let factor = cholesky(curvature.view()).expect("positive");
    let mut covariance = Array3::zeros((test.dim().0, 3, 3));
    for (mut own, rows) in covariance.axis_iter_mut(Axis(0)).zip(test.axis_iter(Axis(0))) {
        own.assign(&rows.dot(&factor.solve(rows.t()).expect("solves")));
    }
    covariance
}

/// One scalar set for every output, with a factor; a scalar set of each.
fn spread(values: &[Array3<f64>], factor: f64) -> Array3<f64> {
    let samples = values[0].dim().0;
    let of = |output: usize| if values.len() == 1 { &values[0] } else { &values[output] };
    let width: usize = (0..3).map(|output| of(output).dim().2).sum();
    let mut rows = Array3::zeros((samples, 3, width));
    let mut first = 0;
    for output in 0..3 {
        let own = of(output).slice(s![.., 0, ..]);
        rows.slice_mut(s![.., output, first..first + own.ncols()]).assign(&(&own * factor));
        first += own.ncols();
    }
    rows
}

#[test]
fn equation_22_as_it_is_written() {
    let case = iris();
    let covariance = |machine: Laplace<f64>| machine.predict(&case.test, &Context::new()).expect("predicts").covariance;
    let check =
        |functions: &[Eigenfunctions<f64>], rows: &dyn Fn(&[mercer_data::Dataset]) -> Array3<f64>, what: &str| {
            let found = covariance(fit(&case, functions, false));
            // Through the condition of the curvature.
            assert!(distance(&found, &dense(&case, rows)) < 1e-9, "{what}");
            // The residual adds variance and takes none away.
            let whole = covariance(fit(&case, functions, true));
            let more = |a: &Array3<f64>| a.axis_iter(Axis(0)).map(|own| own.diag().to_owned()).collect::<Vec<_>>();
            for (plain, whole) in more(&found).iter().zip(more(&whole)) {
                assert!(plain.iter().zip(&whole).all(|(a, b)| *b >= a - 1e-12), "{what}");
            }
        };
    let full = functions(&case, NtkKind::Full, 9);
    check(std::slice::from_ref(&full), &|data| scaled(&full, data), "matrix-valued");
    let pseudo = functions(&case, NtkKind::Pseudo, 7);
    check(std::slice::from_ref(&pseudo), &|data| spread(&[scaled(&pseudo, data)], 1.0), "pseudo");
    let trace = functions(&case, NtkKind::Trace, 7);
    check(std::slice::from_ref(&trace), &|data| spread(&[scaled(&trace, data)], 1.0 / 3f64.sqrt()), "trace");
    let each: Vec<_> = (0..3).map(|output| functions(&case, NtkKind::Logit(output), 4 + output)).collect();
    let rows =
        |data: &[mercer_data::Dataset]| spread(&each.iter().map(|own| scaled(own, data)).collect::<Vec<_>>(), 1.0);
    check(&each, &rows, "per output");
}

/// All functions of the full kernel are the full posterior, and those of every output its block on the diagonal: with enough
/// of them nothing is missing, and the residual is nothing.
#[test]
fn enough_functions_are_the_full_posterior() {
    let case = iris();
    let shapes = [case.train[0].sample_shape().to_vec()];
    let recipe = Recipe::Tangent { kind: NtkKind::Full, selection: Selection::default(), by_layer: false };
    let kernel = recipe.build::<f64>(Some(&case.network), &shapes).expect("a kernel").kernel;
    let full = case.settings(Structure::Full).prior_precision(0.7);
    let full = Laplace::<f64>::fit(&case.network, &case.train, &case.labels, &full, &Context::new()).expect("fits");
    let expected = full.predict(&case.test, &Context::new()).expect("predicts").covariance;
    let mut errors = Vec::new();
    for k in [8, 40, 300] {
        let nystrom = Nystrom::new(Landmarks::All);
        let found = nystrom.fit(kernel.clone(), &case.train, k, &Context::new()).expect("fits").functions;
        let own = fit(&case, &[found], true).predict(&case.test, &Context::new()).expect("predicts").covariance;
        errors.push(distance(&own, &expected));
    }
    assert!(errors[1] < errors[0] && errors[2] < 0.1 * errors[0] && errors[2] < 0.02, "{errors:?}");
}

#[test]
fn what_does_not_fit_is_refused_and_what_fits_is_saved() {
    let case = iris();
    let each: Vec<_> = (0..3).map(|output| functions(&case, NtkKind::Logit(output), 4)).collect();
    for (some, outputs) in [(&each[..0], 3), (&each[..2], 3), (&each[..], 2)] {
        assert!(features_of(some, outputs).is_err());
    }
    let full = functions(&case, NtkKind::Full, 5);
    assert!(features_of(std::slice::from_ref(&full), 2).is_err() && features_of(&[full.clone(), full], 2).is_err());
    let pseudo = functions(&case, NtkKind::Pseudo, 6);
    for functions in [vec![pseudo], each] {
        let laplace = fit(&case, &functions, true);
        let expected = laplace.predict(&case.test, &Context::new()).expect("predicts");
        let network = SavedNetwork::new(case.network.to_onnx_bytes().expect("exports"));
        let folder = tempfile::tempdir().expect("a folder");
        let saved = Posterior { laplace, network, functions, trained_on: Default::default() };
        saved.save(folder.path(), Existing::Replace).expect("saves");
        let loaded = Posterior::<f64>::load(folder.path()).expect("loads");
        assert_eq!(loaded.functions.len(), saved.functions.len());
        assert_eq!(loaded.predict(&case.test, &Context::new()).expect("predicts").covariance, expected.covariance);
    }
}
