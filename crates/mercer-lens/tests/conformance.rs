//! What every lens must do: results that follow the samples when these change places, that do not depend on the scale
//! where they should not, and typed errors instead of panics. A new lens is a row of the table.

mod common;

use common::{features, gram};
use mercer_lens::audit::{self, Confidence, Opinion, Votes};
use mercer_lens::collapse::{self, Decided};
use mercer_lens::forensics::{Rule, Verdict, evaluate, trace};
use mercer_lens::lds::{Uncertainty, datamodelling};
use mercer_lens::neighbours::{Neighbour, largest};
use mercer_lens::probe::{self, Components, Standardiser};
use mercer_lens::signatures::{self, Clustering};
use mercer_lens::{
    Linearised, Result, Valued, block_mass, cka, duplicates, extent, kernel_likeness, likeness, ranks, removal, sanity,
    shift, spectra,
};
use mercer_run::Context;
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
        |s| extent(gram(&s.x).view(), f64::EPSILON).map(|f| All(vec![f.lambda_max, f.lambda_min])),
        false,
        [Error, Value, Value, Error],
    ),
    row("likeness", alike, true, [Error, Error, Value, Error]),
    row("likeness of a matrix-valued and a scalar kernel", blocks_alike, true, [Error, Error, Value, Error]),
    row("mass of blocks", massed, true, [Error, Value, Value, Error]),
    row("linear network", linearised, true, [Error, Value, Value, Error]),
    row("cka of features", similar_features, true, [Error, Error, Value, Error]),
    row("cka of strips", similar_strips, true, [Error, Error, Value, Error]),
    row("bulk", |s| bulky(s, false), true, [Error, Value, Value, Error]),
    row("bulk against a shuffled matrix", |s| bulky(s, true), true, [Error, Value, Value, Error]),
    row("power law", tailed, true, [Error, Value, Value, Error]),
    row("size", sized, true, [Error, Value, Value, Error]),
    row("alignment with targets", aligned, true, [Error, Value, Value, Error]),
    row("share of targets", shared, true, [Value, Value, Value, Error]),
    row("principal angles", angled, true, [Value, Value, Value, Error]),
    row("quantiles", quantiled, true, [Error, Value, Value, Error]),
    row("drift", drifted, true, [Value, Value, Value, Error]),
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
    row("intrinsic dimension", dimension, true, [Error, Error, Value, Error]),
    row("neural collapse", collapsed, true, [Error, Value, Value, Error]),
    row("probes", probed, true, [Error, Error, Value, Error]),
    row("linear probe", linear, true, [Error, Error, Value, Error]),
    row("tests of two sets", two_sets, true, [Error, Error, Value, Error]),
    row("densities of two sets", two_densities, true, [Error, Error, Value, Error]),
    row("label shift", shifted_labels, true, [Error, Value, Value, Value]),
    row("accuracy without labels", unlabelled_accuracy, false, [Error, Value, Value, Error]),
];

/// The samples in the order of their names, because another order is another permutation. The even ones are the first set.
fn two(s: &Samples) -> (Array2<f64>, usize) {
    let mut order: Vec<usize> = (0..s.ids.len()).collect();
    order.sort_by_key(|&at| (s.ids[at] % 2, s.ids[at], at));
    // Copies of one sample are in both sets.
    let n_first = s.ids.iter().filter(|id| *id % 2 == 0).count();
    let n_first = if n_first == 0 || n_first == s.ids.len() { s.ids.len() / 2 } else { n_first };
    (s.x.select(Axis(0), &order), n_first)
}

fn two_sets(s: &Samples) -> Result<Found> {
    let (x, n_first) = two(s);
    let permutations = shift::Permutations::draw(n_first, x.nrows() - n_first, 19, 1)?;
    let found = shift::examine(x.view(), &permutations, 8, 1, &Context::new())?;
    let p_values = [&found.p_values.alone[..], &found.p_values.corrected, &[found.accuracy]].concat();
    Ok(All(p_values))
}

fn two_densities(s: &Samples) -> Result<Found> {
    let (x, n_first) = two(s);
    let found = shift::density_ratios(&x.column(0).to_vec(), &x.column(1).to_vec(), n_first)?;
    Ok(All(found.iter().map(|ratio| ratio.ln()).collect()))
}

fn shifted_labels(s: &Samples) -> Result<Found> {
    let decisions: Vec<usize> =
        s.ids.iter().zip(&s.labels).map(|(id, label)| if id % 5 == 0 { 0 } else { *label }).collect();
    let found = shift::label_shift((&s.labels, &decisions), &s.labels, s.n_classes, 0, 1)?;
    Ok(All(found.map_or(vec![-9.0], |found| [found.first, found.second, found.decided].concat())))
}

fn unlabelled_accuracy(s: &Samples) -> Result<Found> {
    let (own, other) = (shift::decide(outputs(s).view())?, shift::decide((outputs(s) * 0.5).view())?);
    let found = shift::estimated_accuracy(&own, Some((&s.labels, s.n_classes)), &other)?;
    Ok(All([found.first, found.thresholded, found.by_confidence, Some(found.confidence)].map(number).to_vec()))
}

fn dimension(s: &Samples) -> Result<Found> {
    let found = mercer_lens::dimension::two_nn(gram(&s.x).view())?;
    Ok(All(vec![found.dimension.unwrap_or(-9.0), found.n_copies as f64]))
}

fn collapsed(s: &Samples) -> Result<Found> {
    let decisions: Vec<usize> = s.labels.clone();
    let decided = Decided { decisions: &decisions, weight: None };
    let found = collapse::collapse(s.x.view(), &s.labels, s.n_classes, decided)?;
    Ok(All([found.nc1, found.nc2, Some(found.nc4)].map(|value| value.unwrap_or(-9.0)).to_vec()))
}

/// Probes that are tested on the samples that they are trained on.
fn split<T>(s: &Samples, run: impl Fn(&probe::Split<'_>) -> Result<T>) -> Result<T> {
    let fitted = Components::fit(s.x.view(), Standardiser::fit(s.x.view())?)?;
    let coordinates = fitted.project(s.x.view(), s.x.view())?;
    run(&probe::Split {
        train: fitted.coordinates(),
        labels: &s.labels,
        test: coordinates.view(),
        test_labels: &s.labels,
        n_classes: s.n_classes,
    })
}

fn probed(s: &Samples) -> Result<Found> {
    split(s, |split| {
        let settings = probe::ProbeSettings { neighbours: 2, cost: Some(1.0) };
        let found = probe::curves(split, &probe::dimensions(split.train.ncols()), &settings, &Context::new())?;
        Ok(All([found.neighbours, found.centre, found.svm].concat()))
    })
}

fn linear(s: &Samples) -> Result<Found> {
    split(s, |split| {
        let found = probe::linear_probe(split, 0)?;
        Ok(All(vec![found.accuracy, found.training_accuracy, found.leave_one_out_accuracy, found.penalty]))
    })
}

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

/// A kernel with two outputs per sample, that of the samples and of two combinations of them.
fn blocks(s: &Samples) -> Array2<f64> {
    let n = s.x.nrows();
    let outputs = Array2::from_shape_fn((2 * n, s.x.ncols()), |(row, column)| {
        s.x[[row / 2, column]] * if row % 2 == 0 { 1.0 } else { 1.0 / (1.0 + column as f64) }
    });
    gram(&outputs)
}

fn blocks_alike(s: &Samples) -> Result<Found> {
    let (full, scalar) = (blocks(s), gram(&s.x));
    let found = kernel_likeness(Valued { matrix: full.view(), n_outputs: 2 }, Valued::scalar(scalar.view()))?;
    Ok(All(vec![found.frobenius, number(found.scale), found.scaled_frobenius, number(found.cka)]))
}

fn massed(s: &Samples) -> Result<Found> {
    let found = block_mass(Valued { matrix: blocks(s).view(), n_outputs: 2 })?;
    Ok(All([found.ratio, found.per_entry, found.share, found.least_distance].map(number).into()))
}

/// Predictions at the training samples of a ridge that does not depend on the scale.
fn linearised(s: &Samples) -> Result<Found> {
    let targets = Array2::from_shape_fn((s.x.nrows(), 2), |(row, column)| ((s.ids[row] + column) % 5) as f64);
    let full = blocks(s);
    let fit = Linearised::fit(Valued { matrix: full.view(), n_outputs: 2 }, targets.view(), 0.1)?;
    Ok(Each(fit.predict(full.view())?.column(1).to_vec()))
}

fn similar_features(s: &Samples) -> Result<Found> {
    let found = cka::test_from_features(s.x.view(), outputs(s).view(), 0, 1)?;
    serde_json::to_string(&found).expect("a test is JSON");
    Ok(All([found.cka.debiased, found.cka.biased].map(number).into()))
}

fn similar_strips(s: &Samples) -> Result<Found> {
    let mut strips = cka::CkaStrips::new(s.labels.len())?;
    let (a, b) = (gram(&s.x), gram(&outputs(s)));
    strips.add(0, a.view(), b.view())?;
    let found = strips.finish()?;
    Ok(All([found.debiased, found.biased].map(number).into()))
}

/// Numbers of the bulk relative to its variance.
fn bulky(s: &Samples, null: bool) -> Result<Found> {
    let values = spectra::eigenvalues(s.x.view())?;
    if null {
        // Another order of the samples is another permutation, so the null is that of the sorted entries.
        let mut entries: Vec<f64> = s.x.iter().copied().collect();
        entries.sort_unstable_by(f64::total_cmp);
        let sorted = Array2::from_shape_vec(s.x.dim(), entries).expect("as many numbers");
        let found = spectra::against_shuffled(&values, &spectra::shuffled(sorted.view(), 3)?)?;
        return Ok(All(vec![found.n_above as f64, number(found.excess)]));
    }
    let found = spectra::bulk(&values, s.x.nrows(), s.x.ncols())?;
    serde_json::to_string(&found).expect("a bulk is JSON");
    Ok(All(found.map_or(vec![-9.0; 3], |found| {
        let strengths = found.spikes.iter().map(|spike| number(spike.population) / found.law.variance());
        [found.distance, found.upper_edge / found.law.variance()].into_iter().chain(strengths).collect()
    })))
}

fn tailed(s: &Samples) -> Result<Found> {
    let found = spectra::power_law(&spectra::eigenvalues(s.x.view())?, 2)?;
    serde_json::to_string(&found).expect("a tail is JSON");
    let numbers = |tail: spectra::PowerLaw| {
        let ratios = [tail.exponential.ratio, tail.lognormal.ratio].map(number);
        [tail.alpha, tail.distance, tail.n_tail as f64].into_iter().chain(ratios).collect()
    };
    Ok(All(found.map_or(vec![-9.0], numbers)))
}

fn sized(s: &Samples) -> Result<Found> {
    let (rows, columns) = s.x.dim();
    let roots: Vec<f64> = spectra::eigenvalues(s.x.view())?.into_iter().map(f64::sqrt).collect();
    let found = spectra::size(&roots, rows, columns)?;
    let sizes = [found.stable_rank, found.effective_rank, found.spectral_rank, found.participation_ratio];
    Ok(All(sizes.map(number).into_iter().chain([found.numerical_rank as f64]).collect()))
}

fn one_hot(s: &Samples) -> Array2<f64> {
    Array2::from_shape_fn((s.labels.len(), s.n_classes), |(i, class)| f64::from(u8::from(s.labels[i] == class)))
}

fn aligned(s: &Samples) -> Result<Found> {
    let found = spectra::target_alignment(gram(&s.x).view(), one_hot(s).view())?;
    let cosine = spectra::cosine(&s.x.column(0).to_vec(), &s.x.column(1).to_vec())?;
    Ok(All([found.plain, found.centred, cosine].map(number).into()))
}

/// The share in all vectors that are not rounding, which does not depend on the choice of those of equal values.
fn shared(s: &Samples) -> Result<Found> {
    let svd = mercer_linalg::thin_svd(s.x.view())?;
    let least = 1e-10 * svd.values.first().copied().unwrap_or(0.0);
    let kept = svd.values.iter().filter(|value| **value > least).count();
    let found = spectra::captured(svd.left.slice(ndarray::s![.., ..kept]), one_hot(s).view())?;
    Ok(All(found.and_then(|shares| shares.last().copied()).into_iter().collect()))
}

fn angled(s: &Samples) -> Result<Found> {
    Ok(All(spectra::principal_angles(s.x.view(), one_hot(s).view())?))
}

fn quantiled(s: &Samples) -> Result<Found> {
    let other = s.x.mapv(|x| 2.0 * x.abs());
    let columns: [Vec<f64>; 2] = [s.x.column(0).iter().map(|x| x.abs()).collect(), other.column(1).to_vec()];
    let found = spectra::compare_quantiles(&columns[0], &columns[1], &[0.1, 0.5, 1.0])?;
    Ok(All(vec![number(found.largest_relative_deviation), found.distance]))
}

fn drifted(s: &Samples) -> Result<Found> {
    let found = spectra::drift(s.x.view(), s.x.mapv(|x| x * 1.5).view())?;
    serde_json::to_string(&found).expect("a drift is JSON");
    Ok(All([found.relative, found.relative_operator].map(number).into()))
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
    Ok(All(measures.into_iter().chain(curve.iter().map(|point| point.found)).collect()))
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
