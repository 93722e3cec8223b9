//! Ridge regression in dual form, and without some of its samples.

use super::{Problem, apart, size};
use crate::machines::sets::{rows, targets};
use mercer_learn::regression::Ridge;
use mercer_learn::surrogate::{DualMachine, DualRidge, DualRows, Influence, RidgeInfluence};
use mercer_learn::{Fit, LearnError, Predict, SampleRows};
use mercer_run::Context;
use ndarray::{Array2, Axis};

const N: usize = 40;

fn settings(penalty: f64, centred: bool) -> DualRidge {
    let ridge = DualRidge::new(penalty).unwrap();
    if centred { ridge.centred() } else { ridge }
}

/// Fits without a group; scores of all samples.
fn refit(problem: &Problem, y: &Array2<f64>, ridge: &DualRidge, group: &[usize]) -> Array2<f64> {
    let kept: Vec<usize> = (0..N).filter(|row| !group.contains(row)).collect();
    let gram = problem.gram.select(Axis(0), &kept).select(Axis(1), &kept);
    let targets = y.select(Axis(0), &kept);
    let machine = ridge.fit(DualRows::Gram(gram.view()), targets.view(), &Context::new()).unwrap();
    machine.scores(problem.gram.select(Axis(1), &kept).view()).unwrap()
}

fn each(mut work: impl FnMut(&Problem, &Array2<f64>, &DualRidge, DualRows<'_>)) {
    let problem = Problem::new(N, 9, 3, "ridge");
    let y = targets(rows(N, 2, "ridge").view()) + 3.0;
    for centred in [false, true] {
        for penalty in [1e-2, 0.5, 30.0] {
            for rows in problem.both() {
                work(&problem, &y, &settings(penalty, centred), rows);
            }
        }
    }
}

#[test]
fn it_is_the_machine_of_ridge() {
    let problem = Problem::new(N, 9, 3, "ridge");
    let y = targets(rows(N, 2, "ridge").view());
    for rows in problem.both() {
        let dual = settings(0.3, true).fit(rows, y.view(), &Context::new()).unwrap();
        let samples = SampleRows::Gram(problem.gram.view());
        let other = Ridge::new(0.3).unwrap().centred().fit(&samples, &y).unwrap();
        let scores = dual.scores(problem.gram.view()).unwrap();
        assert!(apart(&scores, &other.predict(&samples).unwrap()) < 1e-10);
        assert!(apart(other.weights(), dual.weights()) < 1e-9);
    }
}

/// Every effect on every sample, by as many refits as there are samples.
#[test]
fn leaving_one_out_is_a_refit() {
    each(|problem, y, ridge, rows| {
        let influence = RidgeInfluence::new(ridge, rows, y.view(), &Context::new()).unwrap();
        let full = ridge.fit(rows, y.view(), &Context::new()).unwrap().scores(problem.gram.view()).unwrap();
        let effects = [0, 1].map(|target| influence.effects(&rows, target, &Context::new()).unwrap());
        for i in 0..N {
            let change = refit(problem, y, ridge, &[i]) - &full;
            for (target, effects) in effects.iter().enumerate() {
                let wrong = &effects.column(i) - &change.column(target);
                assert!(wrong.iter().all(|d| d.abs() < 1e-8), "{wrong}");
                assert!((influence.own()[(i, target)] - change[(i, target)]).abs() < 1e-8);
                let predicted = full[(i, target)] + change[(i, target)];
                assert!((influence.predictions()[(i, target)] - predicted).abs() < 1e-8);
            }
        }
        let own = influence.self_influence(&[1; N]).unwrap();
        assert_eq!(own, influence.own().column(1));
    });
}

#[test]
fn leaving_a_group_out_is_a_refit() {
    each(|problem, y, ridge, rows| {
        let influence = RidgeInfluence::new(ridge, rows, y.view(), &Context::new()).unwrap();
        for group in [vec![7], vec![3, 11, 12, 30], (0..25).collect::<Vec<usize>>()] {
            let machine: DualMachine = influence.leave_out(&group).unwrap();
            let expected = refit(problem, y, ridge, &group);
            assert!(apart(&machine.scores(problem.gram.view()).unwrap(), &expected) < 1e-8 * size(&expected).max(1.0));
            assert!(group.iter().all(|&row| machine.weights().row(row).iter().all(|w| *w == 0.0)));
        }
    });
}

/// The penalty with the least error of refits.
#[test]
fn the_penalty_of_least_leave_one_out_error() {
    let problem = Problem::new(N, 9, 3, "ridge");
    let y = targets(rows(N, 2, "ridge").view());
    let penalties = [10.0, 1e-3, 0.1, 1.0];
    for centred in [false, true] {
        for rows in problem.both() {
            let chosen = settings(1.0, centred).choose(&penalties, rows, y.view(), &Context::new()).unwrap();
            for candidate in &chosen.candidates {
                let ridge = settings(candidate.value, centred);
                let error = |i: usize| {
                    let scores = refit(&problem, &y, &ridge, &[i]);
                    (&scores.row(i) - &y.row(i)).mapv(|e| e * e).sum()
                };
                let expected = (0..N).map(error).sum::<f64>() / (2 * N) as f64;
                assert!((candidate.score - expected).abs() < 1e-8 * expected.max(1.0));
            }
            let least = chosen.candidates.iter().min_by(|a, b| a.score.total_cmp(&b.score)).unwrap();
            assert_eq!(chosen.value, least.value);
        }
    }
}

#[test]
fn what_cannot_be_removed_is_refused() {
    let one = Array2::ones((1, 1));
    let rows = DualRows::Gram(one.view());
    let context = Context::new();
    assert!(RidgeInfluence::new(&settings(1.0, true), rows, one.view(), &context).is_err());
    let influence = RidgeInfluence::new(&settings(1.0, false), rows, one.view(), &context).unwrap();
    // Without its only sample the machine is zero.
    assert!((influence.effects(&rows, 0, &context).unwrap()[(0, 0)] + 0.5).abs() < 1e-12);
    assert!((influence.leave_out(&[0]).unwrap().weights()[(0, 0)]).abs() < 1e-12);
    assert!(matches!(influence.leave_out(&[1]), Err(LearnError::Setting { .. })));
    assert!(matches!(influence.leave_out(&[]), Err(LearnError::Setting { .. })));
    assert!(matches!(influence.effects(&rows, 1, &context), Err(LearnError::Setting { .. })));
    assert!(influence.self_influence(&[0, 0]).is_err());
}
