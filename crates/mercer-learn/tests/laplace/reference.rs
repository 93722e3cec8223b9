//! Structures against the formulas, written down densely from the network's Jacobian.

use super::nets::{Case, STRUCTURES, dataset, diabetes, distance, iris};
use mercer_data::{Classes, Dataset, Labels};
use mercer_kernel::empirical::{Kind, Selection};
use mercer_kernel::sketch::Method;
use mercer_kernel::{Kernel, Ntk};
use mercer_learn::laplace::{Laplace, Likelihood, Settings, Structure};
use mercer_linalg::{cholesky, matmul};
use mercer_net::Network;
use mercer_net::arch::{Cnn, Layer};
use mercer_net::progress::Silent;
use ndarray::{Array2, Array3, Axis, s};

fn sketch(k: usize, residual: bool) -> Structure {
    Structure::Sketch { method: Method::Gaussian, k, seed: 3, residual }
}

/// `σ₀²(κ(x, x) − κ(x, X)(σ₀⁻²Λ⁻¹ + κ(X, X))⁻¹κ(X, x))`: the posterior in function space, equation 21 by Woodbury's identity.
fn function_space(network: &Network, train: &Dataset, test: &Dataset, precision: f64) -> Array3<f64> {
    let shapes = [train.sample_shape().to_vec()];
    let kernel = Ntk::<f64>::of(network, &shapes, Kind::Full, &Selection::default()).expect("a kernel");
    let outputs = kernel.n_outputs();
    let numbers = |data: &Dataset| -> Vec<f64> { data.read().expect("data").into_iter().collect() };
    let (x, z) = (numbers(train), numbers(test));
    let (n, m) = (train.n_samples(), test.n_samples());
    let (a, b) = (kernel.prepare(&[&x], n).expect("prepares"), kernel.prepare(&[&z], m).expect("prepares"));
    let gram = |a: &mercer_kernel::Block, b: &mercer_kernel::Block| {
        let shape = (a.samples() * outputs, b.samples() * outputs);
        let mut tile = vec![0.0; shape.0 * shape.1];
        kernel.contract(a, b, &mut tile);
        Array2::from_shape_vec(shape, tile).expect("a tile")
    };
    let mut noisy = gram(&a, &a);
    noisy.diag_mut().mapv_inplace(|x| x + precision);
    let cross = gram(&a, &b);
    let explained = matmul(cross.t(), cholesky(noisy.view()).expect("positive").solve(cross.view()).expect("solves").view());
    let posterior = (gram(&b, &b) - explained) / precision;
    let mut blocks = Array3::zeros((m, outputs, outputs));
    for (at, mut block) in blocks.axis_iter_mut(Axis(0)).enumerate() {
        let range = at * outputs..(at + 1) * outputs;
        block.assign(&posterior.slice(s![range.clone(), range]));
    }
    blocks
}

/// Unit noise makes `Λ = I`, so that the whole posterior can be had from the kernel.
#[test]
fn the_full_posterior_is_the_one_in_function_space() {
    let case = diabetes();
    let full = case.fit(Structure::Full).predict(&case.test, &Silent::default()).expect("predicts");
    let dense = function_space(&case.network, &case.train[0], &case.test[0], case.number("prior_precision"));
    // The difference of two numbers a hundred times as large.
    assert!(distance(&full.covariance, &dense) < 1e-9);
}

fn covariance(case: &Case, structure: Structure) -> Array3<f64> {
    case.fit(structure).predict(&case.test, &Silent::default()).expect("predicts").covariance
}

/// Features that span everything leave nothing to correct, and give the full posterior.
#[test]
fn sketches_approach_the_full_posterior() {
    let case = iris();
    let full = covariance(&case, Structure::Full);
    let error = |k: usize, residual: bool| distance(&covariance(&case, sketch(k, residual)), &full);
    let (few, many) = (error(64, false), error(4096, false));
    // The error of a Gaussian sketch falls as K^-½: by eight between these two, with the chance of one seed.
    assert!(many < 0.4 * few, "{many} after {few}");
    assert!(many < 0.2, "{many}");
    let hadamard = Structure::Sketch { method: Method::Hadamard, k: 512, seed: 0, residual: false };
    // 387 parameters: a Hadamard sketch of 512 is exact inside of a parameter.
    assert!(distance(&covariance(&case, hadamard), &full) < 0.5);
}

/// Out of distribution a sketch with few features has too little variance, and the correction gives it back.
#[test]
fn the_residual_correction_restores_the_variance_far_from_the_data() {
    let mut case = iris();
    let far = case.test[0].read::<f64>().expect("data").mapv(|x| -4.0 * x + 3.0);
    case.test = vec![dataset("far", far)];
    let trace = |covariance: &Array3<f64>| -> f64 {
        covariance.axis_iter(Axis(0)).map(|block| block.diag().sum()).sum()
    };
    let full = trace(&covariance(&case, Structure::Full));
    let (plain, corrected) = (trace(&covariance(&case, sketch(24, false))), trace(&covariance(&case, sketch(24, true))));
    assert!(plain < 0.9 * full, "{plain} of {full}");
    assert!((corrected / full - 1.0).abs() < (plain / full - 1.0).abs(), "{plain}, {corrected}, {full}");
}

#[test]
fn the_slope_of_the_evidence_is_its_derivative() {
    let case = iris();
    for structure in STRUCTURES.map(|(_, structure)| structure).into_iter().chain([sketch(100, false)]) {
        let machine = case.fit(structure);
        for precision in [0.02, 1.0, 30.0] {
            let step = 1e-4 * precision;
            let value = |at: f64| machine.log_evidence(at).expect("an evidence");
            let difference = (value(precision + step) - value(precision - step)) / (2.0 * step);
            let slope = machine.log_evidence_slope(precision).expect("a slope");
            // The third derivative times step², and rounding over step: both below 1e-7 of the terms of the slope.
            let size = machine.effective_parameters(precision).expect("a number") / precision + machine.squared_norm();
            assert!((difference - slope).abs() < 1e-6 * size, "{structure}: {difference} and {slope}");
        }
    }
}

#[test]
fn the_highest_evidence_is_found() {
    let case = iris();
    for (name, structure) in STRUCTURES {
        let mut machine = case.fit(structure);
        let best = machine.maximise_evidence().expect("a maximum");
        let value = |at: f64| machine.log_evidence(at).expect("an evidence");
        assert!(value(best) > value(best * 1.01) && value(best) > value(best / 1.01), "{name}: {best}");
        // The slope is zero up to the tolerance of the search, 1e-8 of its two terms.
        let slope = machine.log_evidence_slope(best).expect("a slope");
        assert!(slope.abs() < 1e-7 * machine.squared_norm(), "{name}: {slope}");
        assert_eq!(machine.prior_precision(), best);
    }
}

#[test]
fn validation_finds_a_precision_that_predicts_well() {
    let case = iris();
    let mut machine = case.fit(Structure::Kronecker);
    let best = machine.validate(&case.train, &case.labels, &Silent::default()).expect("a precision");
    // On the training data itself certainty is rewarded: the prior should be strong, not weak.
    assert!(best > 1.0, "{best}");
    assert_eq!(machine.prior_precision(), best);
}

fn convolutions() -> (Network, Vec<Dataset>, Labels) {
    let layers = [Layer::conv(4, 3), Layer::average_pool(2), Layer::dense(6)];
    let network = Cnn::new(&[1, 8, 8], &layers, 3).build(5).expect("a network");
    let digits = mercer_data::digits::load().expect("digits");
    let pixels = digits.pixels().expect("pixels").slice(s![..24, .., ..]).mapv(f64::from);
    let images = pixels.into_shape_with_order((24, 1, 8, 8)).expect("images").into_dyn();
    let classes = Classes::new((0..24).map(|at| at % 3).collect(), 3).expect("classes");
    (network, vec![dataset("images", images)], Labels::Classes(classes))
}

/// The diagonal of a convolution's curvature and the Kronecker structure, against the diagonal of the full one.
#[test]
fn convolutions_have_all_structures() {
    let (network, data, labels) = convolutions();
    let fit = |structure: Structure| {
        let settings = Settings::new(structure, Likelihood::Categorical);
        Laplace::<f64>::fit(&network, &data, &labels, &settings, &Silent::default()).expect("fits")
    };
    let full = fit(Structure::Full);
    // `ln det` of the diagonal is an upper bound (Hadamard's inequality), and of independent blocks as well.
    let bound = |machine: &Laplace<f64>| machine.log_evidence(1.0).expect("an evidence");
    assert!(bound(&fit(Structure::Diagonal)) < bound(&full));
    // The traces of the diagonal and of the full curvature are the same: γ(δ) → tr H/δ for large δ.
    let trace = |machine: &Laplace<f64>| 1e9 * machine.effective_parameters(1e9).expect("a number");
    assert!((trace(&fit(Structure::Diagonal)) / trace(&full) - 1.0).abs() < 1e-5);
    let kronecker = fit(Structure::Kronecker).predict(&data, &Silent::default()).expect("predicts");
    assert!(kronecker.covariance.iter().all(|x| x.is_finite()));
    // One position and one sample have no sum to be factored: the Kronecker structure is then the block of each parameter.
    let last = fit(Structure::LastLayerKronecker).predict(&data, &Silent::default()).expect("predicts");
    assert!(last.variances().iter().zip(&kronecker.variances()).all(|(last, all)| last < all));
}

/// In f32 the same up to its rounding.
#[test]
fn single_precision_is_close() {
    let case = iris();
    for (name, structure) in STRUCTURES {
        let settings = case.settings(structure);
        let single = Laplace::<f32>::fit(&case.network, &case.train, &case.labels, &settings, &Silent::default());
        let single = single.expect("fits").predict(&case.test, &Silent::default()).expect("predicts").covariance;
        // Rounding of 6e-8, amplified by the condition of the curvature.
        assert!(distance(&single, &covariance(&case, structure)) < 1e-4, "{name}");
    }
}
