//! The evidence of features, and of samples that stand for more.

use super::nets::{STRUCTURES, dataset, diabetes, distance, iris};
use mercer_data::{Dataset, Labels};
use mercer_kernel::empirical::{Gradients, NtkKind, Selection};
use mercer_kernel::sketch::SketchMethod;
use mercer_kernel::{Effort, FeatureMap};
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_linalg::symmetric_eigen;
use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_net::run::{Factor, Factors};
use mercer_run::Context;
use ndarray::{Array2, s};
use std::sync::Arc;

/// `J(x) V` for every output: the Jacobian in other directions.
#[derive(Debug)]
struct Directions {
    gradients: Gradients<f64>,
    directions: Array2<f64>,
}

impl Directions {
    fn new(network: &Network, shapes: &[Vec<usize>], directions: Option<Array2<f64>>) -> Self {
        let gradients = Gradients::new(network, shapes, NtkKind::Trace, &Selection::default()).expect("gradients");
        let directions = directions.unwrap_or_else(|| Array2::eye(network.n_params()));
        Self { gradients, directions }
    }

    /// All rows of Jacobians, as they are in the directions.
    fn rows(&self, x: &[f64], samples: usize) -> Array2<f64> {
        let mut out = vec![0.0; samples * self.n_features()];
        self.features(&[x], samples, &mut out).expect("runs");
        Array2::from_shape_vec((samples * self.gradients.n_seeds(), self.directions.ncols()), out).expect("rows")
    }
}

impl FeatureMap<f64> for Directions {
    fn n_features(&self) -> usize {
        self.gradients.n_seeds() * self.directions.ncols()
    }

    fn features(&self, inputs: &[&[f64]], samples: usize, out: &mut [f64]) -> mercer_kernel::Result<()> {
        let explicit = vec![false; self.gradients.chosen().len()];
        let seeds = self.gradients.n_seeds();
        let places = out.chunks_mut(self.gradients.grain() * self.n_features()).collect();
        self.gradients.sweep(inputs, samples, &explicit, places, |place: &mut [f64], factors: &Factors<f64>| {
            let mut rows = Array2::<f64>::zeros((factors.samples * seeds, self.directions.nrows()));
            let mut offset = 0;
            for factor in factors.parameters.iter().flatten() {
                let Factor::Explicit(gradient) = factor else { continue };
                let size = gradient.len() / rows.nrows();
                let own = Array2::from_shape_vec((rows.nrows(), size), gradient.clone()).expect("gradients");
                rows.slice_mut(s![.., offset..offset + size]).assign(&own);
                offset += size;
            }
            place.iter_mut().zip(rows.dot(&self.directions).iter()).for_each(|(to, x)| *to = *x);
            Ok(())
        })
    }

    fn effort(&self) -> Effort {
        Effort::default()
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!("directions")
    }
}

/// A network without symmetries, with more outputs than parameters, and data of both kinds.
fn problem(outputs: usize) -> (Network, Dataset, Vec<f64>, usize) {
    let network = Mlp::new(2, &[2], outputs).activation(Activation::Tanh).build(4).expect("a network");
    let samples = 60;
    let x = Array2::from_shape_fn((samples, 2), |(i, j)| ((i * 29 + j * 17) % 41) as f64 / 12.0 - 1.7);
    let numbers: Vec<f64> = x.iter().copied().collect();
    (network, dataset("x", x.into_dyn()), numbers, samples)
}

fn parameters(network: &Network) -> Vec<f64> {
    network.parameters().iter().flat_map(|own| own.values().to_vec::<f64>()).collect()
}

/// Features that span everything have the evidence of the full posterior; of fewer, the part of the parameters in them.
#[test]
fn features_have_the_evidence_of_what_they_span() {
    let (network, data, x, samples) = problem(2);
    let shapes = [vec![2]];
    let targets = Array2::from_shape_fn((samples, 2), |(i, j)| ((i * 7 + j) % 11) as f64 / 5.0 - 1.0);
    let labels = Labels::Targets(targets);
    let (data, silent) = (vec![data], Context::new());
    let likelihood = Likelihood::Gaussian { noise: 0.5 };
    let features = |directions: Option<Array2<f64>>| {
        let settings = LaplaceSettings::new(Structure::Features { residual: false }, likelihood);
        let map = Arc::new(Directions::new(&network, &shapes, directions));
        Laplace::fit_features(&network, map, &data, &labels, &settings, &silent).expect("fits")
    };
    let settings = LaplaceSettings::new(Structure::Full, likelihood);
    let mut full = Laplace::<f64>::fit(&network, &data, &labels, &settings, &silent).expect("fits");
    let jacobian = Directions::new(&network, &shapes, None).rows(&x, samples);
    let eigen = symmetric_eigen(jacobian.t().dot(&jacobian).view()).expect("eigenvectors");
    assert!(eigen.values.iter().all(|&value| value > 1e-7 * eigen.values[0]), "full rank: {}", eigen.values);
    for directions in [None, Some(eigen.vectors.clone())] {
        let mut whole = features(directions);
        for precision in [0.01, 1.0, 100.0] {
            let (found, expected) = (whole.log_evidence(precision), full.log_evidence(precision));
            let (found, expected) = (found.expect("an evidence"), expected.expect("an evidence"));
            // A least-squares solve with a condition number of 10⁶ or less.
            assert!((found - expected).abs() < 1e-6 * expected.abs(), "{found} instead of {expected}");
        }
        let (found, expected) = (
            whole.maximise_evidence(&Context::new()).expect("a prior"),
            full.maximise_evidence(&Context::new()).expect("a prior"),
        );
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} instead of {expected}");
        let (found, expected) =
            (whole.maximise_evidence_and_noise(&Context::new()), full.maximise_evidence_and_noise(&Context::new()));
        let (found, expected) = (found.expect("both"), expected.expect("both"));
        assert!((found.0 / expected.0 - 1.0).abs() < 1e-5 && (found.1 / expected.1 - 1.0).abs() < 1e-5);
        full.set_noise(0.5).expect("a noise");
        full.set_prior_precision(1.0).expect("a prior");
    }
    let theta = parameters(&network);
    let coordinates = eigen.vectors.t().dot(&ndarray::ArrayView1::from(&theta));
    for count in [1, 4, 9] {
        let few = features(Some(eigen.vectors.slice(s![.., ..count]).to_owned()));
        let expected: f64 = coordinates.iter().take(count).map(|c| c * c).sum();
        assert!((few.squared_norm() / expected - 1.0).abs() < 1e-6, "{count}: {}", few.squared_norm());
        assert!(few.effective_parameters(1e-9).expect("a number") <= count as f64);
        let (value, step) = (|at: f64| few.log_evidence(at).expect("an evidence"), 1e-4);
        let difference = (value(1.0 + step) - value(1.0 - step)) / (2.0 * step);
        assert!((difference - few.log_evidence_slope(1.0).expect("a slope")).abs() < 1e-5);
    }
    // A prior of all parameters against a few effective ones would be far stronger.
    let mut few = features(Some(eigen.vectors.slice(s![.., ..4]).to_owned()));
    let best = few.maximise_evidence(&Context::new()).expect("a prior");
    let gamma = few.effective_parameters(best).expect("a number");
    assert!((best * few.squared_norm() / gamma - 1.0).abs() < 1e-6);
}

fn structures() -> impl Iterator<Item = Structure> {
    let sketch = Structure::Sketch { method: SketchMethod::Gaussian, k: 30, seed: 1, residual: false };
    STRUCTURES.map(|(_, structure)| structure).into_iter().chain([sketch])
}

/// Half of data that come twice, said to be half, is the whole.
#[test]
fn samples_stand_for_the_training_set() {
    for case in [iris(), diabetes()] {
        let count = case.train[0].n_samples();
        let twice: Vec<usize> = (0..count).chain(0..count).collect();
        let whole = vec![dataset("twice", case.train[0].select::<f64>(&twice).expect("rows"))];
        let labels = case.labels.select(&twice).expect("labels");
        for structure in structures() {
            let settings = case.settings(structure);
            let silent = Context::new();
            let part = LaplaceSettings { train_size: Some(2 * count), ..settings.clone() };
            let all = Laplace::<f64>::fit(&case.network, &whole, &labels, &settings, &silent).expect("fits");
            let mut half = Laplace::<f64>::fit(&case.network, &case.train, &case.labels, &part, &silent).expect("fits");
            assert_eq!((half.n_samples(), half.train_size()), (count, 2 * count));
            let covariance =
                |machine: &Laplace<f64>| machine.predict(&case.test, &silent).expect("predicts").covariance;
            assert!(distance(&covariance(&half), &covariance(&all)) < 1e-8, "{structure}");
            let evidence = |machine: &Laplace<f64>| machine.log_evidence(2.0).expect("an evidence");
            assert!((evidence(&half) / evidence(&all) - 1.0).abs() < 1e-9, "{structure}");
            if half.noise().is_some() {
                let mut all = all;
                let (half, all) = (
                    half.maximise_evidence_and_noise(&Context::new()),
                    all.maximise_evidence_and_noise(&Context::new()),
                );
                let (half, all) = (half.expect("both"), all.expect("both"));
                assert!((half.0 / all.0 - 1.0).abs() < 1e-6 && (half.1 / all.1 - 1.0).abs() < 1e-6, "{structure}");
            }
        }
        let few = LaplaceSettings { train_size: Some(count - 1), ..case.settings(Structure::Diagonal) };
        let refused = Laplace::<f64>::fit(&case.network, &case.train, &case.labels, &few, &Context::new());
        assert!(refused.expect_err("refused").to_string().contains("training set"));
    }
}

/// Targets whose squares overflow are refused.
#[test]
fn a_likelihood_that_overflows_is_refused() {
    let case = diabetes();
    let huge = Labels::Targets(Array2::from_elem((case.train[0].n_samples(), 1), 1e300));
    let settings = LaplaceSettings::new(Structure::Diagonal, Likelihood::for_labels(&huge));
    let found = Laplace::<f64>::fit(&case.network, &case.train, &huge, &settings, &Context::new());
    assert!(found.expect_err("refused").to_string().contains("not finite"));
}
