//! Spectra against closed forms, numerical integrals and constructed matrices.

mod common;

use common::{features, gram, normals};
use mercer_lens::LensError;
use mercer_lens::spectra::{
    Bulk, MarchenkoPastur, SpectrumKind, against_shuffled, bulk, captured, compare_quantiles, cosine, drift,
    eigenvalues, kind, power_law, principal_angles, shuffled, size, smoothed, spike_strength, squared,
    target_alignment,
};
use mercer_linalg::{Node, StochasticLanczos, symmetric_eigen, thin_qr, thin_svd};
use ndarray::{Array1, Array2, Axis, array, s};

fn fitted(matrix: &Array2<f64>) -> Bulk {
    bulk(&eigenvalues(matrix.view()).unwrap(), matrix.nrows(), matrix.ncols()).unwrap().unwrap()
}

fn kind_of(matrix: &Array2<f64>) -> SpectrumKind {
    let tail = power_law(&eigenvalues(matrix.view()).unwrap(), 2).unwrap();
    kind(Some(&fitted(matrix)), tail.as_ref())
}

/// A unit vector.
fn unit(n: usize, seed: u64) -> Array1<f64> {
    let vector = normals(n, 1, seed).remove_axis(Axis(1));
    &vector / vector.dot(&vector).sqrt()
}

fn outer(u: &Array1<f64>, v: &Array1<f64>) -> Array2<f64> {
    u.view().insert_axis(Axis(1)).dot(&v.view().insert_axis(Axis(0)))
}

/// The distribution function against the density summed with the midpoint rule, in an angle that smooths both edges.
#[test]
fn the_law_is_the_integral_of_its_density() {
    for (ratio, variance) in [(0.1, 2.0), (0.5, 1.0), (1.0, 0.3), (1.5, 1.0), (6.0, 0.01)] {
        let law = MarchenkoPastur::new(ratio, variance).unwrap();
        let (middle, half) = (0.5 * (law.lower_edge() + law.upper_edge()), 0.5 * (law.upper_edge() - law.lower_edge()));
        let (steps, mut sum, mut mean) = (20_000, 0.0, 0.0);
        let step = std::f64::consts::PI / steps as f64;
        for i in 0..steps {
            let angle = (i as f64 + 0.5) * step;
            let x = middle - half * angle.cos();
            let mass = law.density(x) * half * angle.sin() * step;
            sum += mass;
            mean += x * mass;
            if i % 1999 == 1998 {
                let end = middle - half * (angle + 0.5 * step).cos();
                assert!((law.cdf(end) - sum).abs() < 1e-7, "{ratio} {end}: {} {sum}", law.cdf(end));
                assert!((law.quantile(law.cdf(end)).unwrap() - end).abs() < 1e-9 * law.upper_edge());
            }
        }
        // The mean of all eigenvalues is σ², of those that are not zero it is σ²·max(q, 1).
        assert!(
            (sum - 1.0).abs() < 1e-7 && (mean / (variance * f64::max(ratio, 1.0)) - 1.0).abs() < 1e-6,
            "{ratio} {sum} {mean}"
        );
        assert_eq!(
            (law.cdf(-1.0), law.cdf(law.upper_edge() * 2.0), law.density(law.upper_edge() * 1.01)),
            (0.0, 1.0, 0.0)
        );
    }
    // The edges of the report: h/d = 1.5 by WWᵀ/d and by WᵀW/h.
    let law = MarchenkoPastur::new(1.5, 1.0).unwrap();
    assert!((law.upper_edge() - 4.949).abs() < 1e-3 && (law.upper_edge() / 1.5 - 3.300).abs() < 1e-3);
    assert!(MarchenkoPastur::new(0.0, 1.0).is_err() && MarchenkoPastur::new(1.0, f64::NAN).is_err());
    assert!(law.quantile(1.2).is_err());
}

#[test]
fn noise_has_the_law_of_its_shape_and_no_spikes() {
    for (rows, columns, sigma) in [(100, 400, 0.3), (300, 200, 2.0), (220, 220, 0.05)] {
        let found = fitted(&(normals(rows, columns, 7) * sigma));
        assert!((found.law.variance() / (sigma * sigma) - 1.0).abs() < 0.02, "{found:?}");
        assert!(found.spikes.is_empty() && found.distance < 0.02, "{found:?}");
        assert_eq!((found.n_bulk, found.n_below), (rows.min(columns), 0));
        // The fitted edge is where the largest eigenvalue is.
        let largest = eigenvalues((normals(rows, columns, 7) * sigma).view()).unwrap()[0];
        assert!((largest - found.upper_edge).abs() < 5.0 * found.edge_scale, "{largest} {found:?}");
        assert_eq!(kind_of(&(normals(rows, columns, 7) * sigma)), SpectrumKind::Bulk);
    }
}

/// One to two matrices of noise in a hundred exceed the threshold, and the median of the excess is that of Tracy and
/// Widom's law, −1.27.
#[test]
fn the_threshold_is_exceeded_by_few_matrices_of_noise() {
    let (n, mut exceeded, mut worst, mut scores) = (600, 0, 0.0_f64, Vec::new());
    for seed in 0..n {
        let matrix = normals(20, 40, 5000 + seed);
        let found = fitted(&matrix);
        exceeded += usize::from(!found.spikes.is_empty());
        worst = worst.max(found.distance);
        scores.push((eigenvalues(matrix.view()).unwrap()[0] - found.threshold) / found.edge_scale + 2.0234);
    }
    assert!((2..=18).contains(&exceeded), "{exceeded}");
    scores.sort_unstable_by(f64::total_cmp);
    assert!((scores[300] + 1.27).abs() < 0.25, "{}", scores[300]);
    // The rule for a bulk that fits.
    assert!(worst < 4.0 / 20.0, "{worst}");
}

#[test]
fn a_planted_spike_is_found_with_its_strength() {
    for (rows, columns) in [(200, 400), (400, 200), (250, 250)] {
        let (sigma, strength) = (0.7_f64, 4.0_f64);
        let (u, v) = (unit(rows, 3), unit(columns, 4));
        let theta = sigma * (strength * columns as f64).sqrt();
        let matrix = normals(rows, columns, 5) * sigma + outer(&u, &v) * theta;
        let found = fitted(&matrix);
        assert_eq!(found.spikes.len(), 1, "{found:?}");
        let (spike, q) = (found.spikes[0], rows as f64 / columns as f64);
        let predicted = sigma * sigma * (1.0 + strength) * (q + strength) / strength;
        assert!((spike.value / predicted - 1.0).abs() < 0.04, "{spike:?} {predicted}");
        assert!((spike.planted.unwrap() / theta - 1.0).abs() < 0.03, "{spike:?} {theta}");
        assert!((spike.population.unwrap() / (sigma * sigma * (1.0 + strength)) - 1.0).abs() < 0.05, "{spike:?}");
        assert!((found.law.variance() / (sigma * sigma) - 1.0).abs() < 0.02 && found.distance < 0.02, "{found:?}");
        let svd = thin_svd(matrix.view()).unwrap();
        let left = svd.left.column(0).dot(&u).abs();
        let right = svd.right.column(0).dot(&v).abs();
        assert!((spike.left_overlap.unwrap() - left).abs() < 0.03, "{spike:?} {left}");
        assert!((spike.right_overlap.unwrap() - right).abs() < 0.03, "{spike:?} {right}");
        assert_eq!(kind_of(&matrix), SpectrumKind::Spikes);
        // Far below the transition there is nothing to see.
        let weak = normals(rows, columns, 5) * sigma + outer(&u, &v) * (theta * 0.2);
        assert!(fitted(&weak).spikes.is_empty());
    }
    assert_eq!(spike_strength(2.9, 0.5), None);
    assert_eq!(spike_strength(0.0, 0.5), None);
}

/// Many strong spikes change neither the variance nor each other's strength by much.
#[test]
fn spikes_do_not_widen_the_bulk() {
    let mut matrix = normals(120, 300, 8);
    for i in 0..12 {
        matrix = matrix + outer(&unit(120, 20 + i), &unit(300, 40 + i)) * (60.0 + 10.0 * i as f64);
    }
    let found = fitted(&matrix);
    assert_eq!(found.spikes.len(), 12);
    assert!((found.law.variance() - 1.0).abs() < 0.06, "{}", found.law.variance());
}

#[test]
fn a_shuffled_matrix_has_no_structure() {
    let matrix = normals(80, 160, 9) + outer(&unit(80, 1), &unit(160, 2)) * 40.0;
    let null = shuffled(matrix.view(), 3).unwrap();
    assert_eq!(null, shuffled(matrix.view(), 3).unwrap());
    assert_ne!(null, shuffled(matrix.view(), 4).unwrap());
    let own = eigenvalues(matrix.view()).unwrap();
    assert!((null.iter().sum::<f64>() / own.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(bulk(&null, 80, 160).unwrap().unwrap().spikes.is_empty());
    let found = against_shuffled(&own, &null).unwrap();
    assert_eq!(found.n_above, 1);
    assert!(found.excess.unwrap() > 2.0 && found.edge == null[0], "{found:?}");
    assert_eq!(against_shuffled(&null, &null).unwrap().n_above, 0);
}

/// Entries with a heavy tail: the eigenvalues fall like a power, here with exponent 1 + μ/2 = 1.75.
#[test]
fn kinds_of_constructed_matrices() {
    let heavy_matrix =
        |seed| features(150, 300, seed).mapv(|u| u.signum() * (2.0 * u.abs()).max(1e-12).powf(-1.0 / 1.5));
    let n_heavy = (0..30).filter(|seed| kind_of(&heavy_matrix(600 + seed)) == SpectrumKind::HeavyTail).count();
    assert!(n_heavy >= 25, "{n_heavy} of 30");
    let heavy = heavy_matrix(6);
    let values = eigenvalues(heavy.view()).unwrap();
    let tail = power_law(&values, 2).unwrap().unwrap();
    assert!((tail.alpha - 1.75).abs() < 4.0 * tail.standard_error, "{tail:?}");
    // Uniform eigenvalues have no spike, and are not noise.
    let ramp: Vec<f64> = (0..100).map(|i| 1.0 + i as f64 / 50.0).collect();
    let found = bulk(&ramp, 100, 300).unwrap().unwrap();
    assert!(found.spikes.is_empty() && found.distance > 0.1, "{found:?}");
    assert_eq!(kind(Some(&found), None), SpectrumKind::Other);
    // A bulk that is less than half of the spectrum explains too little.
    let few = Bulk { n_bulk: 4, distance: 0.1, spikes: fitted(&heavy).spikes[..6].to_vec(), ..found };
    assert_eq!(kind(Some(&few), None), SpectrumKind::Other);
}

#[test]
fn eigenvalues_are_those_of_the_product() {
    let matrix = features(7, 12, 3);
    let product = symmetric_eigen((gram(&matrix) / 12.0).view()).unwrap().values;
    let found = eigenvalues(matrix.view()).unwrap();
    assert!(found.iter().zip(&product).all(|(a, b)| (a - b).abs() < 1e-14));
    assert_eq!(squared(&[6.0, 3.0], 9), [4.0, 1.0]);
    assert_eq!(bulk(&[0.0; 5], 5, 9).unwrap(), None);
    assert!(matches!(bulk(&[1.0, 2.0], 5, 9), Err(LensError::Rows { expected: 5, found: 2, .. })));
    assert!(matches!(bulk(&[1.0, -2.0], 2, 9), Err(LensError::Range { row: 1, .. })));
    assert!(matches!(bulk(&[1.0, f64::NAN], 2, 9), Err(LensError::Algebra(_))));
    assert!(bulk(&[], 0, 9).is_err());
}

#[test]
fn sizes_by_hand() {
    let found = size(&[3.0, 1.0], 2, 4).unwrap();
    assert!((found.stable_rank.unwrap() - 10.0 / 9.0).abs() < 1e-14);
    assert!((found.participation_ratio.unwrap() - 100.0 / 82.0).abs() < 1e-14);
    let entropy = |p: f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
    assert!((found.effective_rank.unwrap() - entropy(0.25).exp()).abs() < 1e-14);
    assert!((found.spectral_rank.unwrap() - entropy(0.1).exp()).abs() < 1e-14);
    // All answers agree on equal values, and do not depend on the scale.
    for scale in [1e-200, 1.0, 1e200] {
        let flat = size(&[scale; 6], 6, 9).unwrap();
        let all = [flat.stable_rank, flat.effective_rank, flat.spectral_rank, flat.participation_ratio];
        assert!(all.iter().all(|size| (size.unwrap() - 6.0).abs() < 1e-12), "{flat:?}");
    }
    let nothing = size(&[0.0, 0.0], 2, 2).unwrap();
    assert_eq!((nothing.stable_rank, nothing.effective_rank, nothing.numerical_rank), (None, None, 0));
    let matrix = features(9, 3, 1).dot(&features(3, 8, 2));
    assert_eq!(size(&thin_svd(matrix.view()).unwrap().values.to_vec(), 9, 8).unwrap().numerical_rank, 3);
}

/// K of three samples, the labels 1, 1, −1.
#[test]
fn alignment_by_hand() {
    let k = array![[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]];
    let y = array![[1.0], [1.0], [-1.0]];
    let found = target_alignment(k.view(), y.view()).unwrap();
    // ⟨K, yyᵀ⟩ = 2 + 2 + 1 + 2·1 = 7, ‖K‖ = √11, ‖y‖² = 3.
    assert!((found.plain.unwrap() - 7.0 / (11f64.sqrt() * 3.0)).abs() < 1e-14);
    // HKH by hand: row means 1, 1, ⅓, mean 7/9.
    let m = [1.0, 1.0, 1.0 / 3.0];
    let centred = Array2::from_shape_fn((3, 3), |(i, j)| k[[i, j]] - m[i] - m[j] + 7.0 / 9.0);
    let z = array![2.0 / 3.0, 2.0 / 3.0, -4.0 / 3.0];
    let expected = z.dot(&centred.dot(&z)) / (centred.iter().map(|x| x * x).sum::<f64>().sqrt() * z.dot(&z));
    assert!((found.centred.unwrap() - expected).abs() < 1e-14);
    // One-hot columns and centred ones have the same centred alignment; here also that of one column.
    let one_hot = array![[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
    let several = target_alignment(k.view(), one_hot.view()).unwrap();
    assert!((several.centred.unwrap() - expected).abs() < 1e-14);
    // ⟨K, YYᵀ⟩ = 2 + 1 + 1 + 2 + 1 = 7, ‖YYᵀ‖ = √5.
    assert!((several.plain.unwrap() - 7.0 / (11f64.sqrt() * 5f64.sqrt())).abs() < 1e-14);
    // Labels without variance.
    let constant = target_alignment(k.view(), array![[1.0], [1.0], [1.0]].view()).unwrap();
    assert!(constant.plain.is_some() && constant.centred.is_none());
    assert_eq!(target_alignment(k.view(), Array2::zeros((3, 1)).view()).unwrap().plain, None);
    assert!(target_alignment(k.view(), array![[1.0]].view()).is_err());
}

#[test]
fn shares_of_labels_in_eigenvectors() {
    let vectors = thin_qr(features(10, 10, 3).view()).unwrap().q;
    // Half of the square of y along the second vector, half along the fifth.
    let y = (&vectors.column(1) * 3.0 - &vectors.column(4) * 3.0).insert_axis(Axis(1));
    let found = captured(vectors.view(), y.view()).unwrap().unwrap();
    let expected = [0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    assert_eq!(captured(vectors.view(), Array2::zeros((10, 2)).view()).unwrap(), None);
    assert!(captured((&vectors * 1.1).view(), y.view()).is_err());
    let cosine = cosine(&vectors.column(4).to_vec(), &y.column(0).to_vec()).unwrap().unwrap();
    assert!((cosine - 0.5f64.sqrt()).abs() < 1e-12);
    assert_eq!(mercer_lens::spectra::cosine(&[0.0, 0.0], &[1.0, 1.0]).unwrap(), None);
    assert_eq!(mercer_lens::spectra::cosine(&[1e200, 0.0], &[1e-200, 0.0]).unwrap(), Some(1.0));
}

/// Subspaces of twelve dimensions whose angles are chosen, in bases that hide them.
#[test]
fn principal_angles_of_constructed_subspaces() {
    let q = thin_qr(normals(12, 12, 4).view()).unwrap().q;
    let angles = [1e-8_f64, 3e-5, 0.4, 1.2];
    let a = q.slice(s![.., ..4]).to_owned();
    let mut b = Array2::zeros((12, 4));
    for (i, angle) in angles.iter().enumerate() {
        b.column_mut(i).assign(&(&q.column(i) * angle.cos() + &q.column(4 + i) * angle.sin()));
    }
    let (a, b) = (a.dot(&normals(4, 4, 5)), b.dot(&normals(4, 4, 6)));
    let found = principal_angles(a.view(), b.view()).unwrap();
    assert!(found.iter().zip(angles).all(|(found, angle)| (found - angle).abs() < 2e-14), "{found:?}");
    // Dependent columns span no more, and a subspace of three dimensions has three angles.
    let more = ndarray::concatenate![Axis(1), a, a.slice(s![.., ..2])];
    let again = principal_angles(more.view(), b.view()).unwrap();
    assert!(again.iter().zip(angles).all(|(found, angle)| (found - angle).abs() < 2e-14) && again.len() == 4);
    assert_eq!(principal_angles(a.view(), b.slice(s![.., ..3])).unwrap().len(), 3);
    assert!(principal_angles(Array2::zeros((12, 2)).view(), b.view()).unwrap().is_empty());
}

#[test]
fn quantiles_of_two_spectra() {
    let first: Vec<f64> = (0..101).map(|i| i as f64).collect();
    let second: Vec<f64> = (0..201).rev().map(|i| i as f64 / 2.0 * 1.1).collect();
    let found = compare_quantiles(&first, &second, &[0.0, 0.25, 0.5, 1.0]).unwrap();
    assert!(found.pairs.iter().all(|pair| (pair.second - 1.1 * pair.first).abs() < 1e-12), "{found:?}");
    assert!((found.largest_relative_deviation.unwrap() - 0.1).abs() < 1e-12);
    // Against all differences of the empirical distributions.
    let below =
        |sample: &[f64], x: f64| sample.iter().filter(|value| **value <= x).count() as f64 / sample.len() as f64;
    let all = first.iter().chain(&second).map(|&x| (below(&first, x) - below(&second, x)).abs()).fold(0.0, f64::max);
    assert!((found.distance - all).abs() < 1e-15);
    assert_eq!(compare_quantiles(&first, &first, &[0.3]).unwrap().distance, 0.0);
    assert_eq!(compare_quantiles(&[0.0], &[1.0], &[0.5]).unwrap().largest_relative_deviation, None);
    assert!(compare_quantiles(&[], &[1.0], &[]).is_err() && compare_quantiles(&[1.0], &[1.0], &[1.5]).is_err());
}

#[test]
fn drift_by_hand() {
    let (before, step) = (features(6, 9, 1), outer(&unit(6, 2), &unit(9, 3)) * 5.0);
    let found = drift(before.view(), (&before + &step).view()).unwrap();
    assert!((found.frobenius - 5.0).abs() < 1e-12 && (found.operator.unwrap() - 5.0).abs() < 1e-12);
    assert!((found.per_root_width - 5.0 / 3.0).abs() < 1e-12);
    let norm = before.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!((found.relative.unwrap() - 5.0 / norm).abs() < 1e-12);
    let still = drift(Array2::zeros((2, 2)).view(), Array2::zeros((2, 2)).view()).unwrap();
    assert_eq!((still.frobenius, still.relative, still.operator), (0.0, None, Some(0.0)));
    let far = drift((&before * 1e200).view(), (&before * 3e200).view()).unwrap();
    assert!((far.relative.unwrap() - 2.0).abs() < 1e-12 && (far.relative_operator.unwrap() - 2.0).abs() < 1e-9);
    assert!(drift(before.view(), step.t()).is_err());
}

/// The density of noise from products, smoothed, against the law.
#[test]
fn a_smoothed_density_is_that_of_the_law() {
    let product = gram(&normals(200, 400, 5)) / 400.0;
    let density = StochasticLanczos::new(40).probes(40).seed(1).run(&product).unwrap();
    let law = MarchenkoPastur::new(0.5, 1.0).unwrap();
    let grid: Vec<f64> = (0..300).map(|i| -0.3 + 0.0125 * i as f64).collect();
    let curve = smoothed(&density.nodes(), &grid, 0.08).unwrap();
    let mass: f64 = curve.iter().sum::<f64>() * 0.0125;
    assert!((mass - 1.0).abs() < 1e-3, "{mass}");
    for (x, height) in grid.iter().zip(&curve).filter(|(x, _)| **x > 0.4 && **x < 2.4) {
        assert!((height - law.density(*x)).abs() < 0.06, "{x}: {height} {}", law.density(*x));
    }
    assert!(smoothed(&[Node { value: f64::NAN, weight: 1.0 }], &[0.0], 1.0).is_err());
    assert!(smoothed(&[], &[0.0], 0.0).is_err());
}
