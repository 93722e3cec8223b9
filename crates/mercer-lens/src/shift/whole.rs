//! All tests on one matrix of features.

use super::view::{FittedView, View};
use super::{Corrected, Permutations, TestKind, corrected, energy_on_a_line};
use crate::checks::check_rows;
use crate::error::Result;
use mercer_data::random::stream;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, s};

/// Rows that are worked on at a time.
const BLOCK: usize = 4096;

/// Samples that centre and length scale are taken from.
const PILOT: usize = 1000;

/// All that is found in one matrix.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The statistics of every test, for the sets as they are and all permutations.
    pub statistics: Vec<(TestKind, Vec<f64>)>,
    /// The p-values of these tests.
    pub p_values: Corrected,
    /// The view.
    pub view: FittedView,
    /// Coordinates on two principal components and the classifier's score, a row per sample.
    pub projected: Array2<f64>,
    /// The share of held-out samples that the classifier puts into their set; the mean of the shares of both sets.
    pub accuracy: f64,
}

/// The samples that centre and length scale are taken from, in order: at most a thousand of both sets, at random.
pub fn pilot_rows(n_rows: usize, seed: u64) -> Vec<usize> {
    let mut random = stream(seed, "lens/shift/pilot");
    let mut rows = rand::seq::index::sample(&mut random, n_rows, n_rows.min(PILOT)).into_vec();
    rows.sort_unstable();
    rows
}

/// Runs all tests on the features of both sets, a row per sample, those of the first set first.
///
/// ```
/// use mercer_lens::shift::{Permutations, examine};
/// let permutations = Permutations::draw(40, 40, 99, 0)?;
/// let apart = ndarray::Array2::from_shape_fn((80, 3), |(i, j)| ((i * 7 + j * 5) % 11) as f64 + if i < 40 { 0.0 } else { 9.0 });
/// let found = examine(apart.view(), &permutations, 64, 0, &mercer_run::Context::new())?;
/// assert!(found.p_values.least == 0.01 && found.accuracy > 0.9);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For another number of samples, numbers that are not finite, and if the run is cancelled.
pub fn examine(
    features: ArrayView2<'_, f64>,
    permutations: &Permutations,
    n_frequencies: usize,
    seed: u64,
    context: &Context,
) -> Result<Examined> {
    let n_rows = permutations.n_rows();
    check_rows("the features of both sets", n_rows, features.nrows())?;
    let pilot = features.select(ndarray::Axis(0), &pilot_rows(n_rows, seed));
    let mut view = View::new(pilot.view(), permutations.n_columns(), n_frequencies, seed)?;
    let blocks = || (0..n_rows).step_by(BLOCK).map(|start| start..(start + BLOCK).min(n_rows));
    for rows in blocks() {
        context.check()?;
        view.add(features.slice(s![rows.clone(), ..]), &permutations.members(rows))?;
    }
    let (view, found) = view.fit()?;
    let mut projected = Array2::zeros((n_rows, super::N_PROJECTED));
    for rows in blocks() {
        context.check()?;
        let halves = permutations.halves(rows.clone());
        projected.slice_mut(s![rows.clone(), ..]).assign(&view.project(features.slice(s![rows, ..]), halves)?);
    }
    let line = projected.column(0).to_vec();
    let statistics = vec![
        (TestKind::MmdLinear, found.linear),
        (TestKind::MmdGaussian, found.gaussian),
        (TestKind::Classifier, found.classifier),
        (TestKind::Pc1, energy_on_a_line(&line, permutations)?),
    ];
    let all: Vec<&[f64]> = statistics.iter().map(|(_, values)| values.as_slice()).collect();
    let p_values = corrected(&all)?;
    let accuracy = balanced_accuracy(&projected.column(2).to_vec(), permutations.n_first());
    Ok(Examined { statistics, p_values, view, projected, accuracy })
}

/// The mean of the shares of both sets whose scores are on their side of zero; a score of zero counts half.
pub fn balanced_accuracy(scores: &[f64], n_first: usize) -> f64 {
    let right = |scores: &[f64], sign: f64| {
        let one = |score: &f64| if *score == 0.0 { 0.5 } else { f64::from(u8::from(sign * score > 0.0)) };
        scores.iter().map(one).sum::<f64>() / scores.len().max(1) as f64
    };
    let (first, second) = scores.split_at(n_first.min(scores.len()));
    0.5 * (right(first, -1.0) + right(second, 1.0))
}
