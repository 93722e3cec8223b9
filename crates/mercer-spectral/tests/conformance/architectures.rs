//! NeuralEF with convolutional and residual function networks, on kernels with one output, with a matrix for every pair, and with
//! one kernel per output; the truth is the decomposition of the Gram matrices.

use crate::problems::{COREGIONAL, POLYNOMIAL, Problem, RBF, points};
use mercer_data::Dataset;
use mercer_net::Network;
use mercer_net::arch::{Activation, Architecture, Cnn, CnnLayer, Resnet};
use mercer_net::train::Schedule;
use mercer_run::Context;
use mercer_spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, side_by_side};
use mercer_spectral::{Comparison, Eigenfunctions};
use ndarray::{Array2, Array4};

const SIDE: usize = 6;

/// A bump on every image, somewhere.
fn images(samples: usize) -> Array4<f64> {
    let at = points(samples, 2, 2.0);
    Array4::from_shape_fn((samples, 1, SIDE, SIDE), |(n, _, y, x)| {
        let place = |i: usize| i as f64 - (SIDE - 1) as f64 / 2.0;
        let square = (place(y) - at[(n, 0)]).powi(2) + (place(x) - at[(n, 1)]).powi(2);
        (-square / 8.0).exp()
    })
}

/// A kernel of the pixels.
fn problem(kernel: crate::problems::Plain, k: usize) -> Problem {
    let images = images(64);
    let pixels = Array2::from_shape_vec((64, SIDE * SIDE), images.iter().copied().collect()).expect("as many");
    let mut problem = Problem::new("images", kernel, pixels, k);
    problem.data = vec![Dataset::from_array("images", images.into_dyn().view()).expect("data")];
    problem
}

fn architectures(outputs: usize) -> [(&'static str, Architecture); 2] {
    let layers = [CnnLayer::conv(6, 3), CnnLayer::average_pool(2), CnnLayer::dense(16)];
    let cnn = Cnn::new(&[1, SIDE, SIDE], &layers, outputs).activation(Activation::Tanh);
    let resnet = Resnet {
        inputs: vec![1, SIDE, SIDE],
        width: 4,
        activation: Activation::Tanh.into(),
        ..Resnet::new(8, outputs)
    };
    [("CNN", Architecture::Cnn(cnn)), ("ResNet", Architecture::Resnet(resnet))]
}

/// Three more networks than are wanted, as the last ones are the least exact.
fn learnt(architecture: &Architecture, k: usize, data: &[Dataset], mut kernel: Matrices<f64>) -> Learnt<f64> {
    let networks: Vec<Network> = (0..k as u64 + 3).map(|seed| architecture.build(seed).expect("builds")).collect();
    let mut batches = Batches::new(data, &mut kernel, 64, 0, &Context::new()).expect("batches");
    let settings =
        LearningSettings::new(LearningMethod::NeuralEf).steps(150).schedule(Schedule::constant(5e-3)).components(k);
    Learn::new(settings).run(side_by_side(&networks).expect("alike"), &mut batches).expect("learns")
}

/// After 150 steps the first functions are found; chance is a cosine of an eighth.
fn check(name: &str, problem: &Problem, functions: &Eigenfunctions<f64>) {
    let psi = functions.eval_data(&problem.data, &Context::new()).expect("evaluates");
    let compared = Comparison::new(functions.values().view(), psi.view(), &problem.truth).expect("same rows");
    assert_eq!(compared.cosines.len(), problem.k, "{name}");
    assert!(compared.cosines.iter().all(|c| *c > 0.95), "{name}: {compared:?}");
    assert!(compared.value_errors.iter().all(|e| e.abs() < 0.05), "{name}: {compared:?}");
}

#[test]
fn one_output() {
    let problem = problem(RBF, 2);
    for (name, architecture) in architectures(1) {
        let kernel = Matrices::new(problem.gram.clone(), 1).expect("a matrix");
        check(name, &problem, &learnt(&architecture, 2, &problem.data, kernel).after[0]);
    }
}

#[test]
fn a_matrix_for_every_pair() {
    let problem = problem(COREGIONAL, 2);
    for (name, architecture) in architectures(2) {
        let kernel = Matrices::new(problem.gram.clone(), 2).expect("a matrix");
        check(name, &problem, &learnt(&architecture, 2, &problem.data, kernel).after[0]);
    }
}

#[test]
fn one_kernel_per_output() {
    let problems = [problem(POLYNOMIAL, 2), problem(RBF, 2)];
    for (name, architecture) in architectures(2) {
        let grams = problems.iter().map(|problem| problem.gram.clone()).collect();
        let found = learnt(&architecture, 2, &problems[0].data, Matrices::per_output(grams).expect("matrices"));
        for (problem, functions) in problems.iter().zip(&found.after) {
            check(name, problem, functions);
        }
    }
}
