//! The multinomial model without some of its samples, against refits from scratch.

use super::{NORMS, Problem, apart, size};
use mercer_learn::LearnError;
use mercer_learn::surrogate::{DualGlm, DualMachine, DualRows, GlmInfluence, Influence, PenaltyNorm, Removal};
use mercer_run::Context;
use ndarray::{Array2, Axis, s};

const N: usize = 200;
const CLASSES: usize = 3;

fn glm(penalty: f64, norm: PenaltyNorm) -> DualGlm {
    DualGlm::new(penalty, norm).unwrap().until(1e-11, 100).unwrap()
}

fn problem() -> Problem {
    Problem::new(N, 25, CLASSES, "influence")
}

/// Fits the others from scratch, with the norm of the function; scores of all samples.
fn refit(problem: &Problem, settings: &DualGlm, group: &[usize]) -> Array2<f64> {
    let kept: Vec<usize> = (0..N).filter(|row| !group.contains(row)).collect();
    let gram = problem.gram.select(Axis(0), &kept).select(Axis(1), &kept);
    let targets = problem.targets.select(Axis(0), &kept);
    let machine = settings.fit(DualRows::Gram(gram.view()), targets.view(), &Context::new()).unwrap();
    machine.scores(problem.gram.select(Axis(1), &kept).view()).unwrap()
}

fn fitted(problem: &Problem, settings: &DualGlm, rows: DualRows<'_>) -> DualMachine {
    settings.fit(rows, problem.targets.view(), &Context::new()).unwrap()
}

/// Refitted from the full model, the result is that of a fit from scratch.
#[test]
fn removal_is_a_refit() {
    let problem = problem();
    let settings = glm(0.5, PenaltyNorm::Function);
    for rows in problem.both() {
        let machine = fitted(&problem, &settings, rows);
        let removal = Removal::new(&settings, rows, problem.targets.view(), &machine, &Context::new()).unwrap();
        for group in [vec![5], vec![1, 2, 90, 91], (0..80).collect::<Vec<usize>>()] {
            let left = removal.leave_out(&group, &Context::new()).unwrap();
            assert!(left.solved().converged);
            let expected = refit(&problem, &settings, &group);
            assert!(apart(&left.scores(problem.gram.view()).unwrap(), &expected) < 1e-6);
            assert!(group.iter().all(|&row| left.weights().row(row).iter().all(|w| w.abs() < 1e-9)));
        }
    }
}

/// With the norm of the weights the loss goes and the function stays: the gradient without the sample vanishes.
#[test]
fn removal_with_the_norm_of_the_weights_is_stationary() {
    let problem = problem();
    let settings = glm(0.5, PenaltyNorm::Weights);
    for rows in problem.both() {
        let machine = fitted(&problem, &settings, rows);
        let given = DualMachine::new(
            machine.weights().clone(),
            machine.bias().clone(),
            machine.solved(),
            machine.penalty(),
            machine.norm(),
        );
        for machine in [machine, given.unwrap()] {
            let removal = Removal::new(&settings, rows, problem.targets.view(), &machine, &Context::new()).unwrap();
            let left = removal.leave_out(&[4, 17], &Context::new()).unwrap();
            let shares = mercer_learn::softmax(left.scores(problem.gram.view()).unwrap().view());
            let mut residual = shares - &problem.targets;
            [4, 17].iter().for_each(|&row| residual.row_mut(row).fill(0.0));
            let gradient = problem.gram.dot(&residual) + left.weights() * 0.5;
            assert!(size(&gradient) < 1e-6, "{}", size(&gradient));
        }
    }
}

/// All effects at once are the Newton steps of removals one by one: two algorithms for the same numbers.
#[test]
fn effects_are_newton_steps() {
    let problem = problem().softened();
    let queries = Problem::new(20, 25, CLASSES, "queries of influence");
    for norm in NORMS {
        let settings = glm(0.5, norm).balanced();
        for rows in problem.both() {
            let machine = fitted(&problem, &settings, rows);
            let context = Context::new();
            let influence = GlmInfluence::new(&settings, rows, problem.targets.view(), &machine, &context).unwrap();
            let removal = Removal::new(&settings, rows, problem.targets.view(), &machine, &context).unwrap();
            let kernel = problem.features().kernel_rows(&queries.features()).unwrap().into_owned();
            let asked = match rows {
                DualRows::Gram(_) => DualRows::Gram(kernel.view()),
                _ => queries.features(),
            };
            let before = machine.scores(kernel.view()).unwrap();
            let effects: Vec<_> =
                (0..CLASSES).map(|class| influence.effects(&asked, class, &context).unwrap()).collect();
            for i in [0, 33, 77, 150] {
                let stepped = removal.one_step(&[i], &context).unwrap();
                let change = stepped.scores(kernel.view()).unwrap() - &before;
                let scale = size(&change);
                for (class, effects) in effects.iter().enumerate() {
                    let wrong = &effects.column(i) - &change.column(class);
                    assert!(wrong.iter().all(|d| d.abs() < 1e-5 * scale), "{norm} {i} {class}: {scale} {wrong}");
                }
                let own = stepped.scores(problem.gram.slice(s![i..=i, ..])).unwrap()
                    - machine.scores(problem.gram.slice(s![i..=i, ..])).unwrap();
                let found = influence.own().row(i).to_owned().insert_axis(Axis(0));
                assert!(apart(&own, &found) < 1e-5 * size(&own));
            }
        }
    }
}

/// One step comes within a hundredth of the refit.
#[test]
fn one_step_is_nearly_a_refit() {
    let problem = problem();
    // The largest eigenvalue of the kernel is a few hundred.
    let settings = glm(100.0, PenaltyNorm::Function);
    let machine = fitted(&problem, &settings, problem.gram());
    let context = Context::new();
    let influence = GlmInfluence::new(&settings, problem.gram(), problem.targets.view(), &machine, &context).unwrap();
    let before = machine.scores(problem.gram.view()).unwrap();
    let effects: Vec<_> =
        (0..CLASSES).map(|class| influence.effects(&problem.gram(), class, &context).unwrap()).collect();
    let (mut wrong, mut all) = (0.0, 0.0);
    for i in (0..N).step_by(5) {
        let change = refit(&problem, &settings, &[i]) - &before;
        for (class, effects) in effects.iter().enumerate() {
            for (found, expected) in effects.column(i).iter().zip(change.column(class)) {
                wrong += (found - expected).powi(2);
                all += expected.powi(2);
            }
        }
    }
    assert!(wrong.sqrt() < 0.01 * f64::sqrt(all), "{}", (wrong / all).sqrt());
    // A sample that is left out loses score in its own class.
    let own: Vec<usize> = (0..N).map(|i| (0..CLASSES).find(|&c| problem.targets[(i, c)] == 1.0).unwrap()).collect();
    assert!(influence.self_influence(&own).unwrap().iter().all(|change| *change < 0.0));
}

#[test]
fn a_class_cannot_lose_all_its_samples() {
    let problem = problem();
    let settings = glm(1.0, PenaltyNorm::Function);
    let machine = fitted(&problem, &settings, problem.gram());
    let context = Context::new();
    let removal = Removal::new(&settings, problem.gram(), problem.targets.view(), &machine, &context).unwrap();
    let group: Vec<usize> = (0..N).filter(|&i| problem.targets[(i, 1)] == 1.0).collect();
    assert!(matches!(removal.leave_out(&group, &context), Err(LearnError::TooFew { count: 0, .. })));
    assert!(matches!(removal.one_step(&[N], &context), Err(LearnError::Setting { .. })));
    let all: Vec<usize> = (0..N).collect();
    assert!(matches!(removal.leave_out(&all, &context), Err(LearnError::Empty { .. })));
    let small = context.with_memory(1 << 20);
    let refused = GlmInfluence::new(&settings, problem.gram(), problem.targets.view(), &machine, &small);
    assert!(matches!(refused, Err(LearnError::Setting { .. })));
}
