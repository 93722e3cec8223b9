//! What every lens must do: results that follow the samples when these change places, that do not depend on the scale
//! where they should not, and typed errors instead of panics. A new lens is a row of the table.

mod common;

use common::{features, gram};
use mercer_lens::audit::{self, Confidence, Opinion, Votes};
use mercer_lens::forensics::{Rule, Verdict, evaluate, trace};
use mercer_lens::lds::{Uncertainty, datamodelling};
use mercer_lens::neighbours::{Neighbour, largest};
use mercer_lens::signatures::{self, Clustering};
use mercer_lens::{Result, duplicates, extent, likeness, ranks, removal, sanity};
use ndarray::{Array2, Axis};

/// Samples from which the input of every lens is made.
#[derive(Clone)]
struct Samples {
    x: Array2<f64>,
    labels: Vec<usize>,
    /// Numbers that stay with their samples.
    ids: Vec<usize>,
    n_classes: usize,
}

/// What a lens found, as numbers. `None` is −9.
enum Found {
    /// One per sample.
    Each(Vec<f64>),
    /// About all samples.
    All(Vec<f64>),
}
use Found::{All, Each};

/// What a lens does with an unusual input.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Answer {
    Value,
    Error,
}
use Answer::{Error, Value};

struct Row {
    name: &'static str,
    run: fn(&Samples) -> Result<Found>,
    /// Whether the result stays the same when the features are multiplied.
    scale_free: bool,
    /// No samples, one sample, and samples of one class.
    empty: Answer,
    single: Answer,
    one_class: Answer,
    /// Samples that are not numbers.
    not_a_number: Answer,
}

const fn row(
    name: &'static str,
    run: fn(&Samples) -> Result<Found>,
    scale_free: bool,
    [empty, single, one_class, not_a_number]: [Answer; 4],
) -> Row {
    Row { name, run, scale_free, empty, single, one_class, not_a_number }
}

const TABLE: &[Row] = &[
    row(
        "extent",
        |s| extent(gram(&s.x).view()).map(|f| All(vec![f.lambda_max, f.lambda_min])),
        false,
        [Error, Value, Value, Error],
    ),
    row("likeness", alike, true, [Error, Error, Value, Error]),
    row("largest", nearest, true, [Error, Value, Value, Error]),
    row("forensics, traces", traced, true, [Value, Error, Value, Error]),
    row("forensics, measures", measured_verdicts, true, [Error, Value, Value, Value]),
    row("neighbours, equal votes", |s| voted(s, Votes::Equal), true, [Error, Error, Value, Error]),
    row("neighbours, weighted votes", |s| voted(s, Votes::Weighted), true, [Error, Error, Value, Error]),
    row("out of fold", |s| probable(s, Confidence::OfLabel), false, [Error, Value, Value, Error]),
    row("out of fold, margin", |s| probable(s, Confidence::Margin), false, [Error, Value, Value, Error]),
    row("confident joint", joint, false, [Error, Value, Value, Error]),
    row(
        "leave one out",
        |s| reviewed(s, &audit::leave_one_out(outputs(s).view(), &s.labels)?),
        true,
        [Error, Value, Error, Error],
    ),
    row("residuals", residuals, true, [Error, Value, Value, Error]),
    row("conflicting duplicates", conflicts, true, [Error, Value, Value, Value]),
    row("exact duplicates", exact, true, [Value, Value, Value, Value]),
    row("near duplicates", near, true, [Value, Value, Value, Error]),
    row("measures of an audit", audited, true, [Error, Value, Value, Error]),
    row("spectral signature", |s| spectral(s, false), true, [Error, Value, Value, Error]),
    row("spectral signature of a kernel", |s| spectral(s, true), true, [Error, Value, Value, Error]),
    row("clusters", |s| clustered(s, false), true, [Error, Value, Value, Error]),
    row("clusters of a kernel", |s| clustered(s, true), true, [Error, Value, Value, Error]),
    row("datamodelling", modelled, true, [Error, Value, Value, Error]),
    row("removal", removed, false, [Error, Value, Value, Error]),
    row(
        "sanity",
        |s| sane(&queries(s), &(features(7, s.x.ncols(), 36).dot(&s.x.t()))),
        true,
        [Error, Error, Value, Error],
    ),
    row("mean of ranks", combined, true, [Value, Value, Value, Error]),
];

fn samples(n: usize, width: usize, n_classes: usize) -> Samples {
    let mut x = features(n, width, 31);
    let labels: Vec<usize> = (0..n).map(|i| i * 7 % n_classes).collect();
    for (i, &label) in labels.iter().enumerate() {
        x[[i, label % width]] += 1.0;
        // A small group in every class that is different.
        x[[i, (label + 1) % width]] += if i % 9 < 2 { 4.0 } else { 0.0 };
    }
    Samples { x, labels, ids: (0..n).collect(), n_classes }
}

fn chosen(s: &Samples, order: &[usize]) -> Samples {
    Samples {
        x: s.x.select(Axis(0), order),
        labels: order.iter().map(|&i| s.labels[i]).collect(),
        ids: order.iter().map(|&i| s.ids[i]).collect(),
        n_classes: s.n_classes,
    }
}

fn run_all(check: impl Fn(&Row)) {
    TABLE.iter().for_each(check);
}

fn values(row: &Row, s: &Samples) -> Vec<f64> {
    match (row.run)(s) {
        Ok(Each(values)) => {
            assert_eq!(values.len(), s.labels.len(), "{}", row.name);
            values
        }
        Ok(All(values)) => values,
        Err(error) => panic!("{}: {error}", row.name),
    }
}

fn assert_close(name: &str, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len(), "{name}");
    for (place, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-7 * (1.0 + a.abs()), "{name} at {place}: {a} {b}");
    }
}

#[test]
fn results_follow_the_samples() {
    let s = samples(36, 5, 3);
    let order: Vec<usize> = (0..36).map(|i| (i * 25 + 11) % 36).collect();
    let moved = chosen(&s, &order);
    run_all(|row| {
        let (before, after) = (values(row, &s), values(row, &moved));
        let expected = match (row.run)(&s) {
            Ok(Each(_)) => order.iter().map(|&i| before[i]).collect(),
            _ => before,
        };
        assert_close(row.name, &expected, &after);
    });
}

#[test]
fn the_scale_does_not_matter_where_it_should_not() {
    let s = samples(36, 5, 3);
    for factor in [1e-20, 3.0, 1e20] {
        let scaled = Samples { x: &s.x * factor, ..s.clone() };
        TABLE.iter().filter(|row| row.scale_free).for_each(|row| {
            assert_close(row.name, &values(row, &s), &values(row, &scaled));
        });
    }
}

#[test]
fn repeated_calls_give_the_same_bits() {
    let s = samples(36, 5, 3);
    run_all(|row| assert_eq!(values(row, &s), values(row, &s), "{}", row.name));
}

#[test]
fn copies_of_all_samples_are_accepted() {
    let s = samples(12, 4, 3);
    let twice: Vec<usize> = (0..12).chain(0..12).collect();
    let all_equal = chosen(&s, &[3; 12]);
    for s in [chosen(&s, &twice), all_equal] {
        run_all(|row| assert!(values(row, &s).iter().all(|value| value.is_finite()), "{}", row.name));
    }
}

#[test]
fn fewer_samples_than_features_are_accepted() {
    let s = samples(9, 40, 3);
    run_all(|row| assert!(values(row, &s).iter().all(|value| value.is_finite()), "{}", row.name));
}

#[test]
fn unusual_inputs_have_a_value_or_a_typed_error() {
    let answer = |row: &Row, s: &Samples| match (row.run)(s) {
        Ok(Each(values) | All(values)) => {
            assert!(values.iter().all(|value| value.is_finite()), "{}", row.name);
            Value
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Error
        }
    };
    let usual = samples(12, 4, 3);
    let mut hole = usual.clone();
    hole.x[[5, 0]] = f64::NAN;
    let mut endless = usual.clone();
    endless.x[[7, 0]] = f64::INFINITY;
    run_all(|row| {
        assert_eq!(answer(row, &chosen(&usual, &[])), row.empty, "{}: no samples", row.name);
        assert_eq!(answer(row, &chosen(&usual, &[2])), row.single, "{}: one sample", row.name);
        assert_eq!(answer(row, &samples(12, 4, 1)), row.one_class, "{}: one class", row.name);
        assert_eq!(answer(row, &hole), row.not_a_number, "{}: not a number", row.name);
        assert_eq!(answer(row, &endless), row.not_a_number, "{}: infinite", row.name);
    });
}

// The lenses, each from the samples alone.

fn number(value: Option<f64>) -> f64 {
    value.unwrap_or(-9.0)
}

fn cosines(s: &Samples) -> Array2<f64> {
    let kernel = gram(&s.x);
    Array2::from_shape_fn(kernel.dim(), |(i, j)| kernel[[i, j]] / (kernel[[i, i]].sqrt() * kernel[[j, j]].sqrt()))
}

/// Lists by sorting, which numbers that are not finite do not stop.
fn lists(kernel: &Array2<f64>, k: usize) -> Vec<Vec<Neighbour>> {
    let of_row = |(row, values): (usize, ndarray::ArrayView1<'_, f64>)| {
        let mut all: Vec<Neighbour> =
            values.iter().enumerate().map(|(index, &value)| Neighbour { index, value }).collect();
        all.retain(|neighbour| neighbour.index != row);
        all.sort_by(|a, b| b.value.total_cmp(&a.value));
        all.truncate(k);
        all
    };
    kernel.outer_iter().enumerate().map(of_row).collect()
}

fn poisoned(s: &Samples) -> Vec<bool> {
    s.ids.iter().map(|id| id % 3 == 0).collect()
}

fn hashes(s: &Samples) -> Vec<u128> {
    s.ids.iter().map(|id| (id / 2) as u128).collect()
}

/// The outputs of a linear model with a column per class.
fn outputs(s: &Samples) -> Array2<f64> {
    s.x.dot(&features(s.x.ncols(), s.n_classes, 32))
}

fn probabilities(s: &Samples) -> Array2<f64> {
    let mut p = outputs(s).mapv(f64::exp);
    p.outer_iter_mut().for_each(|mut row| row /= row.sum());
    p
}

/// The scores of seven queries, a column per sample.
fn queries(s: &Samples) -> Array2<f64> {
    features(7, s.x.ncols(), 33).dot(&s.x.t())
}

fn alike(s: &Samples) -> Result<Found> {
    let doubled = gram(&s.x) * 2.0;
    let found = likeness(gram(&s.x).view(), doubled.view())?;
    Ok(All(vec![found.frobenius, number(found.cka)]))
}

fn nearest(s: &Samples) -> Result<Found> {
    let found = largest(gram(&s.x).view(), 4, Some(0))?;
    Ok(Each(found.iter().map(|list| list.iter().map(|neighbour| s.ids[neighbour.index] as f64).sum()).collect()))
}

fn traced(s: &Samples) -> Result<Found> {
    let verdicts = trace(&lists(&gram(&s.x), 4), &poisoned(s), Rule { k: 4, threshold: 2 })?;
    Ok(Each(verdicts.iter().map(|verdict| verdict.count as f64).collect()))
}

fn measured_verdicts(s: &Samples) -> Result<Found> {
    let verdicts: Vec<Verdict> = s.ids.iter().map(|id| Verdict { count: id % 5, flagged: id % 5 > 2 }).collect();
    let found = evaluate(&verdicts, &poisoned(s))?;
    Ok(All([found.precision, found.recall, found.f1, found.false_positive_rate, found.auroc].map(number).into()))
}

fn voted(s: &Samples, votes: Votes) -> Result<Found> {
    reviewed(s, &audit::neighbour_disagreement(&lists(&gram(&s.x), 5), &s.labels, s.n_classes, votes)?)
}

fn probable(s: &Samples, confidence: Confidence) -> Result<Found> {
    Ok(Each(audit::out_of_fold(probabilities(s).view(), &s.labels, confidence)?.scores))
}

fn joint(s: &Samples) -> Result<Found> {
    let found = audit::confident_joint(probabilities(s).view(), &s.labels)?;
    let counts = found.counts.concat().into_iter().map(|count| count as f64);
    Ok(All(counts.chain(found.thresholds.into_iter().map(number)).chain([found.noise]).collect()))
}

fn residuals(s: &Samples) -> Result<Found> {
    reviewed(s, &audit::leave_one_out_residuals(outputs(s).view(), (outputs(s).mapv(|x| x * 0.3)).view())?)
}

/// The combined score, and the check that every sample is listed once.
fn reviewed(s: &Samples, opinion: &Opinion) -> Result<Found> {
    let copies = audit::conflicting_duplicates(&duplicates::exact(&hashes(s), None)?, &s.labels, s.n_classes)?;
    let list = audit::review(&s.labels, &[(opinion, 1.0), (&copies, 0.5)])?;
    let mut scores = vec![f64::NAN; s.labels.len()];
    for (place, entry) in list.iter().enumerate() {
        assert!(scores[entry.index].is_nan() && entry.rank == place + 1 && entry.label == s.labels[entry.index]);
        scores[entry.index] = entry.score;
    }
    serde_json::to_string(&list).expect("a list is JSON");
    Ok(Each(scores))
}

fn conflicts(s: &Samples) -> Result<Found> {
    let found = duplicates::exact(&hashes(s), Some(&s.labels))?;
    Ok(Each(audit::conflicting_duplicates(&found, &s.labels, s.n_classes)?.scores))
}

fn sizes(found: &duplicates::Duplicates) -> Found {
    let mut sizes = vec![1.0; found.samples];
    found.groups.iter().for_each(|group| group.members.iter().for_each(|&i| sizes[i] = group.members.len() as f64));
    Each(sizes)
}

fn exact(s: &Samples) -> Result<Found> {
    Ok(sizes(&duplicates::exact(&hashes(s), Some(&s.labels))?))
}

fn near(s: &Samples) -> Result<Found> {
    Ok(sizes(&duplicates::near(&lists(&cosines(s), 5), 0.05, Some(&hashes(s)), Some(&s.labels))?))
}

fn audited(s: &Samples) -> Result<Found> {
    let scores = s.x.column(0).to_vec();
    let found = audit::measure(&scores, &poisoned(s), &[0.25])?;
    let curve = audit::review_curve(&scores, &poisoned(s), 5)?;
    let at = found.budgets[0];
    let measures = [found.auroc, found.aupr, found.tpr_at_1_percent_fpr, at.precision, at.recall].map(number);
    Ok(All(measures.into_iter().chain(curve.iter().map(|point| point.found as f64)).collect()))
}

fn spectral(s: &Samples, kernel: bool) -> Result<Found> {
    let found = if kernel {
        signatures::spectral_from_gram(gram(&s.x).view(), &s.labels, s.n_classes)?
    } else {
        signatures::spectral_from_features(s.x.view(), &s.labels, s.n_classes)?
    };
    serde_json::to_string(&found).expect("signatures are JSON");
    Ok(Each(found.relative))
}

fn clustered(s: &Samples, kernel: bool) -> Result<Found> {
    let settings = Clustering { components: 3, restarts: 4, seed: 1 };
    let found = if kernel {
        signatures::clusters_from_gram(gram(&s.x).view(), &s.labels, s.n_classes, settings)?
    } else {
        signatures::clusters_from_features(s.x.view(), &s.labels, s.n_classes, settings)?
    };
    Ok(Each(found.scores))
}

fn modelled(s: &Samples) -> Result<Found> {
    let kept = Array2::from_shape_fn((15, s.ids.len()), |(subset, i)| (s.ids[i] * 31 + subset * 17) % 5 < 2);
    let settings = Uncertainty { resamples: 50, seed: 1 };
    let again = features(15, 7, 35);
    let found =
        datamodelling(queries(s).view(), kept.view(), features(15, 7, 34).view(), Some(again.view()), settings)?;
    let score = found.score.map(|score| score.mean);
    Ok(All(found.per_query.iter().copied().chain([score, found.significant]).map(number).collect()))
}

/// Here the samples are the queries.
fn removed(s: &Samples) -> Result<Found> {
    let intact = s.x.column(0).to_vec();
    let after = |factor: f64| Array2::from_shape_fn((2, intact.len()), |(k, i)| intact[i] - factor * (k + 1) as f64);
    let found = removal::removal_curve(&[1, 3], &intact, after(0.4).view(), after(0.1).view())?;
    // Trapezoids through (0, 0), (1, 0.3) and (3, 0.6).
    assert!((found.area - 0.35).abs() < 1e-9, "{}", found.area);
    Ok(Each(found.brittleness.iter().map(|k| number(k.map(|k| k as f64))).collect()))
}

fn sane(a: &Array2<f64>, b: &Array2<f64>) -> Result<Found> {
    let found = sanity::agreement(a.view(), b.view())?;
    Ok(All(found
        .per_query
        .iter()
        .copied()
        .chain([found.correlation.map(|average| average.mean)])
        .map(number)
        .collect()))
}

fn combined(s: &Samples) -> Result<Found> {
    let columns: Vec<Vec<f64>> = (0..2).map(|column| s.x.column(column).to_vec()).collect();
    Ok(Each(ranks::joint_ranks(&[(&columns[0], 1.0), (&columns[1], 3.0)])?))
}
