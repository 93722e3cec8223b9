//! Cross-validation against fits by hand.

use super::sets::{labels, rbf, rows};
use mercer_data::Classes;
use mercer_learn::classification::{BinaryLogistic, Glm, Svm};
use mercer_learn::selection::{Criterion, CrossValidation, Strongest, stratified};
use mercer_learn::{Classify, Fit, LearnError, Result, SampleRows};
use mercer_run::Context;
use ndarray::{Array2, Axis};

const N: usize = 43;

fn choose<F>(
    samples: &SampleRows<'_>,
    known: &Classes,
    values: &[f64],
    (criterion, strongest): (Criterion, Strongest),
    settings: impl Fn(f64) -> Result<F>,
) -> Result<mercer_learn::selection::Selected>
where
    F: Fit<Classes>,
    F::Machine: Classify,
{
    let method = CrossValidation { folds: 4, criterion, seed: 9 };
    method.choose((values, strongest), settings, samples, known, &Context::new())
}

/// Sums over all held-out samples, from machines that are fitted here.
fn by_hand<F>(x: &Array2<f64>, gram: bool, known: &Classes, machine: &F, criterion: Criterion) -> f64
where
    F: Fit<Classes>,
    F::Machine: Classify,
{
    let fold_of = stratified(known, 4, 9).unwrap();
    let mut sum = 0.0;
    for fold in 0..4 {
        let kept: Vec<usize> = (0..N).filter(|&row| fold_of[row] != fold).collect();
        let held: Vec<usize> = (0..N).filter(|&row| fold_of[row] == fold).collect();
        let (train, test) = (x.select(Axis(0), &kept), x.select(Axis(0), &held));
        let classes = Classes::new(kept.iter().map(|&row| known.indices()[row]).collect(), known.n_classes()).unwrap();
        let (train, test) = match gram {
            true => (rbf(train.view(), train.view()), rbf(test.view(), train.view())),
            false => (train, test),
        };
        let wrap = |rows| if gram { SampleRows::Gram(rows) } else { SampleRows::Features(rows) };
        let fitted = machine.fit(&wrap(train.view()), &classes).unwrap();
        let probabilities = fitted.probabilities(&wrap(test.view()));
        let decided = fitted.decide(&wrap(test.view())).unwrap();
        for (at, &row) in held.iter().enumerate() {
            let truth = known.indices()[row];
            sum += match criterion {
                Criterion::LogLoss => -probabilities.as_ref().unwrap()[(at, truth)].ln(),
                Criterion::Accuracy => f64::from(u8::from(decided[at] == truth)),
            };
        }
    }
    sum / N as f64
}

/// Scores are those of machines fitted by hand on every fold, on a Gram matrix and on features, and the best of them wins.
#[test]
fn scores_are_those_of_fits_by_hand() {
    let x = rows(N, 2, "selection");
    let kernel = rbf(x.view(), x.view());
    let (three, two) = (labels(x.view(), 3), labels(x.view(), 2));
    let values = [0.01, 1.0, 100.0];
    for gram in [true, false] {
        let samples = if gram { SampleRows::Gram(kernel.view()) } else { SampleRows::Features(x.view()) };
        let by_loss = (Criterion::LogLoss, Strongest::Largest);
        let glm = choose(&samples, &three, &values, by_loss, Glm::new).unwrap();
        let logistic = choose(&samples, &two, &values, by_loss, BinaryLogistic::new).unwrap();
        let svm = choose(&samples, &three, &values, (Criterion::Accuracy, Strongest::Smallest), Svm::new).unwrap();
        for (at, &value) in values.iter().enumerate() {
            let expected = [
                by_hand(&x, gram, &three, &Glm::new(value).unwrap(), Criterion::LogLoss),
                by_hand(&x, gram, &two, &BinaryLogistic::new(value).unwrap(), Criterion::LogLoss),
                by_hand(&x, gram, &three, &Svm::new(value).unwrap(), Criterion::Accuracy),
            ];
            for (found, expected) in [&glm, &logistic, &svm].iter().zip(expected) {
                assert_eq!(found.candidates[at].value, value);
                assert!((found.candidates[at].score - expected).abs() < 1e-12, "{found:?}: {expected}");
            }
        }
        let least = glm.candidates.iter().map(|one| one.score).fold(f64::INFINITY, f64::min);
        assert_eq!(glm.candidates.iter().find(|one| one.value == glm.value).unwrap().score, least);
        let most = svm.candidates.iter().map(|one| one.score).fold(0.0, f64::max);
        assert_eq!(svm.candidates.iter().find(|one| one.value == svm.value).unwrap().score, most);
    }
}

/// The order of values and repeated ones do not matter; the same seed gives the same, another seed other folds.
#[test]
fn the_order_of_values_does_not_matter() {
    let x = rows(N, 2, "selection");
    let known = labels(x.view(), 3);
    let how = (Criterion::LogLoss, Strongest::Largest);
    let samples = SampleRows::Features(x.view());
    let found = choose(&samples, &known, &[0.1, 1.0, 10.0], how, Glm::new).unwrap();
    for values in [[10.0, 0.1, 1.0].as_slice(), &[1.0, 10.0, 0.1, 1.0], &[0.1, 1.0, 10.0]] {
        assert_eq!(choose(&samples, &known, values, how, Glm::new).unwrap(), found);
    }
    assert_ne!(stratified(&known, 4, 9).unwrap(), stratified(&known, 4, 10).unwrap());
}

/// Samples that no machine gets wrong score the same for all values: the strongest penalty wins.
#[test]
fn ties_go_to_the_stronger_penalty() {
    let x = Array2::from_shape_fn((12, 1), |(i, _)| if i % 2 == 0 { -5.0 } else { 5.0 } + i as f64 / 50.0);
    let known = Classes::new((0..12).map(|i| i % 2).collect(), 2).unwrap();
    let samples = SampleRows::Features(x.view());
    let chosen = |strongest, settings: fn(f64) -> Result<Svm>| {
        choose(&samples, &known, &[1.0, 0.5, 2.0], (Criterion::Accuracy, strongest), settings).unwrap()
    };
    let by_cost = chosen(Strongest::Smallest, Svm::new);
    assert!(by_cost.candidates.iter().all(|candidate| candidate.score == 1.0), "{by_cost:?}");
    assert_eq!(by_cost.value, 0.5);
    assert_eq!(chosen(Strongest::Largest, |penalty| Svm::new(1.0 / penalty)).value, 2.0);
}

/// Every fold has its share of every class and of all samples.
#[test]
fn folds_are_stratified() {
    let known = Classes::new((0..50).map(|i| usize::from(i % 10 > 6) + usize::from(i % 10 == 9)).collect(), 3).unwrap();
    let fold_of = stratified(&known, 5, 3).unwrap();
    for fold in 0..5 {
        let members: Vec<usize> = (0..50).filter(|&row| fold_of[row] == fold).collect();
        let count = |class: usize| members.iter().filter(|&&row| known.indices()[row] == class).count();
        assert_eq!([count(0), count(1), count(2)], [7, 2, 1]);
    }
    let lone = Classes::new(vec![0, 0, 0, 1], 2).unwrap();
    assert!(matches!(stratified(&lone, 2, 0), Err(LearnError::TooFew { count: 1, .. })));
    for folds in [0, 1, 51] {
        assert!(matches!(stratified(&known, folds, 0), Err(LearnError::Setting { .. })), "{folds}");
    }
}
