//! Two sets of samples: statistics against their definitions, p-values that are valid, and shifts that are found.

mod common;

use common::{features, gram, normals};
use mercer_lens::shift::{
    Landmarks, MeanSums, Permutations, RandomFourier, SparseProjection, View, corrected, decide, decision_statistics,
    density_ratios, energy_on_a_line, estimated_accuracy, examine, label_shift, matched_rows, median_distance,
    mmd_from_gram, p_value,
};
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, Axis, s};

fn distance(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The estimate as it is printed: means over pairs of different samples.
fn by_definition(gram: &Array2<f64>, is_first: &[bool]) -> f64 {
    let [mut own, mut other, mut across] = [(0.0, 0.0); 3];
    for i in 0..is_first.len() {
        for j in (0..is_first.len()).filter(|&j| j != i) {
            let sum = match (is_first[i], is_first[j]) {
                (true, true) => &mut own,
                (false, false) => &mut other,
                _ => &mut across,
            };
            *sum = (sum.0 + gram[[i, j]], sum.1 + 1.0);
        }
    }
    own.0 / own.1 + other.0 / other.1 - 2.0 * across.0 / across.1
}

#[test]
fn mmd_is_what_its_definition_says() {
    let x = features(17, 4, 1) + 3.0;
    let permutations = Permutations::draw(7, 10, 30, 5).unwrap();
    let members = permutations.members(0..17);
    let from_gram = mmd_from_gram(gram(&x).view(), &permutations).unwrap();
    let mut sums = MeanSums::new(4, 31);
    sums.add(x.slice(s![..6, ..]), &permutations.members(0..6)).unwrap();
    sums.add(x.slice(s![6.., ..]), &permutations.members(6..17)).unwrap();
    let from_features = sums.mmd();
    for column in 0..31 {
        let is_first: Vec<bool> = members.matrix.column(column).iter().map(|member| *member == 1.0).collect();
        let expected = by_definition(&gram(&x), &is_first);
        assert!((from_gram[column] - expected).abs() < 1e-12, "{column}: {} {expected}", from_gram[column]);
        assert!((from_features[column] - expected).abs() < 1e-11, "{column}: {} {expected}", from_features[column]);
    }
}

#[test]
fn random_features_approach_the_gaussian_kernel() {
    let x = normals(60, 5, 2);
    let lengthscale = median_distance(x.view()).unwrap();
    let mut all: Vec<f64> = Vec::new();
    for i in 0..60 {
        all.extend((0..i).map(|j| distance(x.row(i), x.row(j))));
    }
    all.sort_unstable_by(f64::total_cmp);
    assert!((lengthscale - all[all.len() / 2]).abs() < 1e-12);
    let kernel =
        Array2::from_shape_fn((60, 60), |(i, j)| (-0.5 * (distance(x.row(i), x.row(j)) / lengthscale).powi(2)).exp());
    let map = RandomFourier::draw(5, 20_000, lengthscale, 3).features(x.view());
    let error = (&gram(&map) - &kernel).iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert!(error < 0.03, "{error}");
    // With all samples as landmarks the kernel is exact.
    let landmarks = Landmarks::new(kernel.view()).unwrap();
    let exact = gram(&landmarks.features(kernel.view()).unwrap());
    let error = (&exact - &kernel).iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert!(error < 1e-6, "{error}");
}

#[test]
fn projections_keep_products() {
    let x = normals(30, 5000, 21);
    let projected = SparseProjection::draw(5000, 1000, 4).apply(x.view()).unwrap();
    assert_eq!(projected.dim(), (30, 1000));
    // Norms are 5000 ± 2 %; products of different samples are small beside them.
    let error = (&gram(&projected) - &gram(&x)) / 5000.0;
    assert!(error.iter().all(|error| error.abs() < 0.2), "{error}");
    let mean = error.diag().mean().unwrap();
    assert!(mean.abs() < 0.03, "no bias: {mean}");
    assert!(SparseProjection::draw(4, 2, 0).apply(x.view()).is_err());
}

#[test]
fn the_energy_distance_is_that_of_pairs() {
    let x: Vec<f64> = features(23, 1, 4).iter().map(|x| (x * 8.0).round()).collect();
    let permutations = Permutations::draw(9, 14, 70, 6).unwrap();
    let found = energy_on_a_line(&x, &permutations).unwrap();
    let members = permutations.members(0..23).matrix;
    for column in 0..71 {
        let mean = |own: f64, other: f64| {
            let (mut sum, mut count) = (0.0, 0.0);
            for i in (0..23).filter(|&i| members[[i, column]] == own) {
                for j in (0..23).filter(|&j| members[[j, column]] == other) {
                    (sum, count) = (sum + (x[i] - x[j]).abs(), count + 1.0);
                }
            }
            sum / count
        };
        let expected = 2.0 * mean(1.0, 0.0) - mean(1.0, 1.0) - mean(0.0, 0.0);
        assert!((found[column] - expected).abs() < 1e-12, "{column}: {} {expected}", found[column]);
    }
}

/// With one feature, the direction of a classifier is a sign, and the statistic a mean difference over its error.
#[test]
fn the_classifier_is_trained_on_one_half_and_tested_on_the_other() {
    let x = features(40, 1, 7);
    let permutations = Permutations::draw(18, 22, 20, 8).unwrap();
    let found = examine(x.view(), &permutations, 4, 0, &Context::new()).unwrap();
    let members = permutations.members(0..40);
    let statistic = |column: usize| {
        let part = |half: bool, member: f64| -> Vec<f64> {
            let own = (0..40).filter(|&i| members.halves[i] == half && members.matrix[[i, column]] == member);
            own.map(|i| x[[i, 0]]).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let gap = |half: bool| mean(&part(half, 0.0)) - mean(&part(half, 1.0));
        let one = |train: bool, test: bool| {
            let (a, b) = (part(test, 1.0), part(test, 0.0));
            let all: Vec<f64> = a.iter().chain(&b).copied().collect();
            let variance = all.iter().map(|x| (x - mean(&all)).powi(2)).sum::<f64>() / all.len() as f64;
            gap(train).signum() * gap(test) / (variance * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt()
        };
        0.5 * (one(true, false) + one(false, true))
    };
    let (_, statistics) = &found.statistics[2];
    for (column, found) in statistics.iter().enumerate() {
        assert!((found - statistic(column)).abs() < 1e-9, "{column}: {found} {}", statistic(column));
    }
}

#[test]
fn blocks_give_what_the_whole_gives() {
    let x = normals(300, 6, 9) + &normals(1, 6, 10) * 50.0;
    let permutations = Permutations::draw(100, 200, 40, 1).unwrap();
    let fitted = |size: usize| {
        let mut view = View::new(x.slice(s![..50, ..]), 41, 32, 2).unwrap();
        for start in (0..300).step_by(size) {
            let rows = start..(start + size).min(300);
            view.add(x.slice(s![rows.clone(), ..]), &permutations.members(rows)).unwrap();
        }
        view.fit().unwrap()
    };
    let ((whole, all), (parts, some)) = (fitted(300), fitted(7));
    for (a, b) in [(&all.linear, &some.linear), (&all.gaussian, &some.gaussian), (&all.classifier, &some.classifier)] {
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-10 * (1.0 + a.abs()), "{a} {b}"));
    }
    let projected = [whole, parts].map(|view| view.project(x.view(), permutations.halves(0..300)).unwrap());
    assert!((&projected[0] - &projected[1]).iter().all(|difference| difference.abs() < 1e-9));
    // The coordinates are those of the eigenvectors of the covariance.
    let centred = &x - &x.mean_axis(Axis(0)).unwrap();
    let svd = mercer_linalg::thin_svd(centred.view()).unwrap();
    for component in 0..2 {
        let own = projected[0].column(component);
        let own = &own - own.mean().unwrap();
        let expected = &svd.left.column(component) * svd.values[component];
        assert!((own.dot(&expected).abs() / expected.dot(&expected) - 1.0).abs() < 1e-9, "{component}");
    }
}

/// Nearly normal samples of both sets; in the second, one of three features is moved.
fn drawn(number: u64, shift: f64) -> (Array2<f64>, Permutations) {
    let mut x = normals(36, 3, number);
    x.slice_mut(s![16.., 0]).iter_mut().for_each(|x| *x += shift);
    (x, Permutations::draw(16, 20, 99, number).unwrap())
}

/// The numbers of draws with p-values of at most 0.05: of each of the four tests, and corrected for their number.
fn rejected(seed: u64, draws: u64, shift: f64) -> ([usize; 4], usize) {
    let (mut alone, mut any) = ([0; 4], 0);
    for draw in 0..draws {
        let number = 1 + seed * 1_000_003 + draw * 7919;
        let (x, permutations) = drawn(number, shift);
        let found = examine(x.view(), &permutations, 8, number, &Context::new()).unwrap();
        for (count, p) in alone.iter_mut().zip(&found.p_values.alone) {
            *count += usize::from(*p <= 0.05);
        }
        any += usize::from(found.p_values.least <= 0.05);
    }
    (alone, any)
}

#[test]
fn p_values_are_valid() {
    for seed in [1, 2, 3] {
        let (alone, any) = rejected(seed, 1000, 0.0);
        println!("seed {seed}: {alone:?} of 1000 are at most 0.05, {any} corrected for four tests");
        assert!(alone.iter().all(|count| (33..=69).contains(count)), "seed {seed}: {alone:?} of 1000");
        assert!(any <= 69, "seed {seed}: {any} of 1000, corrected");
    }
}

/// Ten layers see the same samples, so their tests depend on each other.
#[test]
fn corrected_p_values_are_valid_over_ten_layers() {
    for seed in [1, 2, 3] {
        let rejected = |draw: &u64| {
            let number = 2 + seed * 1_000_003 + draw * 7919;
            let (x, permutations) = drawn(number, 0.0);
            let members = permutations.members(0..36);
            let mut tests = Vec::new();
            for layer in 0..10 {
                let layer = x.dot(&features(3, 3, 1 + layer)).mapv(f64::tanh);
                let mut sums = MeanSums::new(3, 100);
                sums.add(layer.view(), &members).unwrap();
                tests.push(sums.mmd());
                tests.push(energy_on_a_line(&layer.column(0).to_vec(), &permutations).unwrap());
            }
            corrected(&tests).unwrap().least <= 0.05
        };
        let count = (0..1000).filter(rejected).count();
        println!("seed {seed}: {count} of 1000 are at most 0.05, corrected over ten layers");
        assert!(count <= 69, "seed {seed}: {count} of 1000 are at most 0.05");
        // Nor does the correction waste power: the largest of many is as often large as it may be.
        assert!(count >= 33, "seed {seed}: {count} of 1000 are at most 0.05");
    }
}

#[test]
fn p_values_of_decisions_are_valid() {
    for seed in [1, 2, 3_u64] {
        let count = (0..1000).filter(|draw| {
            let number = 1 + seed * 1_000_003 + draw * 7919;
            let decisions: Vec<usize> = features(160, 1, number).iter().map(|x| ((x + 0.5) * 7.0) as usize).collect();
            let permutations = Permutations::draw(70, 90, 99, number).unwrap();
            p_value(&decision_statistics(&decisions, 7, &permutations).unwrap()).unwrap() <= 0.05
        });
        let count = count.count();
        assert!((33..=69).contains(&count), "seed {seed}: {count} of 1000 are at most 0.05");
    }
}

/// One of three features moves by one standard deviation, with 16 against 20 samples.
#[test]
fn shifts_are_found() {
    let (alone, any) = rejected(5, 200, 1.0);
    println!("power at one deviation: {alone:?} of 200 alone, {any} corrected for four tests");
    // A t test that knew the feature would find 83 % of them; these do not know it.
    assert!(alone[0] > 90 && alone[1] > 70 && alone[2] > 60 && any > 60, "{alone:?} {any}");
    let (alone, any) = rejected(6, 50, 3.0);
    assert!(alone.iter().all(|count| *count >= 40) && any >= 49, "{alone:?} {any}");
}

#[test]
fn tests_correct_for_their_number() {
    let quiet: Vec<f64> = (0..100).map(|at| f64::from(at * 37 % 100)).collect();
    let mut loud = quiet.clone();
    loud[0] = 1000.0;
    let found = corrected(&[&quiet, &loud]).unwrap();
    assert_eq!((found.alone[1], found.corrected[1], found.least), (0.01, 0.01, 0.01));
    assert!(found.alone[0] == 1.0 && found.corrected[0] == 1.0, "{found:?}");
    // The same test twice needs no correction.
    let twice = corrected(&[&quiet, &quiet]).unwrap();
    assert_eq!(twice.alone, twice.corrected);
    assert!(corrected(&[vec![1.0, 1.0], vec![0.0; 3]]).is_err() && p_value(&[1.0]).is_err());
}

#[test]
fn densities_are_compared() {
    let n = 4000;
    let mut x = normals(2 * n, 2, 12);
    x.slice_mut(s![n.., 0]).iter_mut().for_each(|x| *x += 1.0);
    let found = density_ratios(&x.column(0).to_vec(), &x.column(1).to_vec(), n).unwrap();
    // The true ratio of the second density to the first is exp(x − ½).
    let mut errors: Vec<f64> = (0..2 * n)
        .filter(|&row| x.row(row).iter().all(|x| (-1.0..=1.5).contains(x)))
        .map(|row| {
            let expected = x[[row, 0]] - 0.5;
            (found[row].ln() - if row < n { expected } else { -expected }).abs()
        })
        .collect();
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors.len() > n && errors[errors.len() / 2] < 0.15, "{}", errors[errors.len() / 2]);
}

#[test]
fn label_rates_are_recovered() {
    // A network that is right in four of five samples; classes at rates ½, ¼, ¼ and then 1/10, 2/5, 1/2.
    let decided = |class: usize, at: usize| if at.is_multiple_of(5) { (class + 1 + at / 5 % 2) % 3 } else { class };
    let set = |counts: [usize; 3]| -> (Vec<usize>, Vec<usize>) {
        (0..3).flat_map(|class| (0..counts[class]).map(move |at| (class, decided(class, at)))).unzip()
    };
    let ((labels, decisions), (truth, others)) = (set([2000, 1000, 1000]), set([400, 1600, 2000]));
    let found = label_shift((&labels, &decisions), &others, 3, 100, 1).unwrap().unwrap();
    for (rate, expected) in found.second.iter().zip([0.1, 0.4, 0.5]) {
        assert!((rate - expected).abs() < 1e-9, "{found:?}");
    }
    assert_eq!(found.first, [0.5, 0.25, 0.25]);
    for ([low, high], rate) in found.intervals.as_ref().unwrap().iter().zip(&found.second) {
        assert!(low < rate && rate < high && high - low < 0.1, "{found:?}");
    }
    let rows = matched_rows(&labels, &found.second, 0).unwrap();
    let share = |class: usize| rows.iter().filter(|&&row| labels[row] == class).count() as f64 / rows.len() as f64;
    assert!(rows.len() >= 1990 && (share(2) - 0.5).abs() < 1e-3 && (share(0) - 0.1).abs() < 1e-3, "{}", rows.len());
    // Decisions that say nothing about the classes.
    assert_eq!(label_shift((&labels, &vec![0; 4000]), &truth, 3, 10, 1).unwrap(), None);
    assert!(label_shift((&labels, &decisions), &[3], 3, 10, 1).is_err());
}

#[test]
fn accuracy_without_labels() {
    let scores = normals(500, 3, 14) * 3.0;
    let decided = decide(scores.view()).unwrap();
    for (row, one) in decided.iter().enumerate() {
        let total: f64 = scores.row(row).iter().map(|score| score.exp()).sum();
        let certainty: f64 = scores.row(row).iter().map(|score| score.exp() / total * (score.exp() / total).ln()).sum();
        let confidence = scores.row(row).iter().map(|score| score.exp() / total).fold(0.0, f64::max);
        assert!((one.certainty - certainty).abs() < 1e-12 && (one.confidence - confidence).abs() < 1e-12);
    }
    // Right in all samples but each seventh: on the same samples both estimates are exact.
    let labels: Vec<usize> =
        decided.iter().enumerate().map(|(row, one)| (one.class + usize::from(row % 7 == 0)) % 3).collect();
    let found = estimated_accuracy(&decided, Some((&labels, 3)), &decided).unwrap();
    let accuracy = found.first.unwrap();
    assert_eq!((accuracy, found.thresholded), (428.0 / 500.0, Some(accuracy)));
    assert!((found.by_confidence.unwrap() - accuracy).abs() < 1e-12);
    // Less certain samples are right less often.
    let doubtful = decide((scores * 0.3).view()).unwrap();
    let found = estimated_accuracy(&decided, Some((&labels, 3)), &doubtful).unwrap();
    assert!(found.thresholded.unwrap() < 0.3 && found.by_confidence.unwrap() < accuracy - 0.2, "{found:?}");
    assert_eq!(estimated_accuracy(&decided, None, &doubtful).unwrap().first, None);
}
