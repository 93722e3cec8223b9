//! Inputs that cannot be used, and a run that is cancelled.

use super::{NORMS, Problem};
use mercer_data::Classes;
use mercer_learn::surrogate::{DualGlm, DualRidge, DualRows, PenaltyNorm, one_hot};
use mercer_learn::{LearnError, SampleRows};
use mercer_run::Context;
use ndarray::{Array2, array};

fn fit(rows: DualRows<'_>, targets: &Array2<f64>) -> Result<mercer_learn::surrogate::DualMachine, LearnError> {
    DualGlm::new(1.0, PenaltyNorm::Function)?.fit(rows, targets.view(), &Context::new())
}

#[test]
fn settings_are_checked() {
    for penalty in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(DualGlm::new(penalty, PenaltyNorm::Weights), Err(LearnError::Setting { .. })));
        assert!(matches!(DualRidge::new(penalty), Err(LearnError::Setting { .. })));
    }
    assert!(DualGlm::new(1.0, PenaltyNorm::Weights).unwrap().until(0.0, 3).is_err());
    assert_eq!("function".parse(), Ok(PenaltyNorm::Function));
    assert_eq!(PenaltyNorm::Weights.to_string(), "weights");
}

#[test]
fn one_class_is_not_enough() {
    let x = array![[1.0], [2.0]];
    let rows = DualRows::Features(x.view());
    assert!(matches!(one_hot(&Classes::new(vec![1, 1], 2).unwrap()), Err(LearnError::OneClass { .. })));
    assert!(matches!(fit(rows, &array![[1.0], [1.0]]), Err(LearnError::OneClass { .. })));
    assert!(matches!(fit(rows, &array![[0.0, 1.0], [0.0, 1.0]]), Err(LearnError::OneClass { .. })));
    let missing = array![[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
    assert!(matches!(fit(rows, &missing), Err(LearnError::TooFew { count: 0, .. })));
    // A class of the labels that has no samples has no column.
    let (classes, targets) = one_hot(&Classes::new(vec![0, 2], 3).unwrap()).unwrap();
    assert_eq!((classes.present(), targets.ncols()), (&[0, 2][..], 2));
    let machine = fit(rows, &targets).unwrap();
    assert!(
        machine.into_classifier(classes, mercer_learn::ScoreLink::Softmax).unwrap().scores().weights().ncols() == 2
    );
}

#[test]
fn targets_are_probabilities() {
    let x = array![[1.0], [2.0]];
    let rows = DualRows::Features(x.view());
    for wrong in [[0.5, 0.6], [-0.1, 1.1], [0.0, 0.0]] {
        let targets = array![[0.5, 0.5], wrong];
        assert!(matches!(fit(rows, &targets), Err(LearnError::Setting { .. })), "{wrong:?}");
    }
    assert!(matches!(fit(rows, &array![[0.5, f64::NAN], [0.5, 0.5]]), Err(LearnError::Algebra(_))));
    assert!(matches!(fit(rows, &array![[0.5, 0.5]]), Err(LearnError::Shape { .. })));
}

#[test]
fn samples_are_checked() {
    let two = array![[1.0, 0.0], [0.0, 1.0]];
    let broken = array![[1.0, f64::NAN], [f64::NAN, 1.0]];
    let lopsided = array![[1.0, 2.0], [0.0, 1.0]];
    let narrow = array![[1.0f32], [f32::INFINITY]];
    let empty = Array2::zeros((0, 3));
    let bad = [
        DualRows::Gram(broken.view()),
        DualRows::Features(broken.view()),
        DualRows::Gram(lopsided.view()),
        DualRows::Features32(narrow.view()),
        DualRows::Features(empty.view()),
    ];
    for rows in bad {
        assert!(fit(rows, &two).is_err(), "{rows:?}");
        let ridge = DualRidge::new(1.0).unwrap();
        assert!(ridge.fit(rows, two.view(), &Context::new()).is_err());
        assert!(ridge.choose(&[1.0], rows, two.view(), &Context::new()).is_err());
    }
    // A kernel that is not positive has no norm.
    let indefinite = array![[0.0, 9.0], [9.0, 0.0]];
    let weak = DualGlm::new(1e-3, PenaltyNorm::Function).unwrap();
    let found = weak.fit(SampleRows::Gram(indefinite.view()), two.view(), &Context::new());
    assert!(matches!(found, Err(LearnError::Algebra(_))), "{found:?}");
}

/// One sample with a soft target: the bias alone reproduces it.
#[test]
fn a_single_sample() {
    let x = array![[2.0]];
    for norm in NORMS {
        for rows in [DualRows::Gram(x.view()), DualRows::Features(x.view())] {
            let machine = DualGlm::new(0.5, norm).unwrap();
            let machine = machine.fit(rows, array![[0.3, 0.7]].view(), &Context::new()).unwrap();
            assert!(machine.solved().converged);
            assert!((machine.bias()[1] - machine.bias()[0] - (0.7f64 / 0.3).ln()).abs() < 1e-8);
            assert!(machine.weights().iter().all(|w| w.abs() < 1e-8));
        }
    }
    assert!(DualRidge::new(1.0).unwrap().fit(DualRows::Gram(x.view()), x.view(), &Context::new()).is_ok());
}

#[test]
fn a_cancelled_run_stops() {
    let problem = Problem::new(50, 5, 3, "cancelled");
    let context = Context::new();
    context.cancel();
    for norm in NORMS {
        let found = DualGlm::new(1.0, norm).unwrap().fit(problem.gram(), problem.targets.view(), &context);
        assert!(matches!(found, Err(LearnError::Kernel(_))));
    }
    let ridge = DualRidge::new(1.0).unwrap();
    assert!(ridge.fit(problem.gram(), problem.targets.view(), &context).is_err());
}
