//! The penalty by cross-validation.

use super::{NORMS, Problem};
use mercer_data::Classes;
use mercer_learn::selection::stratified;
use mercer_learn::surrogate::{DualGlm, DualRows, PenaltyChoice, PenaltyNorm};
use mercer_learn::{LearnError, log_softmax};
use mercer_run::Context;
use ndarray::Axis;

const N: usize = 90;
const HOW: PenaltyChoice = PenaltyChoice { folds: 3, seed: 4, most_samples: 1000 };

/// Scores are those of fits by hand, without a path.
#[test]
fn scores_are_those_of_fits_by_hand() {
    let problem = Problem::new(N, 8, 3, "choice").softened();
    let labels = problem.targets.outer_iter().map(|row| (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap());
    let fold_of = stratified(&Classes::new(labels.collect(), 3).unwrap(), 3, 4).unwrap();
    for norm in NORMS {
        let settings = DualGlm::new(1.0, norm).unwrap();
        for rows in problem.both() {
            let penalties = [1.0, 0.01, 100.0];
            let chosen = HOW.choose(&penalties, &settings, rows, problem.targets.view(), &Context::new()).unwrap();
            assert_eq!(chosen.candidates.iter().map(|c| c.value).collect::<Vec<_>>(), [0.01, 1.0, 100.0]);
            for candidate in &chosen.candidates {
                let mut loss = 0.0;
                for fold in 0..3 {
                    let (held, kept): (Vec<usize>, Vec<usize>) = (0..N).partition(|&row| fold_of[row] == fold);
                    let share = kept.len() as f64 / N as f64;
                    let scale = if norm == PenaltyNorm::Weights { share * share } else { share };
                    let columns = problem.gram.select(Axis(1), &kept);
                    let (learnt, judged) = (columns.select(Axis(0), &kept), columns.select(Axis(0), &held));
                    let machine = DualGlm::new(candidate.value * scale, norm).unwrap();
                    let targets = problem.targets.select(Axis(0), &kept);
                    let machine = machine.fit(DualRows::Gram(learnt.view()), targets.view(), &Context::new()).unwrap();
                    let logs = log_softmax(machine.scores(judged.view()).unwrap().view());
                    loss -= (logs * problem.targets.select(Axis(0), &held)).sum();
                }
                let expected = loss / N as f64;
                assert!((candidate.score - expected).abs() < 1e-6, "{} {expected}", candidate.score);
            }
            let least = chosen.candidates.iter().min_by(|a, b| a.score.total_cmp(&b.score)).unwrap();
            assert_eq!(chosen.value, least.value);
        }
    }
}

/// A subset regularises as much as all samples: the scores of both are alike, and a penalty far off is worse.
#[test]
fn a_subset_stands_for_all() {
    let problem = Problem::new(600, 12, 3, "subset");
    let penalties = [1e-4, 1e-1, 1e2, 1e5];
    for norm in NORMS {
        let settings = DualGlm::new(1.0, norm).unwrap();
        let choose = |most_samples| {
            let how = PenaltyChoice { most_samples, ..HOW };
            how.choose(&penalties, &settings, problem.features(), problem.targets.view(), &Context::new()).unwrap()
        };
        let (all, some) = (choose(600), choose(200));
        assert_eq!(some, choose(200));
        for (a, b) in all.candidates.iter().zip(&some.candidates).skip(1) {
            assert!((a.score - b.score).abs() < 0.3 * a.score, "{norm}: {a:?} {b:?}");
        }
    }
}

#[test]
fn bad_penalties_are_refused() {
    let problem = Problem::new(30, 4, 3, "refused");
    let settings = DualGlm::new(1.0, PenaltyNorm::Function).unwrap();
    for penalties in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN]] {
        let chosen = HOW.choose(penalties, &settings, problem.gram(), problem.targets.view(), &Context::new());
        assert!(matches!(chosen, Err(LearnError::Setting { .. })), "{penalties:?}");
    }
}
