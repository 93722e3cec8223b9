//! Attributions add up to scores, and a dual machine is a classifier that can be saved.

use super::{NORMS, Problem, apart};
use crate::machines::sets::{labels, rbf, rows};
use mercer_data::Existing;
use mercer_learn::surrogate::{DualGlm, DualMachine, DualRidge, DualRows, one_hot};
use mercer_learn::{Classify, KernelMachine, LearnError, Machine, Predict, SampleRows, ScoreLink, Solved};
use mercer_run::Context;
use ndarray::{Array2, Axis};

fn all(problem: &Problem) -> Vec<DualMachine> {
    let context = Context::new();
    let mut machines = Vec::new();
    for rows in problem.both() {
        for norm in NORMS {
            machines.push(DualGlm::new(0.3, norm).unwrap().fit(rows, problem.targets.view(), &context).unwrap());
        }
        let ridge = DualRidge::new(0.3).unwrap();
        machines.push(ridge.fit(rows, problem.targets.view(), &context).unwrap());
        machines.push(ridge.centred().fit(rows, problem.targets.view(), &context).unwrap());
    }
    machines
}

#[test]
fn attributions_sum_to_scores() {
    let problem = Problem::new(90, 12, 3, "attributions").softened();
    for machine in all(&problem) {
        let scores = machine.scores(problem.gram.view()).unwrap();
        let primal = machine.primal(problem.features.view()).unwrap();
        let through = problem.features.dot(&primal) + machine.bias();
        assert!(apart(&scores, &through) < 1e-10);
        for (row, scores) in problem.gram.outer_iter().zip(scores.outer_iter()) {
            for (class, score) in scores.iter().enumerate() {
                let shares = machine.attribute(row.as_slice().unwrap(), class).unwrap();
                assert!((shares.iter().sum::<f64>() - score).abs() < 1e-10);
            }
        }
        let total = machine.attribute_all(problem.gram.view(), 1).unwrap();
        assert!((total.sum() - scores.column(1).sum()).abs() < 1e-8);
    }
}

/// As a classifier it decides by the largest score, and a folder gives it back.
#[test]
fn a_dual_machine_is_a_classifier() {
    let x = rows(60, 2, "classifier");
    let (kernel, known) = (rbf(x.view(), x.view()), labels(x.view(), 3));
    let (classes, targets) = one_hot(&known).unwrap();
    let machine = DualRidge::new(0.1).unwrap().centred();
    let machine = machine.fit(SampleRows::Gram(kernel.view()), targets.view(), &Context::new()).unwrap();
    let scores = machine.scores(kernel.view()).unwrap();
    let classifier = machine.into_classifier(classes, ScoreLink::Softmax).unwrap();
    let samples = SampleRows::Gram(kernel.view());
    assert_eq!(classifier.predict(&samples).unwrap(), scores);
    let probabilities = classifier.probabilities(&samples).unwrap();
    assert!(probabilities.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    let folder = tempfile::tempdir().unwrap();
    let saved = KernelMachine::from(Machine::from(classifier));
    saved.save(&folder.path().join("machine"), Existing::Refuse).unwrap();
    let loaded = KernelMachine::load(&folder.path().join("machine")).unwrap();
    assert_eq!(loaded.machine.predict(&samples).unwrap(), scores);
}

#[test]
fn shapes_are_checked() {
    let problem = Problem::new(20, 4, 3, "shapes");
    let machine = &all(&problem)[0];
    assert!(matches!(machine.attribute(&[0.0; 19], 0), Err(LearnError::Shape { .. })));
    assert!(matches!(machine.attribute(&[0.0; 20], 3), Err(LearnError::Setting { .. })));
    assert!(machine.scores(Array2::zeros((2, 19)).view()).is_err());
    assert!(machine.primal(Array2::zeros((19, 4)).view()).is_err());
    let wide = Array2::zeros((1, 5));
    assert!(machine.scores_of(&problem.features(), &DualRows::Features(wide.view())).is_err());
    assert!(matches!(machine.scores_of(&problem.features(), &problem.gram()), Err(LearnError::Basis { .. })));
    let (weights, bias) = (Array2::from_elem((2, 2), f64::NAN), ndarray::Array1::zeros(2));
    let new = DualMachine::new(weights, bias, Solved::default(), 1.0, NORMS[0]);
    assert!(matches!(new, Err(LearnError::NotFinite { .. })));
}
