//! The multinomial model in dual form.

use super::{NORMS, Problem, apart, size};
use crate::machines::sets::{labels, rbf, rows};
use mercer_learn::classification::Glm;
use mercer_learn::surrogate::{DualGlm, DualMachine, DualRows, PenaltyNorm, one_hot};
use mercer_learn::{Fit, Predict, SampleRows, softmax};
use mercer_run::Context;
use ndarray::{Array2, Axis, concatenate};

fn fit(rows: DualRows<'_>, targets: &Array2<f64>, penalty: f64, norm: PenaltyNorm) -> DualMachine {
    let machine = DualGlm::new(penalty, norm).unwrap().fit(rows, targets.view(), &Context::new()).unwrap();
    assert!(machine.solved().converged, "{:?}", machine.solved());
    machine
}

/// `K(P − T) + λ{W | KW} = 0` and `Σ(P − T) = 0`; with the norm of the function even `λW = T − P`.
#[test]
fn the_gradient_vanishes() {
    let problem = Problem::new(80, 10, 3, "stationary").softened();
    for rows in problem.both() {
        for norm in NORMS {
            for penalty in [1e-3, 0.1, 20.0] {
                let machine = fit(rows, &problem.targets, penalty, norm);
                let residual = softmax(machine.scores(problem.gram.view()).unwrap().view()) - &problem.targets;
                let gradient = match norm {
                    PenaltyNorm::Weights => problem.gram.dot(&residual) + machine.weights() * penalty,
                    PenaltyNorm::Function => &residual + &(machine.weights() * penalty),
                };
                assert!(size(&gradient) < 1e-7, "{rows:?} {norm} {penalty}: {}", size(&gradient));
                // Scores of up to ten, right to eight digits, for eighty samples.
                assert!(residual.sum_axis(Axis(0)).iter().all(|sum| sum.abs() < 1e-6));
                assert!(machine.bias().sum().abs() < 1e-9);
            }
        }
    }
}

/// On a Gram matrix with the norm of the weights it is the model of [`Glm`], balanced or not.
#[test]
fn known_classes_give_the_model_of_the_report() {
    let x = rows(70, 2, "report");
    let (kernel, known) = (rbf(x.view(), x.view()), labels(x.view(), 3));
    let (_, targets) = one_hot(&known).unwrap();
    let samples = SampleRows::Gram(kernel.view());
    for balanced in [false, true] {
        let glm = Glm::new(0.1).unwrap().until(1e-10, 5000).unwrap();
        let dual = DualGlm::new(0.1, PenaltyNorm::Weights).unwrap();
        let (glm, dual) = if balanced { (glm.balanced(), dual.balanced()) } else { (glm, dual) };
        let glm = glm.fit(&samples, &known).unwrap();
        let dual = dual.fit(samples, targets.view(), &Context::new()).unwrap();
        assert!(apart(glm.scores().weights(), dual.weights()) < 1e-6);
        let scores = dual.scores(kernel.view()).unwrap();
        assert!(apart(&glm.predict(&samples).unwrap(), &scores) < 1e-6);
        assert!((glm.solved().objective - dual.solved().objective).abs() < 1e-9);
    }
}

/// `K = ΦΦᵀ`: the same model either way. Single precision rounds the features, not the products.
#[test]
fn features_and_their_gram_matrix_agree() {
    // More samples than a strip has rows.
    let problem = Problem::new(700, 15, 4, "agree");
    let narrow = problem.features.mapv(|v| v as f32);
    let widened = narrow.mapv(f64::from);
    let queries = Problem::new(30, 15, 4, "queries");
    for norm in NORMS {
        let gram = fit(problem.gram(), &problem.targets, 0.2, norm);
        let features = fit(problem.features(), &problem.targets, 0.2, norm);
        let scores = gram.scores(problem.gram.view()).unwrap();
        assert!(apart(&scores, &features.scores(problem.gram.view()).unwrap()) < 1e-6 * size(&scores));
        let single = fit(DualRows::Features32(narrow.view()), &problem.targets, 0.2, norm);
        let double = fit(DualRows::Features(widened.view()), &problem.targets, 0.2, norm);
        assert_eq!(single, double);
        assert!(apart(features.weights(), single.weights()) < 1e-4 * size(features.weights()));
        let through = features.scores_of(&problem.features(), &queries.features()).unwrap();
        let kernel = problem.features().kernel_rows(&queries.features()).unwrap();
        assert!(apart(&features.scores(kernel.view()).unwrap(), &through) < 1e-9 * size(&scores));
    }
}

/// Every sample twice: with half the penalty the function is the same, and copies share their weight.
#[test]
fn duplicated_rows() {
    let problem = Problem::new(60, 40, 3, "twice");
    let features = concatenate![Axis(0), problem.features, problem.features];
    let targets = concatenate![Axis(0), problem.targets, problem.targets];
    let gram = features.dot(&features.t());
    for rows in [DualRows::Gram(gram.view()), DualRows::Features(features.view())] {
        let once = fit(problem.gram(), &problem.targets, 0.05, PenaltyNorm::Function);
        let twice = fit(rows, &targets, 0.1, PenaltyNorm::Function);
        let scores = once.scores(problem.gram.view()).unwrap();
        let both = twice.scores(gram.view()).unwrap();
        assert!(apart(&scores, &both.slice(ndarray::s![..60, ..]).to_owned()) < 1e-6);
        let halves = twice.weights().slice(ndarray::s![..60, ..]).to_owned();
        assert!(apart(&(halves * 2.0), once.weights()) < 1e-5);
        assert!(fit(rows, &targets, 0.1, PenaltyNorm::Weights).solved().converged);
    }
}

/// Separable samples, kernels of any size, and a kernel of rank one.
#[test]
fn hard_problems_converge() {
    let problem = Problem::new(150, 200, 5, "hard");
    for norm in NORMS {
        for (scale, penalty) in [(1.0, 1e-2), (1e4, 1e6), (1e-6, 1.0), (1.0, 1e8)] {
            let gram = &problem.gram * scale;
            fit(DualRows::Gram(gram.view()), &problem.targets, penalty, norm);
        }
        // Out of reach of rounding: it says so.
        let settings = DualGlm::new(1e-9, norm).unwrap().until(1e-8, 8).unwrap();
        let machine = settings.fit(problem.gram(), problem.targets.view(), &Context::new()).unwrap();
        assert!(!machine.solved().converged && machine.solved().objective < 240.0, "{:?}", machine.solved());
        let one = Array2::ones((150, 1));
        let machine = fit(DualRows::Features(one.view()), &problem.targets, 0.1, norm);
        // The bias does all of it.
        let shares = softmax(machine.scores(Array2::ones((1, 150)).view()).unwrap().view());
        let means = problem.targets.mean_axis(Axis(0)).unwrap();
        assert!(shares.row(0).iter().zip(&means).all(|(p, mean)| (p - mean).abs() < 1e-7));
    }
}

/// Bits do not depend on threads.
#[test]
fn threads_do_not_matter() {
    let problem = Problem::new(1200, 20, 3, "threads");
    let narrow = problem.features.mapv(|v| v as f32);
    for rows in [problem.gram(), problem.features(), DualRows::Features32(narrow.view())] {
        for norm in NORMS {
            let on = |threads| {
                let context = Context::new().with_threads(threads).unwrap();
                DualGlm::new(0.1, norm).unwrap().fit(rows, problem.targets.view(), &context).unwrap()
            };
            assert_eq!(on(1), on(2));
        }
    }
}
