//! The attribution of a score to training samples.
//!
//! A machine `s_c(x) = Σᵢ W_{ci} κ(x, xᵢ) + b_c` is a sum over its training samples,
//!
//! ```text
//! A(x, xᵢ)^c = W_{ci} κ(x, xᵢ) + b_c/N        Σᵢ A(x, xᵢ)^c = s_c(x)
//! ```
//!
//! Engel et al. 2023 (arXiv 2305.14585), equation 3. The largest attributions alone mislead, as the report warns: they
//! are a small part of the sum. A [`Summary`] therefore has the distribution beside them: per group of training samples
//! (classes, as in the report's Figure 2C) the mean, quartiles, whiskers and fliers of a box plot; over all samples the
//! effective number `(Σ|A|)²/ΣA²`, which is N if all are equal and 1 if there is only one, and the share of the k
//! largest in `Σ|A|`.

use serde::Serialize;

/// A training sample with its attribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Example {
    /// The training sample.
    pub train: usize,
    /// `A(x, xᵢ)^c`.
    pub attribution: f64,
    /// `κ(x, xᵢ)`.
    pub kernel: f64,
}

/// The attribution of one score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The sum of all attributions, which is the score.
    pub sum: f64,
    /// The largest attributions, largest first.
    pub supporting: Vec<Example>,
    /// The smallest attributions, smallest first.
    pub opposing: Vec<Example>,
    /// `(Σ|A|)²/ΣA²`; zero if all attributions are.
    pub effective: f64,
    /// The share in `Σ|A|` of the largest `|A|`, as many as there are supporting samples.
    pub top_share: f64,
    /// The distribution in each group.
    pub groups: Vec<Distribution>,
}

/// The distribution of the attributions of a group, as drawn in a box plot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// The number of samples; all other numbers are zero if there are none.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// A quarter of them is below.
    pub q1: f64,
    /// The middle.
    pub median: f64,
    /// A quarter of them is above.
    pub q3: f64,
    /// The smallest one within 1.5 interquartile ranges of the box.
    pub low_whisker: f64,
    /// The largest one within that range.
    pub high_whisker: f64,
    /// The number beyond the whiskers.
    pub n_fliers: usize,
}

impl Distribution {
    /// Whether the mean lies inside the box. If it does not, a few samples dominate the sum.
    pub fn mean_is_inside(&self) -> bool {
        self.q1 <= self.mean && self.mean <= self.q3
    }

    /// The distribution of these numbers, in any order. Quartiles are interpolated between neighbours.
    pub fn new(values: &mut [f64]) -> Self {
        let n = values.len();
        if n == 0 {
            return Self::default();
        }
        // Summed before the order changes, so that the mean does not depend on it.
        let mean = values.iter().sum::<f64>() / n as f64;
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|share| quantile(values, share));
        let reach = 1.5 * (q3 - q1);
        let (mut low_whisker, mut high_whisker, mut n_fliers) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        for &value in values.iter() {
            if value < q1 - reach || value > q3 + reach {
                n_fliers += 1;
            } else {
                low_whisker = low_whisker.min(value);
                high_whisker = high_whisker.max(value);
            }
        }
        if n_fliers == n {
            (low_whisker, high_whisker) = (q1, q3);
        }
        Self { n, mean, q1, median, q3, low_whisker, high_whisker, n_fliers }
    }
}

/// A quantile, interpolated; changes the order of the numbers.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    let place = share * (values.len() - 1) as f64;
    let below = place.floor() as usize;
    let (_, &mut low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let next = above.iter().copied().fold(f64::INFINITY, f64::min);
    if next.is_finite() { low + (place - below as f64) * (next - low) } else { low }
}

/// Training samples in groups, such as their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// All samples, group by group.
    order: Vec<usize>,
    /// Where each group ends.
    ends: Vec<usize>,
}

impl Grouping {
    /// Groups samples by a number below `n_groups` each.
    ///
    /// # Panics
    /// If a number is not below `n_groups`.
    pub fn new(group_of: &[usize], n_groups: usize) -> Self {
        let mut counts = vec![0; n_groups];
        group_of.iter().for_each(|&group| counts[group] += 1);
        let ends: Vec<usize> = counts
            .iter()
            .scan(0, |end, count| {
                Some({
                    *end += count;
                    *end
                })
            })
            .collect();
        let mut next: Vec<usize> = ends.iter().zip(&counts).map(|(end, count)| end - count).collect();
        let mut order = vec![0; group_of.len()];
        for (sample, &group) in group_of.iter().enumerate() {
            order[next[group]] = sample;
            next[group] += 1;
        }
        Self { order, ends }
    }

    /// The number of groups.
    pub fn n_groups(&self) -> usize {
        self.ends.len()
    }

    /// The samples of each group.
    fn groups(&self) -> impl Iterator<Item = &[usize]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.order[start..end])
    }
}

/// The attributions `W_{ci} κ(x, xᵢ) + b_c/N` of one score, from kernel values and weights of all training samples.
pub fn attributions(kernel: &[f64], weights: &[f64], bias: f64) -> Vec<f64> {
    let share = bias / kernel.len().max(1) as f64;
    kernel.iter().zip(weights).map(|(k, w)| w * k + share).collect()
}

/// Summarises the attributions of one score to all training samples, with `k` samples at either end.
///
/// ```
/// use mercer_lens::{Grouping, attributions, summarise};
///
/// let kernel = [1.0, 0.5, 0.0];
/// let found = summarise(&kernel, &attributions(&kernel, &[2.0, -2.0, 7.0], 0.3), 1, &Grouping::new(&[0, 0, 1], 2));
/// assert!((found.sum - 1.3).abs() < 1e-12);
/// assert_eq!((found.supporting[0].train, found.opposing[0].train), (0, 1));
/// ```
pub fn summarise(kernel: &[f64], all: &[f64], k: usize, grouping: &Grouping) -> Summary {
    let (mut size, mut squares) = (0.0, 0.0);
    for value in all {
        size += value.abs();
        squares += value * value;
    }
    let example = |&train: &usize| Example { train, attribution: all[train], kernel: kernel[train] };
    let supporting: Vec<Example> = first(all, k, |value| -value).iter().map(example).collect();
    let opposing: Vec<Example> = first(all, k, |value| value).iter().map(example).collect();
    let largest = first(all, k, |value| -value.abs());
    let mut own = Vec::new();
    let distribution = |group: &[usize]| {
        own.clear();
        own.extend(group.iter().map(|&sample| all[sample]));
        Distribution::new(&mut own)
    };
    Summary {
        sum: all.iter().sum(),
        effective: if squares > 0.0 { size * size / squares } else { 0.0 },
        top_share: if size > 0.0 { largest.iter().map(|&at| all[at].abs()).sum::<f64>() / size } else { 0.0 },
        supporting,
        opposing,
        groups: grouping.groups().map(distribution).collect(),
    }
}

/// The `k` places with the smallest keys, smallest first; earlier places first on ties.
fn first(values: &[f64], k: usize, key: impl Fn(f64) -> f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    let order = |&a: &usize, &b: &usize| key(values[a]).total_cmp(&key(values[b])).then(a.cmp(&b));
    let k = k.min(places.len());
    if k == 0 {
        return Vec::new();
    }
    if k < places.len() {
        places.select_nth_unstable_by(k - 1, order);
        places.truncate(k);
    }
    places.sort_unstable_by(order);
    places
}
