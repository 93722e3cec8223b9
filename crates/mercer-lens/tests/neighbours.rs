//! The largest kernel values, against a full sort, and known poison.

mod common;

use common::{features, gram};
use mercer_lens::LensError;
use mercer_lens::forensics::{Rule, Verdict, evaluate, trace};
use mercer_lens::neighbours::{Neighbour, TopK, largest};
use ndarray::{Array2, array, s};

fn by_sorting(rows: &Array2<f64>, k: usize, exclude_self: Option<usize>) -> Vec<Vec<Neighbour>> {
    let of_row = |(row, values): (usize, ndarray::ArrayView1<'_, f64>)| {
        let mut all: Vec<Neighbour> =
            values.iter().enumerate().map(|(index, &value)| Neighbour { index, value }).collect();
        all.retain(|neighbour| exclude_self.is_none_or(|offset| neighbour.index != offset + row));
        all.sort_by(|a, b| b.value.partial_cmp(&a.value).unwrap().then(a.index.cmp(&b.index)));
        all.truncate(k);
        all
    };
    rows.outer_iter().enumerate().map(of_row).collect()
}

/// Few different values, so that there are many ties.
#[test]
fn the_largest_are_those_of_a_full_sort() {
    for levels in [1.0, 3.0, 1e9] {
        let rows = features(20, 37, 1).mapv(|x| (x * levels).round());
        for k in [1, 2, 5, 36, 37, 100] {
            for exclude in [None, Some(0), Some(17), Some(30)] {
                assert_eq!(largest(rows.view(), k, exclude).unwrap(), by_sorting(&rows, k, exclude), "{levels} {k}");
            }
        }
    }
}

#[test]
fn strips_in_any_order_give_the_same() {
    let rows = features(9, 40, 2).mapv(|x| (x * 4.0).round());
    let expected = largest(rows.view(), 6, Some(3)).unwrap();
    let strips = [(0, 7), (7, 8), (8, 25), (25, 25), (25, 40)];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let mut top = TopK::new(9, 6, Some(3)).unwrap();
        order.iter().for_each(|&at| top.add(strips[at].0, rows.slice(s![.., strips[at].0..strips[at].1])).unwrap());
        assert_eq!(top.finish(), expected, "{order:?}");
    }
    let single = rows.mapv(|x| x as f32);
    assert_eq!(largest(single.view(), 6, Some(3)).unwrap(), expected, "these numbers are exact in single precision");
}

#[test]
fn strips_that_do_not_fit_are_refused() {
    let rows = features(3, 10, 3);
    let mut top = TopK::new(3, 2, None).unwrap();
    top.add(4, rows.slice(s![.., 4..8])).unwrap();
    for (first, end) in [(0, 5), (4, 8), (5, 6), (7, 10), (0, 10)] {
        assert!(matches!(top.add(first, rows.slice(s![.., first..end])), Err(LensError::Setting { .. })), "{first}");
    }
    top.add(8, rows.slice(s![.., 8..])).unwrap();
    assert!(matches!(top.add(0, features(2, 2, 1).view()), Err(LensError::Rows { expected: 3, found: 2, .. })));
    assert!(matches!(TopK::new(3, 0, None), Err(LensError::Setting { .. })));
    assert!(matches!(largest(array![[1.0, f64::NAN]].view(), 1, None), Err(LensError::Algebra(_))));
    assert!(matches!(largest(Array2::<f64>::zeros((2, 0)).view(), 1, None), Err(LensError::TooFew { .. })));
    assert_eq!(largest(array![[1.0]].view(), 1, Some(0)).unwrap(), [vec![]], "a sample alone has no neighbours");
}

/// Poison shares one direction that clean samples do not have. The kernel is normalised: otherwise, the long vectors of
/// poisoned samples would be neighbours of half of the clean ones.
#[test]
fn planted_poison_is_traced() {
    let poisoned: Vec<bool> = (0..60).map(|i| i % 10 == 0).collect();
    let truth: Vec<bool> = (0..40).map(|i| i % 2 == 0).collect();
    let samples = |seed, poisoned: &[bool]| {
        let mut x = features(poisoned.len(), 6, seed);
        for (mut row, &poisoned) in x.outer_iter_mut().zip(poisoned) {
            row[0] = if poisoned { 3.0 } else { 0.0 };
            row /= row.dot(&row).sqrt();
        }
        x
    };
    let kernel = samples(5, &truth).dot(&samples(4, &poisoned).t());
    let verdicts = trace(&largest(kernel.view(), 5, None).unwrap(), &poisoned, Rule::default()).unwrap();
    let found = evaluate(&verdicts, &truth).unwrap();
    assert_eq!((found.precision, found.recall, found.f1), (Some(1.0), Some(1.0), Some(1.0)), "{found:?}");
    assert_eq!((found.false_positive_rate, found.auroc), (Some(0.0), Some(1.0)), "{found:?}");
}

#[test]
fn detection_by_hand() {
    let verdict = |count| Verdict { count, flagged: count >= 3 };
    let verdicts = [5, 3, 4, 1, 0, 2].map(verdict);
    let found = evaluate(&verdicts, &[true, true, false, true, false, false]).unwrap();
    assert_eq!((found.precision, found.recall, found.f1), (Some(2.0 / 3.0), Some(2.0 / 3.0), Some(2.0 / 3.0)));
    assert_eq!((found.false_positive_rate, found.auroc), (Some(1.0 / 3.0), Some(6.0 / 9.0)));
    let clean = evaluate(&[verdict(0), verdict(1)], &[false, false]).unwrap();
    assert_eq!((clean.precision, clean.recall, clean.f1, clean.auroc), (None, None, None, None));
    assert_eq!(clean.false_positive_rate, Some(0.0));
    assert!(matches!(evaluate(&[], &[]), Err(LensError::TooFew { .. })));
    assert!(matches!(evaluate(&verdicts, &[true]), Err(LensError::Rows { .. })));
}

#[test]
fn a_verdict_by_hand() {
    let list = |indices: &[usize]| indices.iter().map(|&index| Neighbour { index, value: 1.0 }).collect::<Vec<_>>();
    let poisoned = [true, true, true, false, false, false, true];
    let lists = [list(&[0, 3, 1, 4, 2, 6]), list(&[0, 3, 1, 4, 5, 6]), list(&[3, 4, 5, 3, 4, 0])];
    let found = trace(&lists, &poisoned, Rule::default()).unwrap();
    assert_eq!(found.iter().map(|verdict| verdict.count).collect::<Vec<_>>(), [3, 2, 0], "of the first five");
    assert_eq!(found.iter().map(|verdict| verdict.flagged).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn rules_and_lists_that_cannot_be_used() {
    let kernel = gram(&features(4, 2, 6));
    let lists = largest(kernel.view(), 3, Some(0)).unwrap();
    let poisoned = [true, false, true, false];
    for rule in [Rule { k: 3, threshold: 0 }, Rule { k: 3, threshold: 4 }, Rule { k: 0, threshold: 0 }] {
        assert!(matches!(trace(&lists, &poisoned, rule), Err(LensError::Setting { .. })));
    }
    assert!(matches!(trace(&lists, &poisoned, Rule::default()), Err(LensError::TooFew { least: 5, found: 3, .. })));
    let rule = Rule { k: 3, threshold: 2 };
    assert!(matches!(trace(&lists, &poisoned[..2], rule), Err(LensError::Index { size: 2, .. })));
}
