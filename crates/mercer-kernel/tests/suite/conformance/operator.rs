//! Products with the tangent kernel against its Gram matrix.

use super::networks::{Case, built, golden};
use mercer_data::random::stream;
use mercer_kernel::{Kernel, Ntk, NtkKind, NtkOperator, Selection};
use mercer_linalg::{Lanczos, LinearOperator, cholesky, symmetric_eigen};
use mercer_net::arch::{Initialisation, Mlp};
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis};
use rand::RngExt;

/// Samples enough for several shards of all networks but the fully connected ones.
const SAMPLES: usize = 13;

fn both(case: &Case, kind: NtkKind, selection: &Selection) -> (NtkOperator<f64>, Array2<f64>) {
    let operator = NtkOperator::new(&case.network, &[case.dataset(SAMPLES)], kind, selection, &Context::new())
        .expect("an operator");
    let ntk = Ntk::<f64>::with_selection(&case.network, &case.shapes(), kind, selection).expect("a kernel");
    let gram = ntk.gram(&[&case.repeated::<f64>(SAMPLES)], SAMPLES).expect("runs");
    let side = SAMPLES * ntk.per_sample();
    (operator, Array2::from_shape_vec((side, side), gram).expect("square"))
}

fn vector(length: usize) -> Array1<f64> {
    let mut random = stream(5, "vector");
    (0..length).map(|_| random.sample::<f64, _>(rand_distr::StandardNormal)).collect()
}

fn norm(x: &Array1<f64>) -> f64 {
    x.dot(x).sqrt()
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = ["mlp_tanh", "conv_zoo_legacy", "tiny_bert"].into_iter().map(golden).collect();
    cases.extend([built("cnn"), built("ntk mlp")]);
    cases
}

#[test]
fn products_of_the_gram_matrix() {
    for case in cases() {
        let last = case.n_outputs() - 1;
        let combine = Selection { combine: Some(vec![0.5; last + 1]), ..Selection::default() };
        let components = Selection { components: Some(vec![last, 0]), ..Selection::default() };
        let all = Selection::default();
        let kinds = [
            (NtkKind::Full, &all),
            (NtkKind::Trace, &all),
            (NtkKind::Pseudo, &all),
            (NtkKind::Logit(last), &all),
            (NtkKind::Trace, &combine),
            (NtkKind::Full, &components),
            (NtkKind::Trace, &components),
        ];
        for (kind, selection) in kinds {
            let (operator, gram) = both(&case, kind, selection);
            assert_eq!(operator.dim(), gram.nrows());
            let v = vector(gram.nrows());
            let found = Array1::from(operator.multiply(v.as_slice().unwrap()).unwrap());
            let error = norm(&(&found - &gram.dot(&v))) / norm(&gram.dot(&v));
            // The transformer's ‖Θ‖‖v‖ is a hundred times ‖Θ v‖ at most; the rest is the order of sums.
            assert!(error <= 1e-11, "{} {kind:?}: {error:e}", case.name);
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    for case in cases() {
        for kind in [NtkKind::Full, NtkKind::Trace] {
            let sets = [case.dataset(300)];
            let operator =
                NtkOperator::<f32>::new(&case.network, &sets, kind, &Selection::default(), &Context::new()).unwrap();
            let v: Vec<f32> = vector(operator.dim()).iter().map(|&x| x as f32).collect();
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| operator.multiply(&v).unwrap())
            };
            let one = run(1);
            assert!(one == run(2) && one == run(3), "{} {kind:?}", case.name);
        }
    }
}

#[test]
fn eigenvalues_of_the_gram_matrix() {
    for case in cases() {
        for kind in [NtkKind::Full, NtkKind::Trace, NtkKind::Pseudo] {
            // Distinct samples only: repeated ones have eigenvalues of zero in plenty, which say nothing.
            let operator = NtkOperator::<f64>::new(
                &case.network,
                &[case.dataset(case.samples)],
                kind,
                &Selection::default(),
                &Context::new(),
            )
            .unwrap();
            let ntk = Ntk::<f64>::new(&case.network, &case.shapes(), kind).unwrap();
            let gram = ntk.gram(&[&case.data], case.samples).unwrap();
            let side = operator.dim();
            let all = symmetric_eigen(Array2::from_shape_vec((side, side), gram).unwrap().view()).unwrap();
            let top = operator.top_eigen(&Lanczos::new(3)).unwrap();
            // Lanczos promises residuals of ε^⅔ of the largest.
            let limit = 1e-10 * all.values[0];
            let pairs = top.values.iter().zip(&all.values);
            assert!(pairs.clone().all(|(x, y)| (x - y).abs() <= limit), "{} {kind:?}: {:?}", case.name, top.values);
        }
    }
}

#[test]
fn solutions_of_cholesky() {
    for case in cases() {
        for kind in [NtkKind::Full, NtkKind::Trace, NtkKind::Logit(0)] {
            let (operator, gram) = both(&case, kind, &Selection::default());
            let side = gram.nrows();
            let shift = 0.01 * gram.diag().sum() / side as f64;
            let rhs = vector(side);
            let found = operator.solve(rhs.view(), shift, 1e-11, 20 * side).unwrap();
            let shifted = &gram + &(Array2::<f64>::eye(side) * shift);
            let expected = cholesky(shifted.view()).unwrap().solve(rhs.view().insert_axis(Axis(1))).unwrap();
            let error = norm(&(&found.solution - &expected.remove_axis(Axis(1))));
            // ‖x − x*‖ ≤ ‖r‖ / shift, and as much again for the rounding of both.
            assert!(error <= 2e-11 * norm(&rhs) / shift, "{} {kind:?}: {error:e}", case.name);
            assert!(found.residual <= 1e-11);
        }
    }
}

#[test]
fn errors_come_through_the_solvers() {
    // Weights of seven inputs sum to more than one in some of the units, and the largest number overflows there.
    let network = Mlp::new(7, &[13], 3).initialisation(Initialisation::He).build(1).unwrap();
    let mut data = ndarray::Array2::<f32>::ones((600, 7));
    data.row_mut(500).fill(f32::MAX);
    let sets = [mercer_data::Dataset::from_array("x", data.into_dyn().view()).unwrap()];
    let new = |sets: &[mercer_data::Dataset]| {
        let made = NtkOperator::<f32>::new(&network, sets, NtkKind::Trace, &Selection::default(), &Context::new());
        made.map_err(|error| error.to_string())
    };
    let operator = new(&sets).unwrap();
    let error = operator.top_eigen(&Lanczos::new(1)).unwrap_err().to_string();
    assert!(error.contains("layer1") && error.ends_with("not finite in sample 500"), "{error}");
    let error = operator.solve(Array1::ones(600).view(), 1.0, 1e-3, 5).unwrap_err().to_string();
    assert!(error.ends_with("sample 500"), "{error}");
    assert!(operator.failure().is_none());
    assert!(new(&[]).is_err());
}
