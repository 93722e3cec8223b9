//! Binary logistic regression on two boundaries: a network, and Newton's method with its kernels.
//!
//! Qadeer et al. 2023, arXiv 2310.18612, §6: 12 × 8 training and 23 × 22 test points on [−1, 1]², two hidden layers of 128, Adam at
//! 10⁻⁵ until 85 % of the training points are right, or 4000 epochs; kernels of the difference of the two logits. The points are
//! separable in feature space, so the cross-entropy alone has no minimum: ours has the ridge `½λ‖f‖²`, λ = 10⁻³.

use crate::experiment::Experiment;
use crate::matrices::{features, gram, median, outputs};
use crate::options::Options;
use crate::report::{Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::Classes;
use mercer::kernel::{Conjugate, Ntk, NtkKind, Selection};
use mercer::learn::classification::BinaryLogistic;
use mercer::learn::metrics::{accuracy, negative_log_likelihood};
use mercer::learn::{Classify, Fit, SampleRows, softmax};
use mercer::net::arch::{Activation, Mlp};
use mercer::net::train::{Loss, Optimiser, Targets, Trainer};
use ndarray::{Array2, ArrayView2};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "boundaries",
    group: "Machines",
    title: "Two boundaries",
    paper: super::QADEER,
    claim: "Logistic regression with the kernels of a half-trained network is far ahead of the network (figure 8).",
    published: "as a figure only.",
    setting: "12 × 8 training and 23 × 22 test points on [−1, 1]², two hidden layers of 128, Adam at 1e-5 until 85 % of the training \
        points are right, or 4000 epochs; kernels of the difference of the two logits; ten networks. The points are separable, so ours \
        has a ridge of 1e-3.",
    cost: 60,
    needs: &[],
    options: &["networks", "epochs"],
    threads: 0,
    run,
};

const RIDGE: f64 = 1e-3;

type Boundary = (&'static str, fn(f64, f64) -> f64);

const BOUNDARIES: [Boundary; 2] = [
    ("F₁", |a, b| 4.0 * a * a - 3.0 * a + 5.0 * b - 1.0),
    ("F₂", |a, b| 2.0 * a * a * a - 0.6 * a * a - 1.94 * a + b + 0.2),
];

fn run(options: &Options) -> Fallible<Report> {
    let networks = options.number("networks", 10, 1)?;
    let epochs = options.number("epochs", 4000, 10)?;
    let mut table = Table::new("Median test cross-entropy and accuracy:").column("boundary", Format::Plain);
    for method in ["network", "NTK", "CK"] {
        table = table.column(method, Format::Fixed(3)).column("right", Format::Percent(1));
    }
    let mut holds = true;
    for (name, boundary) in BOUNDARIES {
        let mut found: [Vec<(f64, f64)>; 3] = Default::default();
        for seed in 0..networks as u64 {
            let pairs = one(boundary, epochs, options.seed * 1000 + seed)?;
            found.iter_mut().zip(pairs).for_each(|(list, pair)| list.push(pair));
        }
        let [nn, ntk, ck] = found.map(|list| {
            let part = |pick: fn(&(f64, f64)) -> f64| median(list.iter().map(pick).collect());
            (part(|pair| pair.0), part(|pair| pair.1))
        });
        table.push(row![name, nn.0, nn.1, ntk.0, ntk.1, ck.0, ck.1]);
        holds &= 2.0 * ntk.0.max(ck.0) < nn.0 && ntk.1.min(ck.1) > nn.1;
    }
    Ok(Report { tables: vec![table], holds: Some(holds), ..Report::default() })
}

fn grid(n: usize, m: usize, boundary: fn(f64, f64) -> f64) -> Fallible<(Array2<f64>, Classes)> {
    let at = |i: usize, of: usize| -1.0 + 2.0 * i as f64 / of as f64;
    let points: Vec<[f64; 2]> = (0..=n).flat_map(|i| (0..=m).map(move |j| [at(i, n), at(j, m)])).collect();
    let classes = points.iter().map(|p| usize::from(boundary(p[0], p[1]) > 0.0)).collect();
    Ok((Array2::from_shape_fn((points.len(), 2), |(i, j)| points[i][j]), Classes::new(classes, 2)?))
}

/// Cross-entropy and accuracy of network, tangent and conjugate kernel.
fn one(boundary: fn(f64, f64) -> f64, epochs: usize, seed: u64) -> Fallible<[(f64, f64); 3]> {
    let (x, y) = grid(11, 7, boundary)?;
    let (z, truth) = grid(22, 21, boundary)?;
    let mut network = Mlp::new(2, &[128; 2], 2).activation(Activation::Tanh).build(seed)?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f64>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
    let inputs: Vec<f64> = x.iter().copied().collect();
    for _ in 0..epochs {
        trainer.step(&[&inputs], &Targets::classes(y.indices()), x.nrows(), 1e-5)?;
        if trainer.correct() as f64 > 0.85 * x.nrows() as f64 {
            break;
        }
    }
    network.set_weights(trainer.weights());
    let judge = |probabilities: ArrayView2<'_, f64>, decided: &[usize]| -> Fallible<(f64, f64)> {
        Ok((negative_log_likelihood(probabilities, truth.indices())?, accuracy(decided, truth.indices())?))
    };
    let scores = outputs(&network, &z)?;
    let decided: Vec<usize> = scores.outer_iter().map(|row| usize::from(row[1] > row[0])).collect();
    let own = judge(softmax(scores.view()).view(), &decided)?;
    let difference = Selection { combine: Some(vec![-1.0, 1.0]), ..Selection::default() };
    let ntk = Ntk::<f64>::with_selection(&network, &[vec![2]], NtkKind::Pseudo, &difference)?;
    let conjugate = Conjugate::<f64>::new(&network, &[vec![2]], None)?;
    let (phi, psi) = (features(&conjugate, &x)?, features(&conjugate, &z)?);
    // Both logits have the same features, so the difference has twice their kernel.
    let kernels =
        [(gram(&ntk, &x, None)?, gram(&ntk, &z, Some(&x))?), (phi.dot(&phi.t()) * 2.0, psi.dot(&phi.t()) * 2.0)];
    let mut found = [own; 3];
    for (slot, (training, test)) in found[1..].iter_mut().zip(kernels) {
        let machine = BinaryLogistic::new(RIDGE)?.fit(&SampleRows::Gram(training.view()), &y)?;
        let test = SampleRows::Gram(test.view());
        *slot = judge(machine.probabilities(&test)?.view(), &machine.decide(&test)?)?;
    }
    Ok(found)
}
