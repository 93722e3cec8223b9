//! Features from random directions.

use super::networks::{Case, built, golden};
use mercer_kernel::{Directions, FeatureMap, Features, Kernel, Ntk, NtkKind, Selection};

fn directions(case: &Case, kind: NtkKind, count: usize, seed: u64) -> Directions<f64> {
    Directions::new(&case.network, &case.shapes(), kind, &Selection::default(), count, seed).expect("directions")
}

fn features(map: &Directions<f64>, case: &Case) -> Vec<f64> {
    let mut out = vec![0.0; case.samples * FeatureMap::<f64>::n_features(map)];
    map.features(&[&case.data], case.samples, &mut out).expect("features");
    out
}

/// For normal directions a value varies by `Σ_cd K(ic, id) K(jc, jd) + K(ic, jd) K(jc, id)` over S, which follows from the
/// full kernel; the distance of two Gram matrices is then within a few deviations, and not far below one.
#[test]
fn the_mean_is_the_tangent_kernel() {
    const COUNT: usize = 2000;
    let case = built("mlp");
    let (n, c) = (case.samples, case.n_outputs());
    let full = Ntk::<f64>::new(&case.network, &case.shapes(), NtkKind::Full).unwrap().gram(&[&case.data], n).unwrap();
    let at = |i: usize, p: usize, j: usize, q: usize| full[(i * c + p) * n * c + j * c + q];
    let expected =
        Ntk::<f64>::new(&case.network, &case.shapes(), NtkKind::Trace).unwrap().gram(&[&case.data], n).unwrap();
    let mut variance = 0.0;
    for (i, j) in (0..n * n).map(|pair| (pair / n, pair % n)) {
        for (p, q) in (0..c * c).map(|pair| (pair / c, pair % c)) {
            variance += (at(i, p, i, q) * at(j, p, j, q) + at(i, p, j, q) * at(j, p, i, q)) / COUNT as f64;
        }
    }
    for seed in 0..3 {
        let kernel = Features(directions(&case, NtkKind::Trace, COUNT, seed));
        let block = kernel.prepare(&[&case.data], n).unwrap();
        let mut gram = vec![0.0; n * n];
        kernel.contract(&block, &block, &mut gram);
        let square: f64 = gram.iter().zip(&expected).map(|(x, y)| (x - y) * (x - y)).sum();
        assert!(square < 9.0 * variance && square > 0.01 * variance, "seed {seed}: {square} of {variance}");
    }
}

/// The same for every pair of outputs, `∂g_c·v/√S` in row `c`: the block on the diagonal of directions adds up to the trace, and
/// the mean over directions is the full kernel.
#[test]
fn directions_of_all_outputs_are_those_of_the_full_kernel() {
    const COUNT: usize = 2000;
    let case = built("mlp");
    let (n, c) = (case.samples, case.n_outputs());
    let full = Ntk::<f64>::new(&case.network, &case.shapes(), NtkKind::Full).unwrap().gram(&[&case.data], n).unwrap();
    let side = n * c;
    let mut variance = 0.0;
    for (a, b) in (0..side * side).map(|pair| (pair / side, pair % side)) {
        variance += (full[a * side + a] * full[b * side + b] + full[a * side + b].powi(2)) / COUNT as f64;
    }
    for seed in 0..3 {
        let kernel = Features(directions(&case, NtkKind::Full, COUNT, seed));
        assert_eq!(Kernel::<f64>::per_sample(&kernel), c);
        let block = kernel.prepare(&[&case.data], n).unwrap();
        let mut gram = vec![0.0; side * side];
        kernel.contract(&block, &block, &mut gram);
        let square: f64 = gram.iter().zip(&full).map(|(x, y)| (x - y) * (x - y)).sum();
        assert!(square < 9.0 * variance && square > 0.01 * variance, "seed {seed}: {square} of {variance}");
        // The same numbers as those of the trace kernel, in another order.
        let (rows, trace) = (&kernel.0, directions(&case, NtkKind::Trace, COUNT, seed));
        let (rows, columns) = (features(rows, &case), features(&trace, &case));
        for (at, value) in rows.iter().enumerate() {
            let (sample, output, direction) = (at / (c * COUNT), at / COUNT % c, at % COUNT);
            assert!(
                (value - columns[sample * c * COUNT + direction * c + output]).abs() <= 1e-13 * value.abs().max(1.0)
            );
        }
    }
}

/// The quotient is another algorithm; in double precision it keeps seven digits.
#[test]
fn derivatives_against_difference_quotients() {
    for case in ["mlp_tanh", "conv_zoo_legacy", "tiny_bert"].map(golden) {
        for kind in [NtkKind::Trace, NtkKind::Pseudo, NtkKind::Logit(0), NtkKind::Full] {
            let exact = features(&directions(&case, kind, 4, 1), &case);
            let quotient = features(&directions(&case, kind, 4, 1).by_differences(1e-8).unwrap(), &case);
            let largest = exact.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let worst = exact.iter().zip(&quotient).fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()));
            assert!(worst <= 1e-5 * largest, "{} {kind:?}: {worst:e} of {largest}", case.name);
        }
    }
}

#[test]
fn directions_belong_to_seed_and_number() {
    let case = built("mlp");
    // The first four of eight directions are the first four of four, but for the factor 1/√S.
    let (few, many) = (
        features(&directions(&case, NtkKind::Pseudo, 4, 1), &case),
        features(&directions(&case, NtkKind::Pseudo, 8, 1), &case),
    );
    for sample in 0..case.samples {
        for at in 0..4 {
            let (x, y) = (few[sample * 4 + at], many[sample * 8 + at] * 2f64.sqrt());
            assert!((x - y).abs() <= 1e-14 * x.abs().max(1.0), "{x} {y}");
        }
    }
    assert_ne!(few, features(&directions(&case, NtkKind::Pseudo, 4, 2), &case));
    assert_ne!(few, features(&directions(&case, NtkKind::Pseudo, 4, 1).signs(), &case));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let case = built("mlp");
    let new = |kind, count| {
        let made = Directions::<f64>::new(&case.network, &case.shapes(), kind, &Selection::default(), count, 0);
        made.map_err(|error| error.to_string())
    };
    assert!(new(NtkKind::Trace, 0).is_err() && new(NtkKind::Logit(3), 2).is_err());
    assert!(new(NtkKind::Trace, 3).unwrap().by_differences(0.0).is_err());
}
