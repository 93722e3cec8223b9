//! Scores against retraining: planted linear models, noise of known size, removal, and the sanity check.

mod common;

use common::{features, normals};
use mercer_lens::LensError;
use mercer_lens::average::Average;
use mercer_lens::lds::{Uncertainty, datamodelling};
use mercer_lens::removal::removal_curve;
use mercer_lens::sanity::{agreement, by_layer};
use ndarray::{Array2, array};

fn halves(n_subsets: usize, n: usize, seed: u64) -> Array2<bool> {
    features(n_subsets, n, seed).mapv(|x| x > 0.0)
}

/// The outputs of a linear model: the sum over the samples that were kept.
fn linear(scores: &Array2<f64>, kept: &Array2<bool>) -> Array2<f64> {
    kept.mapv(|kept| f64::from(u8::from(kept))).dot(&scores.t())
}

#[test]
fn a_linear_model_is_predicted() {
    let (scores, kept) = (features(20, 50, 1), halves(60, 50, 2));
    // A monotone function of the sum is as good as the sum.
    let outputs = linear(&scores, &kept).mapv(|x| x.tanh() * 3.0 - 1.0);
    let found = datamodelling(scores.view(), kept.view(), outputs.view(), None, Uncertainty::default()).unwrap();
    let score = found.score.unwrap();
    assert!((score.mean - 1.0).abs() < 1e-12 && score.count == 20, "{score:?}");
    assert_eq!((found.significant, found.ceiling), (Some(1.0), None));
    let opposite = datamodelling((-&scores).view(), kept.view(), outputs.view(), None, Uncertainty::default()).unwrap();
    assert!((opposite.score.unwrap().mean + 1.0).abs() < 1e-12, "the sign matters");
    assert_eq!(opposite.significant, Some(1.0), "the test is two-sided");
}

/// Under the null hypothesis the mean is zero, its standard error 1/√(M(S − 1)), and 5 % of the queries are significant.
#[test]
fn random_scores_predict_nothing() {
    let (queries, subsets) = (1000, 40);
    let kept = halves(subsets, 80, 3);
    let outputs = normals(subsets, queries, 4);
    let found =
        datamodelling(features(queries, 80, 5).view(), kept.view(), outputs.view(), None, Uncertainty::default())
            .unwrap();
    let score = found.score.unwrap();
    let expected = 1.0 / ((queries * (subsets - 1)) as f64).sqrt();
    assert!(score.mean.abs() < 4.0 * expected, "{score:?}");
    assert!((score.standard_error.unwrap() / expected - 1.0).abs() < 0.1, "{score:?} {expected}");
    let [low, high] = score.interval.unwrap();
    assert!(low < score.mean && score.mean < high && (high - low) / (3.92 * expected) > 0.85, "{score:?}");
    // Three standard deviations of a share of 5 %, and a little for the shared permutations.
    assert!((found.significant.unwrap() - 0.05).abs() < 0.025, "{:?}", found.significant);
}

/// Outputs are a signal of variance 1 plus independent noise of variance v: the correlation of the signal with the mean of two
/// outputs is 1/√(1 + v/2).
#[test]
fn the_noise_ceiling_is_what_perfect_scores_reach() {
    for (variance, tolerance) in [(0.25, 0.01), (1.0, 0.015), (4.0, 0.03)] {
        let (queries, subsets, n) = (200, 100, 200);
        let kept = halves(subsets, n, 6);
        let scores = normals(queries, n, 7) * (2.0 / (n as f64).sqrt());
        let signal = linear(&scores, &kept);
        let noisy = |seed| &signal + &(normals(subsets, queries, seed) * f64::sqrt(variance));
        let (first, second) = (noisy(8), noisy(9));
        let settings = Uncertainty::default();
        let found = datamodelling(scores.view(), kept.view(), first.view(), Some(second.view()), settings).unwrap();
        let ceiling = found.ceiling.unwrap();
        let (reached, allowed) = (found.score.unwrap().mean, ceiling.ceiling.unwrap());
        assert!((reached - allowed).abs() < tolerance, "{variance}: {reached} {allowed}");
        // Linear correlations; ranks of normal variables are a little lower.
        let truth = 1.0 / f64::sqrt(1.0 + variance / 2.0);
        assert!((allowed - truth).abs() < 0.03, "{variance}: {allowed} {truth}");
        let single = 1.0 / (1.0 + variance);
        assert!((ceiling.reliability.unwrap().mean - single).abs() < 0.04, "{variance}");
    }
}

#[test]
fn queries_without_information() {
    let kept = halves(12, 6, 10);
    let mut scores = features(3, 6, 11);
    let mut outputs = linear(&scores, &kept);
    scores.row_mut(1).fill(0.0);
    outputs.column_mut(2).fill(0.7);
    let found = datamodelling(scores.view(), kept.view(), outputs.view(), None, Uncertainty::default()).unwrap();
    assert_eq!((found.per_query[1], found.per_query[2]), (Some(0.0), None));
    assert_eq!((found.constant_predictions, found.constant_outputs), (1, 1));
    assert!((found.score.unwrap().mean - 0.5).abs() < 1e-12 && found.significant == Some(0.5));
    let flat = Array2::ones((12, 3));
    let none =
        datamodelling(scores.view(), kept.view(), flat.view(), Some(flat.view()), Uncertainty::default()).unwrap();
    assert!(none.score.is_none() && none.significant.is_none() && none.ceiling.unwrap().ceiling.is_none());
    let json = serde_json::to_string(&none).unwrap();
    assert!(json.contains("\"score\":null"), "{json}");
}

#[test]
fn shapes_and_numbers_that_cannot_be_used() {
    let (scores, kept) = (features(3, 6, 12), halves(8, 6, 13));
    let outputs = linear(&scores, &kept);
    let run = |scores: &Array2<f64>, kept: &Array2<bool>, outputs: &Array2<f64>, again: Option<&Array2<f64>>| {
        let again = again.map(|again| again.view());
        datamodelling(scores.view(), kept.view(), outputs.view(), again, Uncertainty::default()).unwrap_err()
    };
    let mut hole = outputs.clone();
    hole[[3, 1]] = f64::NAN;
    assert!(matches!(run(&scores, &kept, &hole, None), LensError::Algebra(_)));
    assert!(matches!(run(&scores, &kept, &outputs, Some(&hole)), LensError::Algebra(_)));
    assert!(matches!(run(&(&scores * f64::INFINITY), &kept, &outputs, None), LensError::Algebra(_)));
    assert!(matches!(run(&scores, &halves(8, 5, 1), &outputs, None), LensError::Rows { .. }));
    assert!(matches!(run(&scores, &halves(7, 6, 1), &outputs, None), LensError::Rows { .. }));
    assert!(matches!(run(&features(2, 6, 1), &kept, &outputs, None), LensError::Rows { .. }));
    assert!(matches!(run(&Array2::zeros((0, 6)), &kept, &outputs, None), LensError::TooFew { .. }));
    assert!(matches!(run(&scores, &halves(1, 6, 1), &outputs, None), LensError::TooFew { .. }));
}

#[test]
fn averages_by_hand() {
    let found = Average::of(&[1.0, 2.0, 6.0], 500, 1).unwrap();
    assert_eq!((found.mean, found.count), (3.0, 3));
    assert!((found.standard_error.unwrap() - (7.0f64 / 3.0).sqrt()).abs() < 1e-15);
    let [low, high] = found.interval.unwrap();
    assert!((1.0..=2.0).contains(&low) && (4.0..=6.0).contains(&high), "{found:?}");
    assert_eq!(Average::of(&[1.0, 2.0, 6.0], 500, 1), Some(found));
    assert_eq!(Average::of(&[], 10, 0), None);
    let single = Average::of(&[2.0], 10, 0).unwrap();
    assert_eq!((single.mean, single.standard_error, single.interval), (2.0, None, None));
}

#[test]
fn removal_by_hand() {
    let intact = [1.0, 2.0, -1.0];
    let by_score = array![[0.5, 1.0, -1.0], [-0.5, 0.0, -2.0]];
    let at_random = array![[1.0, 2.0, -1.0], [0.5, 2.0, -1.0]];
    let found = removal_curve(&[2, 6], &intact, by_score.view(), at_random.view()).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-15;
    assert!(close(found.points[0].by_score, 0.5) && close(found.points[0].at_random, 0.0));
    assert!(close(found.points[1].by_score, 4.5 / 3.0) && close(found.points[1].at_random, 0.5 / 3.0));
    let flipped = |at: usize| (found.points[at].flipped_by_score, found.points[at].flipped_at_random);
    assert_eq!((flipped(0), flipped(1)), ((Some(0.0), Some(0.0)), (Some(1.0), Some(0.0))));
    // Trapezoids: (0, 0), (2, 1/2), (6, 4/3).
    assert!(close(found.area, (0.5 + 4.0 * (0.5 + 4.0 / 3.0) / 2.0) / 6.0), "{}", found.area);
    assert_eq!(found.brittleness, [Some(6), Some(6), None]);
    for removed in [&[0, 6][..], &[6, 2], &[2, 2], &[]] {
        let refused = removal_curve(removed, &intact, by_score.view(), at_random.view());
        assert!(matches!(refused, Err(LensError::Setting { .. })), "{removed:?}");
    }
    assert!(matches!(
        removal_curve(&[1], &intact, by_score.view(), at_random.view()),
        Err(LensError::Rows { expected: 1, found: 2, .. })
    ));
}

#[test]
fn randomised_layers_do_not_agree() {
    let trained = features(30, 200, 14);
    let other = features(30, 200, 15);
    let found =
        by_layer(trained.view(), &[("same".to_owned(), trained.view()), ("other".to_owned(), other.view())]).unwrap();
    assert_eq!(found[0].layer, "same");
    assert!((found[0].agreement.correlation.unwrap().mean - 1.0).abs() < 1e-12);
    let average = found[1].agreement.correlation.unwrap();
    assert!(average.mean.abs() < 4.0 / (30.0f64 * 199.0).sqrt(), "{average:?}");
    let flat = agreement(Array2::ones((2, 3)).view(), features(2, 3, 1).view()).unwrap();
    assert_eq!((flat.correlation, flat.per_query), (None, vec![None, None]));
    assert!(matches!(agreement(trained.view(), features(30, 199, 1).view()), Err(LensError::Rows { .. })));
}
