//! The accuracy of three classifiers on the first `d` principal components of a layer.
//!
//! - the votes of the ten nearest training samples (equal votes are decided for the first class),
//! - the nearest class centre,
//! - a soft-margin linear support vector machine, one class against the others. Its cost is relative to the mean square
//!   norm of the first `d` coordinates, so that one number suits layers of any width.
//!
//! `d₉₀` is the least `d` of the grid with at least 90 % of the best accuracy on that layer.

use super::{Split, share_right};
use crate::error::{LensError, Result};
use mercer_learn::classification::{Svm, WarmStart};
use mercer_linalg::{matmul, matmul_into, syrk_into};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use serde::Serialize;

/// The share of the best accuracy that `d₉₀` stands for.
const SHARE: f64 = 0.9;

/// Test samples whose distances are held at a time.
const ROWS: usize = 256;

/// Steps after which a support vector machine is taken as it is.
const STEPS: usize = 200_000;

/// Settings of the three classifiers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeSettings {
    /// Neighbours that vote.
    pub neighbours: usize,
    /// The cost of the support vector machines, relative to one over the mean square norm of the coordinates; none without it.
    pub cost: Option<f64>,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self { neighbours: 10, cost: Some(1.0) }
    }
}

/// The accuracy of the three classifiers for every number of components.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// The numbers of components.
    pub dimensions: Vec<usize>,
    /// Of the votes of the nearest samples.
    pub neighbours: Vec<f64>,
    /// Of the nearest class centre.
    pub centre: Vec<f64>,
    /// Of the support vector machines; empty without them.
    pub svm: Vec<f64>,
    /// Two-class problems of support vector machines that were stopped before they converged.
    pub n_unconverged: usize,
}

/// One number for each classifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Probed<T> {
    /// Of the votes of the nearest samples.
    pub neighbours: T,
    /// Of the nearest class centre.
    pub centre: T,
    /// Of the support vector machines.
    pub svm: Option<T>,
}

impl Curves {
    /// The best accuracy of every classifier; `None` if the layer has no components.
    pub fn best(&self) -> Option<Probed<f64>> {
        let best = |curve: &[f64]| curve.iter().copied().reduce(f64::max);
        Some(Probed { neighbours: best(&self.neighbours)?, centre: best(&self.centre)?, svm: best(&self.svm) })
    }

    /// `d₉₀` of every classifier; `None` if the layer has no components.
    pub fn d90(&self) -> Option<Probed<usize>> {
        let first = |curve: &[f64]| {
            let best = curve.iter().copied().reduce(f64::max)?;
            curve.iter().position(|&own| own >= SHARE * best).map(|at| self.dimensions[at])
        };
        Some(Probed { neighbours: first(&self.neighbours)?, centre: first(&self.centre)?, svm: first(&self.svm) })
    }
}

/// The numbers of components of the report, up to `most`, which is the last one.
///
/// ```
/// let found = mercer_lens::probe::dimensions(33);
/// assert_eq!(found, (1..=20).chain([30, 33]).collect::<Vec<_>>());
/// ```
pub fn dimensions(most: usize) -> Vec<usize> {
    const LATER: [usize; 16] = [30, 40, 50, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 1250, 1500, 1750, 2000];
    let thousands = (3..).map(|thousand| 1000 * thousand);
    let mut all: Vec<usize> = (1..=20).chain(LATER).chain(thousands).take_while(|&d| d < most).collect();
    if most > 0 {
        all.push(most);
    }
    all
}

/// Trains and tests the classifiers on the first components, for every number in `dimensions` (ascending).
///
/// # Errors
/// For sizes that do not agree, numbers that are not finite, no neighbours or more than samples, a cost that is not
/// positive, and if the run is cancelled.
pub fn curves(split: &Split<'_>, dimensions: &[usize], settings: &ProbeSettings, context: &Context) -> Result<Curves> {
    split.check()?;
    let setting = |name, value: String, reason| Err(LensError::Setting { name, value, reason });
    if settings.neighbours == 0 || settings.neighbours > split.labels.len() {
        return setting(
            "‹neighbours›",
            settings.neighbours.to_string(),
            "it must be between 1 and the number of samples",
        );
    }
    if dimensions.windows(2).any(|pair| pair[0] >= pair[1])
        || dimensions.first() == Some(&0)
        || dimensions.last().is_some_and(|&last| last > split.train.ncols())
    {
        return setting("the numbers of components", format!("{dimensions:?}"), "they must ascend within the layer");
    }
    let (svm, n_unconverged) = match settings.cost {
        Some(cost) => dividers(split, dimensions, cost, context)?,
        None => (Vec::new(), 0),
    };
    Ok(Curves {
        dimensions: dimensions.to_vec(),
        neighbours: neighbours(split, dimensions, settings.neighbours, context)?,
        centre: centres(split, dimensions),
        svm,
        n_unconverged,
    })
}

/// The first of some layers from which on the best accuracies of the classifiers differ by at most a tolerance.
pub fn agreement(best: &[Option<Probed<f64>>], tolerance: f64) -> Option<usize> {
    let agree = |found: &Option<Probed<f64>>| {
        found.is_some_and(|found| {
            let all = [Some(found.neighbours), Some(found.centre), found.svm];
            let (low, high) = all.into_iter().flatten().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
            // Shares of samples differ by rounding.
            high - low <= tolerance + 1e-12
        })
    };
    let n_last = best.iter().rev().take_while(|found| agree(found)).count();
    (n_last > 0).then(|| best.len() - n_last)
}

/// Squared distances are sums over components, so those of more components are added to those of fewer.
fn neighbours(split: &Split<'_>, dimensions: &[usize], k: usize, context: &Context) -> Result<Vec<f64>> {
    let n = split.labels.len();
    let mut right = vec![0_usize; dimensions.len()];
    for start in (0..split.test.nrows()).step_by(ROWS) {
        context.check()?;
        let rows = start..(start + ROWS).min(split.test.nrows());
        let test = split.test.slice(s![rows.clone(), ..]);
        let mut products = Array2::<f64>::zeros((rows.len(), n));
        let mut squares = Array1::<f64>::zeros(n);
        let mut from = 0;
        for (&to, right) in dimensions.iter().zip(&mut right) {
            let train = split.train.slice(s![.., from..to]);
            matmul_into(1.0, test.slice(s![.., from..to]), train.t(), true, products.view_mut());
            squares += &train.map_axis(Axis(1), |row| row.dot(&row));
            from = to;
            for (row, products) in rows.clone().zip(products.outer_iter()) {
                let vote = voted(products, &squares, split.labels, split.n_classes, k);
                *right += usize::from(vote == split.test_labels[row]);
            }
        }
    }
    Ok(right.into_iter().map(|right| right as f64 / split.test_labels.len() as f64).collect())
}

/// The class with the most votes among the `k` nearest; the squared norm of the test sample is in all distances.
fn voted(products: ArrayView1<'_, f64>, squares: &Array1<f64>, labels: &[usize], n_classes: usize, k: usize) -> usize {
    let far: Vec<(f64, usize)> =
        products.iter().zip(squares).enumerate().map(|(at, (p, square))| (square - 2.0 * p, at)).collect();
    let mut nearest = far;
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if k < nearest.len() {
        nearest.select_nth_unstable_by(k, order);
    }
    let mut votes = vec![0_usize; n_classes];
    nearest.iter().take(k).for_each(|&(_, at)| votes[labels[at]] += 1);
    (0..n_classes).fold(0, |best, class| if votes[class] > votes[best] { class } else { best })
}

/// The nearest class centre. A class without samples has none.
fn centres(split: &Split<'_>, dimensions: &[usize]) -> Vec<f64> {
    let (train, test) = (split.train, split.test);
    let mut means = Array2::<f64>::zeros((split.n_classes, train.ncols()));
    let mut counts = vec![0_usize; split.n_classes];
    for (row, &class) in train.outer_iter().zip(split.labels) {
        means.row_mut(class).scaled_add(1.0, &row);
        counts[class] += 1;
    }
    for (mut mean, &count) in means.outer_iter_mut().zip(&counts) {
        mean /= count.max(1) as f64;
    }
    let mut distances = Array2::<f64>::zeros((test.nrows(), split.n_classes));
    let mut from = 0;
    let mut found = Vec::with_capacity(dimensions.len());
    for &to in dimensions {
        for (mut row, own) in distances.outer_iter_mut().zip(test.outer_iter()) {
            for ((distance, mean), &count) in row.iter_mut().zip(means.outer_iter()).zip(&counts) {
                let pairs = own.slice(s![from..to]).into_iter().zip(mean.slice(s![from..to]));
                *distance += pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
                if count == 0 {
                    *distance = f64::INFINITY;
                }
            }
        }
        from = to;
        let decisions = crate::decisions((-&distances).view());
        found.push(share_right(&decisions, split.test_labels));
    }
    found
}

/// Support vector machines, each started from the solution with fewer components.
fn dividers(split: &Split<'_>, dimensions: &[usize], cost: f64, context: &Context) -> Result<(Vec<f64>, usize)> {
    let positive =
        |_| LensError::Setting { name: "‹svm-cost›", value: cost.to_string(), reason: "it must be positive" };
    Svm::new(cost).map_err(positive)?;
    let n = split.labels.len();
    let present: Vec<usize> = (0..split.n_classes).filter(|class| split.labels.contains(class)).collect();
    let mut gram = Array2::<f64>::zeros((n, n));
    let mut coefficients = Array2::<f64>::zeros((n, split.n_classes));
    let mut scale_before = 1.0;
    let (mut from, mut n_unconverged) = (0, 0);
    let mut found = Vec::with_capacity(dimensions.len());
    for &to in dimensions {
        syrk_into(1.0, split.train.slice(s![.., from..to]), true, gram.view_mut());
        from = to;
        if present.len() < 2 {
            // A single class: everything belongs to it.
            let decisions = vec![present.first().copied().unwrap_or(0); split.test_labels.len()];
            found.push(share_right(&decisions, split.test_labels));
            continue;
        }
        // Coefficients of kernels that are `scale` times as large are as many times smaller.
        let scale = (gram.diag().sum() / n as f64).max(f64::MIN_POSITIVE);
        let machine = Svm::new(cost / scale).map_err(positive)?.max_steps(STEPS);
        coefficients *= scale_before / scale;
        let products = matmul(gram.view(), coefficients.view());
        let mut bias = Array1::from_elem(split.n_classes, f64::NEG_INFINITY);
        for &class in &present {
            let signs: Vec<f64> = split.labels.iter().map(|&own| if own == class { 1.0 } else { -1.0 }).collect();
            let start = WarmStart { coefficients: coefficients.column(class), scores: products.column(class) };
            let solved =
                machine.separate(gram.view(), &signs, Some(start), context).map_err(|_| LensError::Cancelled)?;
            n_unconverged += usize::from(!solved.converged);
            bias[class] = solved.bias;
            coefficients.column_mut(class).assign(&ArrayView1::from(&solved.coefficients));
        }
        let weights = matmul(split.train.slice(s![.., ..to]).t(), coefficients.view());
        let scores = matmul(split.test.slice(s![.., ..to]), weights.view()) + &bias;
        scale_before = scale;
        found.push(share_right(&crate::decisions(scores.view()), split.test_labels));
    }
    Ok((found, n_unconverged))
}
