//! Faithfulness against definitions, brute force and closed forms.

use mercer_data::random::stream;
use mercer_lens::{Bootstrap, Doubt, LensError, decisions, faithfulness, isotonic, local_gaps, log_odds};
use ndarray::{Array2, array};
use rand::RngExt;

const NONE: Bootstrap = Bootstrap { draws: 0, seed: 0 };

/// Scores of a network, and of a surrogate that knows them up to noise.
fn scores(n: usize, classes: usize, noise: f64) -> (Array2<f64>, Array2<f64>, Vec<usize>) {
    let mut random = stream(1, "scores");
    let mut draw = |_| 4.0 * (random.random::<f64>() - 0.5);
    let network = Array2::from_shape_simple_fn((n, classes), || draw(()));
    let surrogate = network.mapv(|x| 0.5 * x) + Array2::from_shape_simple_fn((n, classes), || noise * draw(()));
    let truth = (0..n).map(|at| at % classes).collect();
    (network, surrogate, truth)
}

/// Concordant minus discordant pairs, pair by pair; ties are discordant.
fn printed(p: &[f64], q: &[f64]) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for i in 0..p.len() {
        for j in 0..i {
            sum += if (p[i] - p[j]) * (q[i] - q[j]) > 0.0 { 1.0 } else { -1.0 };
            all += 1.0;
        }
    }
    sum / all
}

#[test]
fn log_odds_are_those_of_the_softmax() {
    let (network, _, truth) = scores(20, 4, 0.0);
    for ((row, &class), odds) in network.outer_iter().zip(&truth).zip(log_odds(network.view(), &truth).unwrap()) {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        let p = row[class].exp() / sum;
        assert!((odds - (p / (1.0 - p)).ln()).abs() < 1e-12);
    }
    // Where the softmax is 1 in any precision, log-odds still differ.
    let extreme = array![[800.0, 0.0], [900.0, 0.0]];
    assert_eq!(log_odds(extreme.view(), &[0, 0]).unwrap(), [800.0, 900.0]);
}

#[test]
fn tau_is_the_report_s_where_nothing_is_tied() {
    let (network, surrogate, truth) = scores(60, 3, 0.3);
    let found = faithfulness(network.view(), surrogate.view(), &truth, Some(&truth), NONE).unwrap();
    let odds = |scores: &Array2<f64>| log_odds(scores.view(), &truth).unwrap();
    let expected = printed(&odds(&network), &odds(&surrogate));
    assert!((found.tau.unwrap() - expected).abs() < 1e-12);
    assert_eq!((found.n_ties, found.softmax.n_saturated), (0, 0));
    assert!((found.softmax.tau.unwrap() - expected).abs() < 1e-12);
    let right = |scores: &Array2<f64>| {
        decisions(scores.view()).iter().zip(&truth).filter(|(a, b)| a == b).count() as f64 / 60.0
    };
    assert!((found.tad.unwrap() - (right(&surrogate) - right(&network))).abs() < 1e-12);
}

#[test]
fn saturated_probabilities_are_ties_and_count_as_discordant() {
    let network = array![[40.0, 0.0], [50.0, 0.0], [1.0, 0.0], [2.0, 0.0]];
    let surrogate = array![[4.0, 0.0], [5.0, 0.0], [1.0, 0.0], [2.0, 0.0]];
    let found = faithfulness(network.view(), surrogate.view(), &[0; 4], None, NONE).unwrap();
    assert_eq!((found.tau, found.n_ties), (Some(1.0), 0));
    assert_eq!((found.softmax.n_ties, found.softmax.n_saturated), (1, 2));
    // Five of six pairs are concordant, one is tied.
    assert!((found.softmax.tau.unwrap() - 4.0 / 6.0).abs() < 1e-12);
    let tied = array![[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 0.0]];
    let found = faithfulness(tied.view(), surrogate.view(), &[0; 4], None, NONE).unwrap();
    assert_eq!(found.n_ties, 2);
}

#[test]
fn the_line_and_its_r_squared_are_exact_for_an_affine_surrogate() {
    let (network, _, truth) = scores(50, 2, 0.0);
    // Log-odds of two classes are differences of scores, so shifting one score shifts all log-odds of its class.
    let surrogate = network.mapv(|x| 0.25 * x);
    let found = faithfulness(network.view(), surrogate.view(), &vec![1; 50], Some(&truth), NONE).unwrap();
    assert!((found.line.unwrap().slope - 4.0).abs() < 1e-10 && found.line.unwrap().intercept.abs() < 1e-10);
    assert!((found.r2.unwrap() - 1.0).abs() < 1e-12 && (found.r2_isotonic.unwrap() - 1.0).abs() < 1e-12);
    assert_eq!((found.agreement, found.tad), (1.0, Some(0.0)));
}

#[test]
fn isotonic_is_the_best_monotone_function() {
    let mut random = stream(2, "isotonic");
    let x: Vec<f64> = (0..7).map(|_| f64::floor(random.random::<f64>() * 5.0)).collect();
    let y: Vec<f64> = (0..7).map(|_| random.random::<f64>()).collect();
    let fitted = isotonic(&x, &y);
    let loss = |values: &[f64]| values.iter().zip(&y).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    for i in 0..7 {
        for j in 0..7 {
            assert!(x[i] > x[j] || fitted[i] <= fitted[j] + 1e-15, "it is monotone");
        }
    }
    // No monotone function on a fine grid is better: levels of the distinct points, ascending.
    let mut points = x.clone();
    points.sort_by(f64::total_cmp);
    points.dedup();
    let grid = 15;
    let mut levels = vec![0_usize; points.len()];
    loop {
        if levels.windows(2).all(|pair| pair[0] <= pair[1]) {
            let at = |value: &f64| levels[points.iter().position(|own| own == value).unwrap()] as f64 / grid as f64;
            let tried: Vec<f64> = x.iter().map(at).collect();
            assert!(loss(&fitted) <= loss(&tried) + 1e-12);
        }
        let Some(at) = levels.iter().position(|&level| level < grid) else { break };
        levels[at] += 1;
        levels[..at].fill(0);
    }
}

#[test]
fn intervals_hold_the_value_and_shrink() {
    let width = |n: usize| {
        let (network, surrogate, truth) = scores(n, 3, 0.4);
        let bootstrap = Bootstrap { draws: 200, seed: 3 };
        let found = faithfulness(network.view(), surrogate.view(), &truth, Some(&truth), bootstrap).unwrap();
        let ([low, high], tau) = (found.tau_interval.unwrap(), found.tau.unwrap());
        assert!(low < tau && tau < high, "{low} {tau} {high}");
        assert!(found.r2_interval.is_some() && found.tad_interval.is_some() && found.agreement_interval.is_some());
        high - low
    };
    assert!(width(1000) < 0.6 * width(100));
    let (network, surrogate, truth) = scores(80, 3, 0.4);
    let again = || faithfulness(network.view(), surrogate.view(), &truth, None, Bootstrap { draws: 60, seed: 4 });
    assert_eq!(again().unwrap(), again().unwrap());
}

#[test]
fn a_doubt_is_another_decision_or_a_gap_far_from_the_others() {
    let mut network =
        Array2::from_shape_fn((40, 2), |(at, class)| if class == 0 { 1.0 + at as f64 / 10.0 } else { 0.0 });
    let mut surrogate = network.clone();
    for (at, mut row) in surrogate.outer_iter_mut().enumerate() {
        row[0] += if at % 2 == 0 { 0.05 } else { -0.05 };
    }
    network[(7, 0)] += 5.0;
    surrogate[(9, 1)] = 50.0;
    let found = local_gaps(network.view(), surrogate.view(), &[0; 40], None).unwrap();
    assert_eq!(found[7].doubt, Some(Doubt::LargeGap));
    assert_eq!(found[9].doubt, Some(Doubt::OtherDecision));
    assert_eq!(found.iter().filter(|gap| gap.doubt.is_some()).count(), 2);
    // A surrogate that is exact is never doubtful.
    let found = local_gaps(network.view(), network.view(), &[0; 40], None).unwrap();
    assert!(found.iter().all(|gap| gap.doubt.is_none()));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (network, surrogate, truth) = scores(10, 3, 0.1);
    let odd = |what: &dyn Fn() -> Result<(), LensError>| assert!(what().is_err());
    odd(&|| faithfulness(network.view(), surrogate.view(), &truth[1..], None, NONE).map(|_| ()));
    odd(&|| faithfulness(network.view(), surrogate.view(), &[3; 10], None, NONE).map(|_| ()));
    odd(&|| faithfulness(network.view(), surrogate.view(), &truth, Some(&truth[1..]), NONE).map(|_| ()));
    odd(&|| faithfulness(network.view(), surrogate.slice(ndarray::s![.., ..2]), &truth, None, NONE).map(|_| ()));
    odd(&|| faithfulness(Array2::zeros((0, 3)).view(), Array2::zeros((0, 3)).view(), &[], None, NONE).map(|_| ()));
    odd(&|| log_odds(Array2::zeros((2, 1)).view(), &[0, 0]).map(|_| ()));
    let mut broken = network.clone();
    broken[(4, 1)] = f64::NAN;
    odd(&|| faithfulness(broken.view(), surrogate.view(), &truth, None, NONE).map(|_| ()));
    // One sample has an agreement, but no rank correlation.
    let one = network.slice(ndarray::s![..1, ..]);
    let found = faithfulness(one, one, &truth[..1], None, NONE).unwrap();
    assert_eq!((found.tau, found.r2, found.agreement), (None, None, 1.0));
}
