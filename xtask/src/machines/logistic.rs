//! Binary logistic regression on two boundaries: a network, and Newton's method with its kernels.
//!
//! Qadeer et al. 2023, arXiv 2310.18612, §6: 12 × 8 training and 23 × 22 test points on [−1, 1]², two hidden layers of 128, Adam at
//! 10⁻⁵ until 85 % of the training points are right, or 4000 epochs; kernels of the difference of the two logits. The points are
//! separable in feature space, so the cross-entropy alone has no minimum: ours has the ridge `½λ‖f‖²`, λ = 10⁻³.

use super::functions::outputs;
use super::{Fallible, features, gram, median};
use crate::{Outcome, option};
use mercer_data::Classes;
use mercer_kernel::{Conjugate, Kind, Ntk, Selection};
use mercer_learn::classification::BinaryLogistic;
use mercer_learn::metrics::{accuracy, negative_log_likelihood};
use mercer_learn::{Classify, Fit, Samples, softmax};
use mercer_net::arch::{Activation, Mlp};
use mercer_net::train::{Loss, Optimiser, Targets, Trainer};
use ndarray::{Array2, ArrayView2};

const RIDGE: f64 = 1e-3;

type Boundary = (&'static str, fn(f64, f64) -> f64);

const BOUNDARIES: [Boundary; 2] = [
    ("F1", |a, b| 4.0 * a * a - 3.0 * a + 5.0 * b - 1.0),
    ("F2", |a, b| 2.0 * a * a * a - 0.6 * a * a - 1.94 * a + b + 0.2),
];

/// Takes `--networks N`.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let networks: u64 = option(arguments, "--networks").map_or(Ok(10), str::parse)?;
    println!("{networks} networks, ridge {RIDGE:.0e}; median test cross-entropy and accuracy");
    println!("| boundary | NN | NTK | CK |\n|---|---:|---:|---:|");
    let mut good = true;
    for (name, boundary) in BOUNDARIES {
        let mut found: [Vec<(f64, f64)>; 3] = Default::default();
        for seed in 0..networks {
            found.iter_mut().zip(one(boundary, seed)?).for_each(|(list, pair)| list.push(pair));
        }
        let middle = |list: &Vec<(f64, f64)>| {
            let part = |pick: fn(&(f64, f64)) -> f64| median(list.iter().map(pick).collect());
            (part(|pair| pair.0), part(|pair| pair.1))
        };
        let middles = [middle(&found[0]), middle(&found[1]), middle(&found[2])];
        let cells: Vec<String> =
            middles.iter().map(|(loss, right)| format!("{loss:.3}, {:.1} %", 100.0 * right)).collect();
        println!("| {name} | {} |", cells.join(" | "));
        let [nn, ntk, ck] = middles;
        good &= 2.0 * ntk.0.max(ck.0) < nn.0 && ntk.1.min(ck.1) > nn.1;
    }
    println!("\n{}", if good { "as in figure 8: both kernels are far ahead" } else { "NOT as in figure 8" });
    Ok(good)
}

fn grid(n: usize, m: usize, boundary: fn(f64, f64) -> f64) -> Fallible<(Array2<f64>, Classes)> {
    let at = |i: usize, of: usize| -1.0 + 2.0 * i as f64 / of as f64;
    let points: Vec<[f64; 2]> = (0..=n).flat_map(|i| (0..=m).map(move |j| [at(i, n), at(j, m)])).collect();
    let classes = points.iter().map(|p| usize::from(boundary(p[0], p[1]) > 0.0)).collect();
    Ok((Array2::from_shape_fn((points.len(), 2), |(i, j)| points[i][j]), Classes::new(classes, 2)?))
}

/// Cross-entropy and accuracy of network, tangent and conjugate kernel.
fn one(boundary: fn(f64, f64) -> f64, seed: u64) -> Fallible<[(f64, f64); 3]> {
    let (x, y) = grid(11, 7, boundary)?;
    let (z, truth) = grid(22, 21, boundary)?;
    let mut network = Mlp::new(2, &[128; 2], 2).activation(Activation::Tanh).build(seed)?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f64>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
    let inputs: Vec<f64> = x.iter().copied().collect();
    for _ in 0..4000 {
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
    let ntk = Ntk::<f64>::of(&network, &[vec![2]], Kind::Pseudo, &difference)?;
    let conjugate = Conjugate::<f64>::new(&network, &[vec![2]], None)?;
    let (phi, psi) = (features(&conjugate, &x)?, features(&conjugate, &z)?);
    // Both logits have the same features, so the difference has twice their kernel.
    let kernels =
        [(gram(&ntk, &x, None)?, gram(&ntk, &z, Some(&x))?), (phi.dot(&phi.t()) * 2.0, psi.dot(&phi.t()) * 2.0)];
    let mut found = [own; 3];
    for (slot, (training, test)) in found[1..].iter_mut().zip(kernels) {
        let machine = BinaryLogistic::new(RIDGE)?.fit(&Samples::Gram(training.view()), &y)?;
        let test = Samples::Gram(test.view());
        *slot = judge(machine.probabilities(&test)?.view(), &machine.decide(&test)?)?;
    }
    Ok(found)
}
