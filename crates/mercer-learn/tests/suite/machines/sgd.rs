//! Stochastic gradient descent against scikit-learn's `SGDClassifier` on unbalanced classes (`tests/fixtures/sgd.py`).

use mercer_data::Classes;
use mercer_learn::classification::SgdGlm;
use mercer_learn::{Classify, Fit, Predict, SampleRows, ScoreLink, softmax};
use ndarray::Array2;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    x: Vec<Vec<f64>>,
    labels: Vec<usize>,
    balanced: bool,
    /// One column for two classes.
    scores: Vec<Vec<f64>>,
    probabilities: Vec<Vec<f64>>,
    decisions: Vec<usize>,
    passes: usize,
}

fn matrix(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| rows[row][column])
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../fixtures/sgd.json")).expect("a fixture")
}

fn close(what: &str, ours: &Array2<f64>, theirs: &Array2<f64>) {
    assert_eq!(ours.dim(), theirs.dim(), "{what}");
    let worst = (ours - theirs).iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    // A few thousand steps in double precision, each a little contraction.
    assert!(worst < 1e-9, "{what}: {worst:e}");
}

/// In the same order of samples, with the same weights of classes: the same numbers.
#[test]
fn two_and_three_unbalanced_classes_are_scikit_learns() {
    for case in cases() {
        let (x, n_classes) = (matrix(&case.x), case.labels.iter().max().map_or(0, |most| most + 1));
        let samples = SampleRows::Features(x.view());
        let labels = Classes::new(case.labels, n_classes).unwrap();
        let sgd = SgdGlm::new(0).with_alpha(1e-2).unwrap().in_order();
        let sgd = if case.balanced { sgd } else { sgd.unbalanced() };
        let machine = sgd.fit(&samples, &labels).unwrap();
        let name = format!("{n_classes} classes, balanced {}", case.balanced);
        assert_eq!(machine.solved().iterations, case.passes, "{name}");
        let mut theirs = matrix(&case.scores);
        if n_classes == 2 {
            theirs = Array2::from_shape_fn((x.nrows(), 2), |(row, class)| theirs[(row, 0)] * class as f64);
        }
        let scores = machine.predict(&samples).unwrap();
        close(&name, &scores, &theirs);
        close(&name, &machine.probabilities(&samples).unwrap(), &matrix(&case.probabilities));
        assert_eq!(machine.decide(&samples).unwrap(), case.decisions, "{name}");
        // The other reading of the same scores, by name.
        let soft = sgd.softmax().fit(&samples, &labels).unwrap();
        assert_eq!(soft.link(), ScoreLink::Softmax);
        assert_eq!(soft.probabilities(&samples).unwrap(), softmax(scores.view()), "{name}");
        assert_eq!(machine.with_softmax().probabilities(&samples).unwrap(), softmax(scores.view()), "{name}");
    }
}

/// Weights matter: the fixtures with and without them are other machines.
#[test]
fn balanced_classes_are_told_from_others() {
    for pair in cases().chunks(2) {
        assert!(pair[0].scores != pair[1].scores && !pair[0].balanced && pair[1].balanced);
    }
}
