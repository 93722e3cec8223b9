//! Probes against machines that know nothing of components, and against refits.

mod common;

use common::normals;
use mercer_data::Classes;
use mercer_learn::classification::{NearestCentre, NearestNeighbours, Svm};
use mercer_learn::{Classify, Fit, SampleRows};
use mercer_lens::probe::{
    Components, ProbeSettings, Probed, Split, Standardiser, agreement, curves, dimensions, linear_probe,
};
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis, s};

struct Layer {
    train: Array2<f64>,
    labels: Vec<usize>,
    test: Array2<f64>,
    test_labels: Vec<usize>,
}

/// Classes that lie around different points, in `width` units of which the last is dead.
fn layer(n_train: usize, n_test: usize, width: usize) -> Layer {
    let centres = normals(3, width, 4);
    let draw = |n: usize, seed: u64| {
        let labels: Vec<usize> = (0..n).map(|i| i * 5 % 3).collect();
        let mut x = normals(n, width, seed);
        for (mut row, &label) in x.outer_iter_mut().zip(&labels) {
            row += &(0.8 * &centres.row(label));
            row[width - 1] = 2.5;
        }
        (x, labels)
    };
    let ((train, labels), (test, test_labels)) = (draw(n_train, 7), draw(n_test, 8));
    Layer { train, labels, test, test_labels }
}

/// Standardised by hand.
fn standardised(layer: &Layer) -> (Array2<f64>, Array2<f64>) {
    let live = layer.train.ncols() - 1;
    let (train, test) = (layer.train.slice(s![.., ..live]).to_owned(), layer.test.slice(s![.., ..live]).to_owned());
    let mean = train.mean_axis(Axis(0)).unwrap();
    let deviation = (&train - &mean).mapv(|x| x * x).mean_axis(Axis(0)).unwrap().mapv(f64::sqrt);
    ((&train - &mean) / &deviation, (&test - &mean) / &deviation)
}

fn components(layer: &Layer) -> (Components, Array2<f64>) {
    let standardiser = Standardiser::fit(layer.train.view()).unwrap();
    let fitted = Components::fit(layer.train.view(), standardiser).unwrap();
    let test = fitted.project(layer.test.view(), layer.train.view()).unwrap();
    (fitted, test)
}

#[test]
fn all_components_keep_distances_and_the_dead_unit_is_dropped() {
    // More samples than units, and fewer: from units, and from samples.
    for (n, width) in [(60, 9), (20, 41)] {
        let layer = layer(n, 12, width);
        let (fitted, test) = components(&layer);
        let (by_hand, test_by_hand) = standardised(&layer);
        assert_eq!((fitted.n_dead(), fitted.count()), (1, (width - 1).min(n - 1)));
        let close = |a: Array2<f64>, b: Array2<f64>| {
            (a - b).iter().for_each(|x| assert!(x.abs() < 1e-9, "{x}"));
        };
        close(fitted.coordinates().dot(&fitted.coordinates().t()), by_hand.dot(&by_hand.t()));
        close(test.dot(&fitted.coordinates().t()), test_by_hand.dot(&by_hand.t()));
        let total: f64 = fitted.variances().iter().sum();
        assert!((total - (width - 1) as f64).abs() < 1e-9);
        assert!((fitted.explained(fitted.count()) - 1.0).abs() < 1e-12);
        let needed = fitted.needed(0.9);
        assert!(fitted.explained(needed) >= 0.9 && fitted.explained(needed - 1) < 0.9);
        // Components are uncorrelated.
        let products = fitted.coordinates().t().dot(&fitted.coordinates());
        for ((i, j), value) in products.indexed_iter() {
            assert!(i == j || value.abs() < 1e-8, "{i} {j} {value}");
        }
    }
}

#[test]
fn classifiers_agree_with_machines_that_see_the_same_components() {
    let layer = layer(75, 40, 9);
    let (fitted, test) = components(&layer);
    let grid = dimensions(fitted.count());
    let split = Split {
        train: fitted.coordinates(),
        labels: &layer.labels,
        test: test.view(),
        test_labels: &layer.test_labels,
        n_classes: 3,
    };
    let settings = ProbeSettings { neighbours: 10, cost: Some(1.0) };
    let context = Context::new();
    let found = curves(&split, &grid, &settings, &context).unwrap();
    assert_eq!((found.dimensions.clone(), found.n_unconverged), ((1..=8).collect(), 0));
    let classes = Classes::new(layer.labels.clone(), 3).unwrap();
    for (at, &d) in grid.iter().enumerate() {
        let (train, new) = (fitted.coordinates().slice(s![.., ..d]).to_owned(), test.slice(s![.., ..d]).to_owned());
        let scale = train.iter().map(|x| x * x).sum::<f64>() / 75.0;
        let (rows, new) = (SampleRows::Features(train.view()), SampleRows::Features(new.view()));
        let accuracy = |decisions: Array2<f64>| {
            let right = |(row, &label): (ndarray::ArrayView1<'_, f64>, &usize)| {
                let best = (0..3).fold(0, |best, class| if row[class] > row[best] { class } else { best });
                usize::from(best == label)
            };
            decisions.outer_iter().zip(&layer.test_labels).map(right).sum::<usize>() as f64 / 40.0
        };
        let nearest = NearestNeighbours::new(10).unwrap().fit(&rows, &classes).unwrap();
        assert_eq!(found.neighbours[at], accuracy(nearest.probabilities(&new).unwrap()), "{d} neighbours");
        let centre = NearestCentre.fit(&rows, &classes).unwrap();
        assert_eq!(found.centre[at], accuracy(centre.probabilities(&new).unwrap()), "{d} centre");
        let svm = Svm::new(1.0 / scale).unwrap().fit(&rows, &classes).unwrap();
        // Both stop at a tolerance: one sample in forty may differ.
        let own = accuracy(mercer_learn::Predict::predict(&svm, &new).unwrap());
        assert!((found.svm[at] - own).abs() < 0.026, "{d} svm {} {own}", found.svm[at]);
    }
    let (best, d90) = (found.best().unwrap(), found.d90().unwrap());
    let at = found.dimensions.iter().position(|&d| d == d90.centre).unwrap();
    assert!(found.centre[at] >= 0.9 * best.centre && found.centre[..at].iter().all(|&a| a < 0.9 * best.centre));
}

#[test]
fn the_linear_probe_is_ridge_regression_and_leaves_samples_out_exactly() {
    let layer = layer(40, 30, 9);
    let (fitted, test) = components(&layer);
    let train = fitted.coordinates();
    let split =
        Split { train, labels: &layer.labels, test: test.view(), test_labels: &layer.test_labels, n_classes: 3 };
    let found = linear_probe(&split, 0).unwrap();
    let largest = train.map_axis(Axis(0), |column| column.dot(&column)).iter().copied().fold(0.0, f64::max);
    let penalty = found.penalty * largest;
    // Refits without each sample, by normal equations with a bias column that is not penalised.
    let decide = |rows: &[usize], x: ndarray::ArrayView1<'_, f64>| {
        let d = train.ncols();
        let a = Array2::from_shape_fn((rows.len(), d + 1), |(i, j)| if j < d { train[(rows[i], j)] } else { 1.0 });
        let y = Array2::from_shape_fn((rows.len(), 3), |(i, c)| f64::from(layer.labels[rows[i]] == c));
        let mut normal = a.t().dot(&a);
        (0..d).for_each(|j| normal[(j, j)] += penalty);
        let weights = mercer_linalg::cholesky(normal.view()).unwrap().solve(a.t().dot(&y).view()).unwrap();
        let row = Array1::from_iter(x.iter().copied().chain([1.0]));
        let scores = row.dot(&weights);
        (0..3).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
    };
    let all: Vec<usize> = (0..40).collect();
    let right = test.outer_iter().zip(&layer.test_labels).filter(|(x, label)| decide(&all, *x) == **label).count();
    assert_eq!(found.accuracy, right as f64 / 30.0);
    let without = |i: usize| all.iter().copied().filter(|&j| j != i).collect::<Vec<_>>();
    let right = (0..40).filter(|&i| decide(&without(i), train.row(i)) == layer.labels[i]).count();
    assert_eq!(found.leave_one_out_accuracy, right as f64 / 40.0);
    assert!(found.accuracy > found.shuffled_accuracy + 0.2, "{found:?}");
}

#[test]
fn layers_agree_from_the_first_after_the_last_disagreement() {
    let best = |a: f64, b: f64| Some(Probed { neighbours: a, centre: b, svm: None });
    let layers = [best(0.5, 0.51), best(0.5, 0.9), best(0.8, 0.81), best(0.9, 0.9)];
    assert_eq!(agreement(&layers, 0.02), Some(2));
    assert_eq!(agreement(&layers[..2], 0.02), None);
    assert_eq!(agreement(&[None], 0.02), None);
}

#[test]
fn bad_settings_are_refused() {
    let layer = layer(20, 5, 5);
    let (fitted, test) = components(&layer);
    let split = Split {
        train: fitted.coordinates(),
        labels: &layer.labels,
        test: test.view(),
        test_labels: &layer.test_labels,
        n_classes: 3,
    };
    let context = Context::new();
    for settings in [
        ProbeSettings { neighbours: 0, cost: None },
        ProbeSettings { neighbours: 21, cost: None },
        ProbeSettings { neighbours: 3, cost: Some(-1.0) },
    ] {
        assert!(curves(&split, &[1, 2], &settings, &context).is_err(), "{settings:?}");
    }
    let settings = ProbeSettings::default();
    assert!(curves(&split, &[2, 2], &settings, &context).is_err());
    assert!(curves(&split, &[99], &settings, &context).is_err());
}
