//! The noise of a regression, against Bayesian linear regression.

use super::nets::{STRUCTURES, dataset, diabetes, iris};
use mercer_data::Labels;
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_linalg::cholesky;
use mercer_net::arch::Mlp;
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis, concatenate};

/// Rows with a one for the bias, and targets with noise of about 0.3.
fn problem() -> (Array2<f64>, Array2<f64>) {
    let rows = Array2::from_shape_fn((60, 3), |(i, j)| ((7 * i + 13 * j) as f64 * 0.37).sin());
    let features = concatenate![Axis(1), rows, Array2::ones((60, 1))];
    let noise = |i: usize| 0.4 * ((i * i) as f64 * 1.7).sin();
    let targets = Array2::from_shape_fn((60, 1), |(i, _)| {
        1.5 * features[(i, 0)] - 0.7 * features[(i, 1)] + 0.2 * features[(i, 2)] + 0.5 + noise(i)
    });
    (features, targets)
}

/// `ln N(y; 0, σ²I + ΦΦᵀ/δ)`: no Laplace approximation, no parameters.
fn evidence(features: &Array2<f64>, targets: &Array2<f64>, log_precision: f64, log_noise: f64) -> f64 {
    let mut covariance = features.dot(&features.t()) * (-log_precision).exp();
    covariance.diag_mut().mapv_inplace(|v| v + (2.0 * log_noise).exp());
    let factor = cholesky(covariance.view()).expect("positive");
    let half = factor.solve_lower(targets.view()).expect("solves");
    let constant = targets.len() as f64 * (2.0 * std::f64::consts::PI).ln();
    -0.5 * (half.iter().map(|x| x * x).sum::<f64>() + factor.log_det() + constant)
}

/// The two logarithms of highest evidence: a pattern search whose steps halve.
fn highest(features: &Array2<f64>, targets: &Array2<f64>) -> (f64, f64) {
    let (mut at, mut step) = ((0.0, 0.0), 0.5);
    let mut best = evidence(features, targets, at.0, at.1);
    while step > 1e-8 {
        let around = [(step, 0.0), (-step, 0.0), (0.0, step), (0.0, -step)].map(|(a, b)| (at.0 + a, at.1 + b));
        let values = around.map(|(a, b)| evidence(features, targets, a, b));
        match (0..4).max_by(|&i, &j| values[i].total_cmp(&values[j])).filter(|&i| values[i] > best) {
            Some(i) => (at, best) = (around[i], values[i]),
            None => step *= 0.5,
        }
    }
    at
}

/// A network without hidden layers at the mode of the posterior.
fn linear_network(features: &Array2<f64>, targets: &Array2<f64>, precision: f64, noise: f64) -> mercer_net::Network {
    let mut normal = features.t().dot(features);
    normal.diag_mut().mapv_inplace(|v| v + precision * noise * noise);
    let mode = cholesky(normal.view()).and_then(|f| f.solve(features.t().dot(targets).view())).expect("solves");
    let mode: Array1<f64> = mode.column(0).to_owned();
    let mut network = Mlp::new(3, &[], 1).build(0).expect("a network");
    let graph = network.declared_graph().expect("a graph");
    let mut weights = network.weights::<f64>(&graph);
    assert_eq!(weights.parameters.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1], "a weight and a bias");
    weights.parameters[0] = mode.iter().take(3).copied().collect();
    weights.parameters[1] = vec![mode[3]];
    network.set_weights(&weights);
    network
}

/// A linear network has an exact posterior. At the mode that belongs to the highest evidence, Laplace's evidence is stationary in the same place.
#[test]
fn a_linear_network_has_the_evidence_of_bayesian_linear_regression() {
    let (features, targets) = problem();
    let (log_precision, log_noise) = highest(&features, &targets);
    let (precision, noise) = (log_precision.exp(), log_noise.exp());
    let network = linear_network(&features, &targets, precision, noise);
    let data = [dataset("x", features.slice(ndarray::s![.., ..3]).to_owned().into_dyn())];
    let fit = |precision: f64, noise: f64| {
        let settings = LaplaceSettings::new(Structure::Full, Likelihood::Gaussian { noise }).prior_precision(precision);
        let labels = Labels::Targets(targets.clone());
        Laplace::<f64>::fit(&network, &data, &labels, &settings, &Context::new()).expect("fits")
    };
    let exact = evidence(&features, &targets, log_precision, log_noise);
    let found = fit(precision, noise).log_evidence(precision).expect("an evidence");
    assert!((found - exact).abs() < 1e-9 * exact.abs(), "{found} instead of {exact}");
    // The search above compares values of the evidence, whose maximum is flat: half of the digits.
    for start in [(1.0, 1.0), (100.0, 0.01), (1e-3, 30.0)] {
        let mut machine = fit(start.0, start.1);
        let (own_precision, own_noise) = machine.maximise_evidence_and_noise(&Context::new()).expect("a maximum");
        assert!((own_precision / precision - 1.0).abs() < 1e-5, "{own_precision} instead of {precision}");
        assert!((own_noise / noise - 1.0).abs() < 1e-5, "{own_noise} instead of {noise}");
        assert_eq!((machine.prior_precision(), machine.noise()), (own_precision, Some(own_noise)));
        let mut machine = fit(precision, start.1);
        let own_noise = machine.maximise_noise(&Context::new()).expect("a maximum");
        assert!((own_noise / noise - 1.0).abs() < 1e-5, "{own_noise} instead of {noise}");
    }
}

/// Another noise gives what fitting with it gives, in every structure; and the one that is found is the best around.
#[test]
fn the_noise_is_changed_without_the_data() {
    let case = diabetes();
    for (name, structure) in STRUCTURES {
        let mut settings = case.settings(structure);
        settings.likelihood = Likelihood::Gaussian { noise: 0.3 };
        let fitted = Laplace::fit(&case.network, &case.train, &case.labels, &settings, &Context::new());
        let fitted: Laplace<f64> = fitted.expect("fits");
        let mut changed = case.fit(structure);
        changed.set_noise(0.3).expect("a noise");
        let variances =
            |machine: &Laplace<f64>| machine.predict(&case.test, &Context::new()).expect("predicts").variances();
        // The same sums, scaled before or after.
        let (found, expected) = (variances(&changed), variances(&fitted));
        assert!(super::nets::distance(&found, &expected) < 1e-10, "{name}");
        let evidence = |machine: &Laplace<f64>| machine.log_evidence(machine.prior_precision()).expect("an evidence");
        assert!((evidence(&changed) / evidence(&fitted) - 1.0).abs() < 1e-10, "{name}");
        let (precision, noise) = changed.maximise_evidence_and_noise(&Context::new()).expect("a maximum");
        let highest = evidence(&changed);
        for (a, b) in [(1.01, 1.0), (0.99, 1.0), (1.0, 1.01), (1.0, 0.99)] {
            changed.set_prior_precision(precision * a).expect("a precision");
            changed.set_noise(noise * b).expect("a noise");
            assert!(evidence(&changed) < highest, "{name}: {a} {b}");
        }
    }
    assert!(iris().fit(Structure::Diagonal).maximise_noise(&Context::new()).is_err(), "classes have no noise");
}
