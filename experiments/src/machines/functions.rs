//! Function regression: a network, and weighted least squares with its tangent kernel (NTK), its conjugate kernel (CK) and
//! the features of the latter (CKJ).
//!
//! Qadeer et al. 2023, arXiv 2310.18612, §6: 201 training and 601 test nodes on [−1, 1], three hidden layers of 128, Adam at
//! 10⁻³, 2400 epochs over the whole set with trapezoidal weights, errors in the trapezoidal norm. In `f64`; directions below
//! `201·ε` of the largest eigenvalue (NTK, CK) or singular value (CKJ) are cut off. Ten networks instead of a hundred.

use crate::experiment::Experiment;
use crate::matrices::{features, gram, median, outputs};
use crate::options::Options;
use crate::report::{Drawing, Format, Report, Table};
use crate::{Fallible, row};
use mercer::kernel::{Conjugate, Ntk, NtkKind};
use mercer::learn::regression::LeastSquares;
use mercer::learn::{Fit, Predict, SampleRows};
use mercer::net::arch::{Activation, Mlp};
use mercer::net::train::{Loss, Optimiser, Targets, Trainer};
use mercer::report::{Axis, Figure, Panel, Series};
use ndarray::{Array1, Array2};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "function-regression",
    group: "Machines",
    title: "Function regression",
    paper: super::QADEER,
    claim: "Least squares with the tangent kernel (NTK) or the conjugate kernel (CK) of a trained tanh network is far more accurate than \
        the network, and the features of the conjugate kernel (CKJ) are better still; with ReLU all are alike (figures 3 and 6).",
    published: "as figures only.",
    setting: "Three functions on [−1, 1], 3 × 128 units, 201 nodes to learn from and 601 to test, 2400 epochs of Adam at 1e-3, f64, \
        singular values below 201 ε of the largest cut; ten networks instead of a hundred.",
    cost: 300,
    needs: &[],
    options: &["networks", "epochs", "only"],
    threads: 0,
    run,
};

type Function = (&'static str, fn(f64) -> f64);

const FUNCTIONS: [Function; 3] = [
    ("f₁ = exp(sin 2πx)", |x| (2.0 * std::f64::consts::PI * x).sin().exp()),
    ("f₂ = exp 3x", |x| (3.0 * x).exp()),
    ("f₃ = cos exp 3x", |x| (3.0 * x).exp().cos()),
];

const METHODS: [&str; 4] = ["network", "NTK", "CK", "CKJ"];

fn run(options: &Options) -> Fallible<Report> {
    let (networks, epochs) = (options.number("networks", 10, 1)?, options.number("epochs", 2400, 10)?);
    let mut table = Table::new("Median test errors:").column("", Format::Plain);
    for method in METHODS {
        table = table.column(method, Format::Scientific(2));
    }
    let mut holds = true;
    let mut figure = Figure::new("Test errors of networks and of least squares with their kernels");
    for (activation, name) in [(Activation::Tanh, "tanh"), (Activation::Relu, "ReLU")] {
        for (function_name, function) in FUNCTIONS.into_iter().filter(|(name, _)| options.wants(name)) {
            let mut errors: [Vec<f64>; 4] = Default::default();
            for seed in 0..networks as u64 {
                let found = one(activation, function, epochs, options.seed * 1000 + seed)?;
                errors.iter_mut().zip(found).for_each(|(list, error)| list.push(error));
            }
            figure = figure.panel(panel(format!("{name}, {function_name}"), &errors));
            let [nn, ntk, ck, ckj] = errors.map(median);
            table.push(row![format!("{name}, {function_name}"), nn, ntk, ck, ckj]);
            holds &= match activation {
                // The network is far from its kernels, and these from the Jacobian form; less so for the function that oscillates.
                Activation::Tanh if function_name.starts_with("f₃") => 10.0 * ntk.max(ck) < nn && ckj < ntk.min(ck),
                Activation::Tanh => 30.0 * ntk.max(ck) < nn && 30.0 * ckj < ntk.min(ck),
                // With ReLU all stay near the network.
                _ => ntk.min(ck).min(ckj) > nn / 30.0,
            };
        }
    }
    let drawing =
        Drawing { file: "function-regression.svg", caption: "Test errors of networks and their kernels", figure };
    Ok(Report { tables: vec![table], figures: vec![drawing], holds: Some(holds), ..Report::default() })
}

/// The error of every method for every network.
fn panel(title: String, errors: &[Vec<f64>; 4]) -> Panel {
    let panel = Panel::new(title).x(Axis::linear("network")).y(Axis::log("test error"));
    METHODS.iter().zip(errors).fold(panel, |panel, (method, list)| {
        panel.series(Series::points(*method, list.iter().enumerate().map(|(at, &error)| (at as f64, error))))
    })
}

/// Nodes and trapezoidal weights on [−1, 1].
fn grid(intervals: usize) -> (Array2<f64>, Array1<f64>) {
    let step = 2.0 / intervals as f64;
    let nodes = Array2::from_shape_fn((intervals + 1, 1), |(i, _)| -1.0 + step * i as f64);
    let weight = |i: usize| if i == 0 || i == intervals { 0.5 * step } else { step };
    (nodes, Array1::from_shape_fn(intervals + 1, weight))
}

fn one(activation: Activation, function: fn(f64) -> f64, epochs: usize, seed: u64) -> Fallible<[f64; 4]> {
    let ((x, w), (z, v)) = (grid(200), grid(600));
    let (y, truth) = (x.mapv(function), z.mapv(function));
    let mut network = Mlp::new(1, &[128; 3], 1).activation(activation).build(seed)?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f64>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::squared(), Optimiser::adam())?;
    let (inputs, answers) = (x.iter().copied().collect::<Vec<_>>(), y.iter().copied().collect::<Vec<_>>());
    // Weights of mean one: the scale of the loss is nothing to Adam.
    let share: Vec<f64> = w.iter().map(|w| w * 100.0).collect();
    for _ in 0..epochs {
        trainer.step(&[&inputs], &Targets::values(&answers).weighted(&share), inputs.len(), 1e-3)?;
    }
    network.set_weights(trainer.weights());
    let error = |found: &Array2<f64>| {
        let squares = (found - &truth).mapv(|d| d * d);
        squares.iter().zip(&v).map(|(square, v)| square * v).sum::<f64>().sqrt()
    };
    let method = LeastSquares::new().with_weights(w)?;
    let ntk = Ntk::<f64>::new(&network, &[vec![1]], NtkKind::Trace)?;
    let tangent = method.fit(&SampleRows::Gram(gram(&ntk, &x, None)?.view()), &y)?;
    let tangent = tangent.predict(&SampleRows::Gram(gram(&ntk, &z, Some(&x))?.view()))?;
    let conjugate = Conjugate::<f64>::new(&network, &[vec![1]], None)?;
    let (phi, psi) = (features(&conjugate, &x)?, features(&conjugate, &z)?);
    let kernel = method.fit(&SampleRows::Gram(phi.dot(&phi.t()).view()), &y)?;
    let kernel = kernel.predict(&SampleRows::Gram(psi.dot(&phi.t()).view()))?;
    let jacobian = method.fit(&SampleRows::Features(phi.view()), &y)?.predict(&SampleRows::Features(psi.view()))?;
    Ok([error(&outputs(&network, &z)?), error(&tangent), error(&kernel), error(&jacobian)])
}
