//! One view of the samples (a layer, a kernel's features, the data itself), read block by block.
//!
//! ```text
//! first pass    sums over the first set of all permutations, and products of features, in each half of the samples
//! fit           MMD² of the features and of random Fourier features; a linear classifier per half; principal components
//! second pass   coordinates on the first two principal components, the classifier's score, the witness
//! ```
//!
//! The classifier is linear discriminant analysis with a ridge, trained on one half `h` and tested on the other half `g`:
//!
//! ```text
//! w = (C_h + λI)⁻¹ (μ_B,h − μ_A,h),  λ = tr(C_h)/n_h,   C the covariance of all samples of a half
//! t = w·(μ_B,g − μ_A,g) / √(wᵀC_g w · (1/n_A,g + 1/n_B,g)),   the mean over both roles of the halves
//! ```
//!
//! `C_h` holds both sets, so it is the same in all permutations: one factorisation and a few products give the classifiers of
//! all of them. (The covariance within the sets gives the same direction, up to its length.) The statistic is the held-out
//! separation `t` and not the accuracy, because accuracies of few samples are full of ties; the accuracy is reported beside it
//! ([Lopez-Paz and Oquab 2017](https://arxiv.org/abs/1610.06545)).

use super::fourier::{RandomFourier, median_distance};
use super::{MeanSums, Members};
use crate::checks::{check_count, check_rows};
use crate::error::Result;
use mercer_linalg::{check_finite, cholesky_shifted, matmul, symmetric_eigen, syrk_into};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

/// A view during the first pass.
#[derive(Clone, Debug)]
pub struct View {
    centre: Array1<f64>,
    fourier: RandomFourier,
    halves: [MeanSums; 2],
    /// Products of centred features.
    products: [Array2<f64>; 2],
    gaussian: MeanSums,
}

/// The statistics of a view for the sets as they are and all permutations.
#[derive(Clone, Debug)]
pub struct ViewStatistics {
    /// MMD² with the features themselves.
    pub linear: Vec<f64>,
    /// MMD² with a Gaussian kernel, by random features.
    pub gaussian: Vec<f64>,
    /// The held-out separation of a linear classifier.
    pub classifier: Vec<f64>,
}

/// A view after the first pass.
#[derive(Clone, Debug)]
pub struct FittedView {
    centre: Array1<f64>,
    fourier: RandomFourier,
    /// Two principal components and the two classifiers, as columns.
    directions: Array2<f64>,
    /// The middle between the two sets on the line of each classifier.
    thresholds: [f64; 2],
    explained: [f64; 2],
    witness: Array1<f64>,
}

/// The columns of [`FittedView::project`].
pub const N_PROJECTED: usize = 3;

impl View {
    /// A view whose centre and length scale come from some samples of both sets, a row each.
    ///
    /// # Errors
    /// Without samples, and for numbers that are not finite.
    pub fn new(pilot: ArrayView2<'_, f64>, n_columns: usize, n_frequencies: usize, seed: u64) -> Result<Self> {
        check_count("a view of two sets", 1, pilot.nrows())?;
        let lengthscale = median_distance(pilot)?;
        let first = pilot.row(0);
        // Differences from a sample are exactly zero where nothing changes.
        let shift = (&pilot - &first).mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(pilot.ncols()));
        let centre = &first + &shift;
        let width = pilot.ncols();
        let fourier = RandomFourier::draw(width, n_frequencies, lengthscale, seed);
        let sums = MeanSums::new(width, n_columns);
        let gaussian = MeanSums::new(fourier.n_features(), n_columns);
        let products = [Array2::zeros((width, width)), Array2::zeros((width, width))];
        Ok(Self { centre, fourier, halves: [sums.clone(), sums], products, gaussian })
    }

    /// The bytes of a view and of its fit.
    pub fn bytes(width: usize, n_columns: usize, n_frequencies: usize) -> usize {
        // Products, covariances, their sum, and a decomposition.
        let numbers = width.saturating_mul(width).saturating_mul(15);
        let sums = width.saturating_mul(8).saturating_add(n_frequencies.saturating_mul(3)).saturating_mul(n_columns);
        numbers.saturating_add(sums).saturating_add(width.saturating_mul(n_frequencies)).saturating_mul(8)
    }

    /// Adds samples, a row each.
    ///
    /// # Errors
    /// For samples of another width, and numbers that are not finite.
    pub fn add(&mut self, rows: ArrayView2<'_, f64>, members: &Members) -> Result<()> {
        check_rows("the transposed features", self.centre.len(), rows.ncols())?;
        check_finite("a view of two sets", rows)?;
        let centred = &rows - &self.centre;
        for (half, (sums, products)) in self.halves.iter_mut().zip(&mut self.products).enumerate() {
            let own: Vec<usize> = (0..rows.nrows()).filter(|&row| usize::from(members.halves[row]) == half).collect();
            if own.is_empty() {
                continue;
            }
            let features = centred.select(Axis(0), &own);
            sums.add_rows(features.view(), members.matrix.select(Axis(0), &own).view())?;
            syrk_into(1.0, features.t(), true, products.view_mut());
        }
        self.gaussian.add(self.fourier.features(centred.view()).view(), members)
    }

    /// Statistics, and what the second pass needs.
    ///
    /// # Errors
    /// If a decomposition fails.
    pub fn fit(self) -> Result<(FittedView, ViewStatistics)> {
        let Self { centre, fourier, halves, products, gaussian } = self;
        let whole = halves[0].clone().joined(&halves[1]);
        let covariances = [0, 1].map(|half| covariance(&products[half], &halves[half].total, halves[half].n_rows));
        let role = |train: usize, test: usize| {
            classifiers((&halves[train], &covariances[train]), (&halves[test], &covariances[test]))
        };
        let (one, other) = (role(0, 1)?, role(1, 0)?);
        let classifier = one.statistics.iter().zip(&other.statistics).map(|(a, b)| 0.5 * (a + b)).collect();
        let joined = &products[0] + &products[1];
        let (components, explained) = components(&covariance(&joined, &whole.total, whole.n_rows))?;
        let mut directions = Array2::zeros((centre.len(), 4));
        directions.slice_mut(s![.., ..2]).assign(&components);
        directions.column_mut(2).assign(&one.own);
        directions.column_mut(3).assign(&other.own);
        let witness = gaussian.difference(0).unwrap_or_else(|| Array1::zeros(fourier.n_features()));
        let statistics = ViewStatistics { linear: whole.mmd(), gaussian: gaussian.mmd(), classifier };
        Ok((
            FittedView {
                centre,
                fourier,
                directions,
                thresholds: [one.threshold, other.threshold],
                explained,
                witness,
            },
            statistics,
        ))
    }
}

impl FittedView {
    /// Of samples, a row each: the coordinates on the first two principal components, and the score of the classifier that
    /// was trained on the other half, positive where a sample looks like the second set.
    ///
    /// # Errors
    /// For samples of another width.
    pub fn project(&self, rows: ArrayView2<'_, f64>, halves: &[bool]) -> Result<Array2<f64>> {
        check_rows("the transposed features", self.centre.len(), rows.ncols())?;
        check_rows("the halves", rows.nrows(), halves.len())?;
        let all = matmul((&rows - &self.centre).view(), self.directions.view());
        let mut found = Array2::zeros((rows.nrows(), N_PROJECTED));
        for ((mut to, from), half) in found.outer_iter_mut().zip(all.outer_iter()).zip(halves) {
            let other = usize::from(!*half);
            (to[0], to[1]) = (from[0], from[1]);
            to[2] = from[2 + other] - self.thresholds[other];
        }
        Ok(found)
    }

    /// The witness of the Gaussian kernel: the mean similarity to the second set minus that to the first.
    ///
    /// # Errors
    /// For samples of another width.
    pub fn witness(&self, rows: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        check_rows("the transposed features", self.centre.len(), rows.ncols())?;
        let features = self.fourier.features((&rows - &self.centre).view());
        Ok(features.dot(&self.witness).to_vec())
    }

    /// The length scale of the Gaussian kernel.
    pub fn lengthscale(&self) -> f64 {
        self.fourier.lengthscale()
    }

    /// The shares of the variance that the first two components explain.
    pub fn explained(&self) -> [f64; 2] {
        self.explained
    }
}

impl MeanSums {
    /// The sums of both.
    fn joined(mut self, other: &Self) -> Self {
        self.first += &other.first;
        self.total += &other.total;
        self.first_squares += &other.first_squares;
        self.squares += other.squares;
        self.counts += &other.counts;
        self.n_rows += other.n_rows;
        self
    }

    /// The mean of the second set minus that of the first, a column per permutation; zero if one of them is empty.
    fn differences(&self) -> Array2<f64> {
        let mut found = Array2::zeros((self.total.len(), self.counts.len()));
        for (column, mut to) in found.axis_iter_mut(Axis(1)).enumerate() {
            if let Some(difference) = self.difference(column) {
                to.assign(&difference);
            }
        }
        found
    }
}

/// `(P − TTᵀ/n)/n`. A feature whose variance is not above rounding has none.
fn covariance(products: &Array2<f64>, total: &Array1<f64>, n: usize) -> Array2<f64> {
    let n = n.max(1) as f64;
    let column = total.view().insert_axis(Axis(1));
    let mut found = (products - &(&column * &(&total.view().insert_axis(Axis(0)) / n))) / n;
    for at in 0..found.nrows() {
        if found[[at, at]] <= 4.0 * f64::EPSILON * products[[at, at]] {
            found.row_mut(at).fill(0.0);
            found.column_mut(at).fill(0.0);
        }
    }
    found
}

/// The first two principal components as columns, and the share of the variance that each explains.
fn components(covariance: &Array2<f64>) -> Result<(Array2<f64>, [f64; 2])> {
    let eigen = symmetric_eigen(covariance.view())?;
    let total: f64 = eigen.values.iter().map(|value| value.max(0.0)).sum();
    let mut found = Array2::zeros((covariance.nrows(), 2));
    let mut explained = [0.0; 2];
    for (at, explained) in explained.iter_mut().enumerate().take(covariance.nrows()) {
        let vector = eigen.vectors.column(at);
        // The sign of an eigenvector is arbitrary: its largest entry becomes positive.
        let largest = vector.iter().fold(0.0_f64, |most, x| if x.abs() > most.abs() { *x } else { most });
        found.column_mut(at).assign(&(&vector * largest.signum()));
        *explained = if total > 0.0 { eigen.values[at].max(0.0) / total } else { 0.0 };
    }
    Ok((found, explained))
}

/// The classifiers that are trained on one half, for every permutation, tested on the other.
struct Classifiers {
    statistics: Vec<f64>,
    /// The classifier of the sets as they are, and the middle of the two sets.
    own: Array1<f64>,
    threshold: f64,
}

fn classifiers(
    (train, own): (&MeanSums, &Array2<f64>),
    (test, other): (&MeanSums, &Array2<f64>),
) -> Result<Classifiers> {
    let (width, n_columns) = (train.total.len(), train.counts.len());
    let trace = own.diag().sum();
    let nothing = Classifiers { statistics: vec![0.0; n_columns], own: Array1::zeros(width), threshold: 0.0 };
    if train.n_rows < 2 || test.n_rows < 2 || trace <= f64::MIN_POSITIVE {
        return Ok(nothing);
    }
    // Relative to the trace, so that squares neither overflow nor vanish.
    let scaled = own / trace;
    let factor = cholesky_shifted(scaled.view(), 1.0 / train.n_rows as f64)?;
    let weights = factor.solve(train.differences().view())?;
    let gaps = test.differences();
    let spreads = matmul(other.view(), weights.view());
    let statistic = |column: usize| {
        let (n, m) = (test.counts[column], test.n_rows as f64 - test.counts[column]);
        let w = weights.column(column);
        let spread = w.dot(&spreads.column(column));
        if n < 1.0 || m < 1.0 || spread <= 0.0 {
            return 0.0;
        }
        w.dot(&gaps.column(column)) / (spread * (1.0 / n + 1.0 / m)).sqrt()
    };
    let statistics = (0..n_columns).map(statistic).collect();
    let own = weights.column(0).to_owned();
    let threshold = middle(train, own.view()).unwrap_or(0.0);
    Ok(Classifiers { statistics, own, threshold })
}

/// The middle of the two means on a line.
fn middle(sums: &MeanSums, line: ArrayView1<'_, f64>) -> Option<f64> {
    let first = sums.first.row(0);
    let (n, m) = (sums.counts[0], sums.n_rows as f64 - sums.counts[0]);
    (n > 0.0 && m > 0.0).then(|| 0.5 * (line.dot(&first) / n + line.dot(&(&sums.total - &first)) / m))
}
