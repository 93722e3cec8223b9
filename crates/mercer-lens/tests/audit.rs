//! Audits of labels: opinions by hand, and planted mistakes.

mod common;

use common::{features, normals};
use mercer_lens::LensError;
use mercer_lens::audit::{
    Confidence, Opinion, Reason, Votes, confident_joint, conflicting_duplicates, leave_one_out,
    leave_one_out_residuals, measure, neighbour_disagreement, out_of_fold, review, review_curve,
};
use mercer_lens::duplicates::{exact, near};
use mercer_lens::neighbours::{Neighbour, largest};
use mercer_lens::ranks::{average_ranks, mean_of_ranks, spearman};
use ndarray::{Array2, array};

fn list(entries: &[(usize, f64)]) -> Vec<Neighbour> {
    entries.iter().map(|&(index, value)| Neighbour { index, value }).collect()
}

#[test]
fn neighbours_vote() {
    let labels = [0, 1, 1, 2];
    let lists = [
        list(&[(1, 0.9), (2, 0.5), (3, 0.1)]),
        list(&[(0, 0.6), (2, 0.3), (3, 0.1)]),
        list(&[(2, 1.0), (1, 0.4), (0, -0.5)]),
        list(&[(0, -1.0), (1, -2.0), (2, 0.0)]),
    ];
    let equal = neighbour_disagreement(&lists, &labels, 3, Votes::Equal).unwrap();
    assert_eq!(equal.scores, [1.0, 2.0 / 3.0, 0.5, 1.0]);
    assert_eq!(equal.suggested, [Some(1), Some(1), Some(1), Some(1)], "a tie keeps the label");
    assert_eq!(equal.reasons[0].as_ref().unwrap().to_string(), "2 of 3 nearest samples are of class 1");
    assert_eq!(equal.reasons[1], None);
    let weighted = neighbour_disagreement(&lists, &labels, 3, Votes::Weighted).unwrap();
    let expected = [1.0, 0.7, 0.0, 1.0];
    assert!(weighted.scores.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{weighted:?}");
    assert_eq!(weighted.suggested, [Some(1), Some(0), Some(1), Some(1)], "without positive values, votes are equal");
    let refused = |labels: &[usize], n_classes| neighbour_disagreement(&lists, labels, n_classes, Votes::Equal);
    assert!(matches!(refused(&labels, 2), Err(LensError::Label { row: 3, label: 2, n_classes: 2 })));
    assert!(matches!(refused(&labels[..3], 3), Err(LensError::Rows { .. })));
    assert!(matches!(
        neighbour_disagreement(&[list(&[(0, 1.0)])], &[0], 1, Votes::Equal),
        Err(LensError::TooFew { .. })
    ));
}

#[test]
fn probabilities_by_hand() {
    let p = array![[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.4, 0.4, 0.2]];
    let labels = [0, 1, 1];
    let close = |a: &[f64], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15);
    let own = out_of_fold(p.view(), &labels, Confidence::OfLabel).unwrap();
    assert!(close(&own.scores, [0.3, 0.7, 0.6]));
    assert_eq!(own.suggested, [Some(0), Some(2), Some(1)]);
    let text = own.reasons[1].as_ref().unwrap().to_string();
    assert_eq!(text, "out-of-fold probability of its label is 0.30, of class 2 0.60");
    let margin = out_of_fold(p.view(), &labels, Confidence::Margin).unwrap();
    assert!(close(&margin.scores, [-0.5, 0.3, 0.0]));
    let loo = leave_one_out(p.view(), &labels).unwrap();
    assert_eq!(loo.scores, margin.scores);
    let targets = array![[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
    let residuals = leave_one_out_residuals(p.view(), targets.view()).unwrap();
    assert!(close(&residuals.scores, [0.14f64.sqrt(), 0.86f64.sqrt(), 0.56f64.sqrt()]));

    let outside = array![[0.7, 1.3]];
    assert!(matches!(out_of_fold(outside.view(), &[0], Confidence::OfLabel), Err(LensError::Range { row: 0, .. })));
    assert!(matches!(out_of_fold(p.view(), &[0, 1, 3], Confidence::OfLabel), Err(LensError::Label { row: 2, .. })));
    assert!(matches!(leave_one_out(Array2::zeros((2, 1)).view(), &[0, 0]), Err(LensError::Setting { .. })));
}

/// Six samples. The thresholds are 0.7 (mean of 0.9, 0.8, 0.4) and 0.6 (mean of 0.9, 0.7, 0.2).
#[test]
fn the_confident_joint_by_hand() {
    let first = [0.9, 0.8, 0.4, 0.1, 0.3, 0.8];
    let p = Array2::from_shape_fn((6, 2), |(i, class)| if class == 0 { first[i] } else { 1.0 - first[i] });
    let found = confident_joint(p.view(), &[0, 0, 0, 1, 1, 1]).unwrap();
    assert!((found.thresholds[0].unwrap() - 0.7).abs() < 1e-15 && (found.thresholds[1].unwrap() - 0.6).abs() < 1e-15);
    // Sample 2 has 0.6 for class 1, which is its threshold up to rounding.
    assert_eq!(found.counts[1], [1, 2]);
    assert_eq!(found.counts[0][0], 2);
    assert_eq!(found.off_diagonal[5], Some(0));
    // Class 1 is rarely predicted, so a little of it is enough; the larger probability of class 0 is below its threshold.
    let rare = array![[0.98, 0.02], [0.96, 0.04], [0.55, 0.45], [0.7, 0.3], [0.65, 0.35]];
    let found = confident_joint(rare.view(), &[0, 0, 0, 1, 1]).unwrap();
    assert_eq!(found.off_diagonal, [None, None, Some(1), None, None]);
    assert_eq!(found.counts, [[2, 1], [0, 1]]);
    assert!((found.noise - 1.0 / 5.0).abs() < 1e-15, "one of three, of the three samples of class 0");
    let one = confident_joint(array![[1.0, 0.0], [1.0, 0.0]].view(), &[0, 0]).unwrap();
    assert_eq!((one.thresholds[1], one.noise), (None, 0.0));
}

/// With calibrated probabilities of well separated classes, the joint finds how many labels were changed.
#[test]
fn the_confident_joint_estimates_noise() {
    let n = 4000;
    let (noise, draws) = (features(n, 1, 21), features(n, 1, 22));
    let truth: Vec<usize> = (0..n).map(|i| i % 2).collect();
    let labels: Vec<usize> = (0..n).map(|i| if noise[[i, 0]] < -0.4 { 1 - truth[i] } else { truth[i] }).collect();
    let p = Array2::from_shape_fn((n, 2), |(i, class)| {
        let sure = 0.85 + 0.1 * draws[[i, 0]];
        if class == truth[i] { sure } else { 1.0 - sure }
    });
    let found = confident_joint(p.view(), &labels).unwrap();
    let wrong = labels.iter().zip(&truth).filter(|(a, b)| a != b).count() as f64 / n as f64;
    assert!((found.noise - wrong).abs() < 0.01, "{} {wrong}", found.noise);
}

#[test]
fn duplicates_with_other_labels() {
    let labels = [3, 0, 4, 3, 3, 1];
    let found = exact(&[7, 8, 7, 9, 7, 1], Some(&labels)).unwrap();
    let opinion = conflicting_duplicates(&found, &labels, 5).unwrap();
    assert_eq!(opinion.scores, [0.5, 0.0, 1.0, 0.0, 0.5, 0.0]);
    assert_eq!((opinion.suggested[2], opinion.suggested[1]), (Some(3), None));
    let text = opinion.reasons[2].as_ref().unwrap().to_string();
    assert_eq!(text, "exact duplicate of sample 0, which is labelled 3");
    assert_eq!((found.redundant(), found.conflicts().count()), (2, 1));
}

/// A chain: neighbouring samples are alike, the ends are not.
#[test]
fn near_duplicates_are_connected() {
    let lists = [list(&[(1, 0.995)]), list(&[(2, 0.992)]), list(&[(0, 0.9)]), list(&[(0, 0.2)]), vec![]];
    let found = near(&lists, 0.01, None, Some(&[0, 0, 1, 1, 1])).unwrap();
    assert_eq!(found.groups.len(), 1);
    assert_eq!((&found.groups[0].members[..], found.groups[0].conflict), (&[0, 1, 2][..], Some(true)));
    assert!(!found.groups[0].exact);
    let with_hashes = near(&lists, 0.006, Some(&[1, 1, 2, 3, 3]), None).unwrap();
    let members: Vec<_> = with_hashes.groups.iter().map(|group| (group.members.clone(), group.exact)).collect();
    assert_eq!(members, [(vec![0, 1], true), (vec![3, 4], true)]);
    assert!(matches!(near(&[list(&[(0, 1.5)])], 0.01, None, None), Err(LensError::Range { .. })));
    assert!(matches!(near(&lists, -0.1, None, None), Err(LensError::Setting { .. })));
    assert!(matches!(near(&lists, f64::NAN, None, None), Err(LensError::Setting { .. })));
    assert_eq!(exact(&[], None).unwrap().groups, []);
}

#[test]
fn ranks_are_their_definition() {
    let mut compared = 0;
    for (n, levels) in [(2, 1.0), (5, 2.0), (40, 5.0), (41, 1e9)] {
        let values = features(n, 2, n as u64).mapv(|x| (x * levels).round());
        let (a, b) = (values.column(0).to_vec(), values.column(1).to_vec());
        let rank = |values: &[f64], x: f64| {
            let count = |test: &dyn Fn(f64) -> bool| values.iter().filter(|value| test(**value)).count() as f64;
            1.0 + count(&|value| value < x) + (count(&|value| value == x) - 1.0) / 2.0
        };
        let slow = |values: &[f64]| values.iter().map(|&x| rank(values, x)).collect::<Vec<_>>();
        let (ra, rb) = (slow(&a), slow(&b));
        assert_eq!(average_ranks(&a).unwrap(), ra);
        let mean = |x: &[f64]| x.iter().sum::<f64>() / n as f64;
        let covariance = |x: &[f64], y: &[f64]| {
            let (mx, my) = (mean(x), mean(y));
            x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>()
        };
        let expected = covariance(&ra, &rb) / (covariance(&ra, &ra) * covariance(&rb, &rb)).sqrt();
        match spearman(&a, &b).unwrap() {
            Some(found) => {
                compared += 1;
                assert!((found - expected).abs() < 1e-14, "{n} {found} {expected}");
            }
            None => assert!(expected.is_nan()),
        }
    }
    assert!(compared >= 3);
    // Without ties, ρ = 1 − 6Σd²/(n(n² − 1)).
    assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[2.0, 1.0, 4.0, 3.0]).unwrap().unwrap() - 0.6).abs() < 1e-15);
    assert_eq!(average_ranks(&[0.0, -0.0]).unwrap(), [1.5, 1.5]);
    assert!(matches!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), Err(LensError::Algebra(_))));
    assert!(matches!(spearman(&[1.0], &[1.0, 2.0]), Err(LensError::Rows { .. })));
    assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]).unwrap(), None);
    for weights in [[0.0, 0.0], [1.0, -1.0], [1.0, f64::NAN]] {
        let scores = [1.0, 2.0];
        let refused = mean_of_ranks(&[(&scores, weights[0]), (&scores, weights[1])]);
        assert!(matches!(refused, Err(LensError::Setting { .. })), "{weights:?}");
    }
    assert!(matches!(mean_of_ranks(&[]), Err(LensError::TooFew { .. })));
}

#[test]
fn a_review_has_every_sample_once_with_reasons() {
    let labels = [0, 1, 1, 0];
    let p = array![[0.9, 0.1], [0.95, 0.05], [0.2, 0.8], [0.9, 0.1]];
    let likely = out_of_fold(p.view(), &labels, Confidence::OfLabel).unwrap();
    let copies = conflicting_duplicates(&exact(&[4, 5, 6, 5], None).unwrap(), &labels, 2).unwrap();
    let list = review(&labels, &[(&likely, 2.0), (&copies, 1.0)]).unwrap();
    let order: Vec<usize> = list.iter().map(|entry| entry.index).collect();
    // Ranks by probability: 1.5, 4, 3, 1.5; by copies: 1.5, 3.5, 1.5, 3.5.
    assert_eq!(order, [1, 2, 3, 0]);
    assert_eq!(list.iter().map(|entry| entry.rank).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!((list[0].suggested, list[0].label, list[0].reasons.len()), (Some(0), 1, 2));
    assert!((list[0].score - (1.0 - (0.125_f64.powi(2) * 0.25).cbrt())).abs() < 1e-12);
    assert!(matches!(list[0].reasons[0], Reason::Probability { .. }));
    assert!(list[1].reasons.is_empty());
    let json = serde_json::to_string(&list).unwrap();
    assert!(json.contains("\"kind\":\"duplicate\"") && !json.contains("null"), "{json}");
    assert!(matches!(review(&labels[..3], &[(&likely, 1.0)]), Err(LensError::Rows { .. })));
    assert!(matches!(review(&[], &[]), Err(LensError::TooFew { .. })));
    // The opinion that finds the sample more suspicious decides.
    let opinion = |scores: [f64; 2], class| Opinion {
        scores: scores.to_vec(),
        suggested: vec![Some(class); 2],
        reasons: vec![None; 2],
    };
    let (mild, strong) = (opinion([0.1, 0.9], 0), opinion([0.9, 0.1], 1));
    let list = review(&[2, 2], &[(&mild, 1.0), (&strong, 1.0)]).unwrap();
    assert_eq!((list[0].suggested, list[1].suggested), (Some(1), Some(0)));
    let weighted = review(&[2, 2], &[(&mild, 4.0), (&strong, 1.0)]).unwrap();
    assert_eq!((weighted[0].index, weighted[0].suggested, weighted[1].suggested), (1, Some(0), Some(0)));
    // Equal scores: by index.
    let flat = Opinion::from_scores("nothing", vec![1.0; 4]).unwrap();
    let order: Vec<usize> = review(&labels, &[(&flat, 1.0)]).unwrap().iter().map(|entry| entry.index).collect();
    assert_eq!((order, flat.reasons.iter().flatten().count()), (vec![0, 1, 2, 3], 0));
}

#[test]
fn the_highest_scores_are_reasons() {
    let scores: Vec<f64> = (0..100).map(f64::from).collect();
    let found = Opinion::from_scores("self-influence", scores).unwrap();
    assert_eq!(found.reasons.iter().flatten().count(), 5);
    assert_eq!(found.reasons[99].as_ref().unwrap().to_string(), "self-influence is 99.000, number 1 of 100");
    assert_eq!(found.reasons[94], None);
}

#[test]
fn measures_by_hand() {
    let scores = [0.9, 0.8, 0.7, 0.6, 0.5];
    let wrong = [true, false, true, false, false];
    let found = measure(&scores, &wrong, &[0.0, 0.2, 0.5, 1.0]).unwrap();
    assert!(
        (found.auroc.unwrap() - 5.0 / 6.0).abs() < 1e-15
            && (found.aupr.unwrap() - (1.0 + 2.0 / 3.0) / 2.0).abs() < 1e-15
    );
    assert_eq!(found.tpr_at_1_percent_fpr, Some(0.5));
    let counts: Vec<_> = found.budgets.iter().map(|at| (at.inspected, at.found, at.precision, at.recall)).collect();
    assert_eq!(counts[0], (0, 0.0, None, Some(0.0)));
    assert_eq!(counts[1], (1, 1.0, Some(1.0), Some(0.5)));
    assert_eq!(counts[2], (3, 2.0, Some(2.0 / 3.0), Some(1.0)));
    assert_eq!(counts[3], (5, 2.0, Some(0.4), Some(1.0)));
    let curve = review_curve(&scores, &wrong, 100).unwrap();
    assert_eq!(curve.iter().map(|at| at.found).collect::<Vec<_>>(), [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    let short = review_curve(&scores, &wrong, 2).unwrap();
    assert_eq!(short.iter().map(|at| at.inspected).collect::<Vec<_>>(), [0, 2, 5]);
    let none = measure(&scores, &[false; 5], &[0.5]).unwrap();
    assert_eq!((none.auroc, none.aupr, none.tpr_at_1_percent_fpr, none.budgets[0].recall), (None, None, None, None));
    let first = measure(&[0.9, 0.8, 0.7, 0.6], &[true, true, false, true], &[]).unwrap();
    assert_eq!(first.tpr_at_1_percent_fpr, Some(2.0 / 3.0));
    // Ties with right labels cannot be had at 1 % false positives.
    assert_eq!(measure(&[1.0; 4], &[true, false, true, false], &[]).unwrap().tpr_at_1_percent_fpr, Some(0.0));
    assert!(matches!(measure(&scores, &wrong, &[1.5]), Err(LensError::Setting { .. })));
    assert!(matches!(measure(&scores, &wrong[..2], &[]), Err(LensError::Rows { .. })));
    // A score that says nothing finds as much as chance, wherever the wrong labels are.
    let nothing = measure(&[0.0; 10], &std::array::from_fn::<bool, 10, _>(|row| row < 2), &[0.1, 0.5]).unwrap();
    assert_eq!(nothing.budgets.iter().map(|at| at.recall.unwrap()).collect::<Vec<_>>(), [0.1, 0.5]);
    assert_eq!(nothing.budgets[1].precision, Some(0.2));
    // 7 % of 100 samples are 7, although the product is above 7.
    let many: Vec<f64> = (0..100).map(f64::from).collect();
    assert_eq!(measure(&many, &[true; 100], &[0.07]).unwrap().budgets[0].inspected, 7);
}

/// Two well separated classes with one label in ten changed.
#[test]
fn planted_mistakes_come_first() {
    let n = 200;
    let truth: Vec<usize> = (0..n).map(|i| i % 2).collect();
    let mut x = normals(n, 5, 9);
    (0..n).for_each(|i| x[[i, 0]] += if truth[i] == 0 { 6.0 } else { -6.0 });
    let labels: Vec<usize> = (0..n).map(|i| if i % 10 == 3 { 1 - truth[i] } else { truth[i] }).collect();
    let wrong: Vec<bool> = labels.iter().zip(&truth).map(|(a, b)| a != b).collect();
    let lists = largest(x.dot(&x.t()).view(), 9, Some(0)).unwrap();
    for votes in [Votes::Equal, Votes::Weighted] {
        let opinion = neighbour_disagreement(&lists, &labels, 2, votes).unwrap();
        let found = measure(&opinion.scores, &wrong, &[0.1]).unwrap();
        assert!(found.auroc.unwrap() > 0.999 && found.budgets[0].recall.unwrap() > 0.95, "{found:?}");
        let list = review(&labels, &[(&opinion, 1.0)]).unwrap();
        let suggested_truth = list.iter().take(20).filter(|entry| entry.suggested == Some(truth[entry.index])).count();
        assert!(suggested_truth >= 19, "{suggested_truth}");
    }
}
