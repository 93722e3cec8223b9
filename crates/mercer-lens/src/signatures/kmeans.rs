//! Two means, and the silhouette of two clusters.
//!
//! Lloyd's iteration from several starts; the start with the least sum of squares wins, the earlier one of a tie. The
//! first start divides the samples by the sign of their first coordinate. The others are k-means++ (Arthur and
//! Vassilvitskii 2007), drawn from the samples in the order of their distance from the origin. The clusters therefore
//! depend neither on the order of the samples nor on the signs of the coordinates.
//!
//! ```text
//! s(i) = (b − a)/max(a, b)      a = mean distance to the other samples of its cluster, b = to those of the other one
//! ```
//!
//! and 0 for a cluster of one sample (Rousseeuw 1987).

use mercer_data::random::ChaCha8Rng;
use ndarray::{Array1, ArrayView1, ArrayView2};
use rand::RngExt;

/// Lloyd's iteration on a million samples ends long before.
const MAX_ITERATIONS: usize = 300;

/// Whether each sample is in the second cluster; `None` if the samples cannot be divided.
pub(super) fn two_means(x: ArrayView2<'_, f64>, restarts: usize, random: &mut ChaCha8Rng) -> Option<Vec<bool>> {
    if x.nrows() < 2 || x.ncols() == 0 {
        return None;
    }
    let lengths: Vec<f64> = x.outer_iter().map(|row| row.iter().map(|value| value * value).sum()).collect();
    let mut order: Vec<usize> = (0..x.nrows()).collect();
    order.sort_by(|&i, &j| lengths[i].total_cmp(&lengths[j]));
    let mut best: Option<(f64, Vec<bool>)> = None;
    for restart in 0..=restarts {
        let start = if restart == 0 { Some(by_sign(x)) } else { plus_plus(x, &order, random) };
        if let Some(found) = start.and_then(|start| lloyd(x, start))
            && best.as_ref().is_none_or(|(least, _)| found.0 < least * (1.0 - 1e-12))
        {
            best = Some(found);
        }
    }
    best.map(|found| found.1)
}

fn by_sign(x: ArrayView2<'_, f64>) -> Vec<bool> {
    x.column(0).iter().map(|value| *value > 0.0).collect()
}

/// Clusters by the nearer of two centres: a random sample, and one drawn by its squared distance from the first.
fn plus_plus(x: ArrayView2<'_, f64>, order: &[usize], random: &mut ChaCha8Rng) -> Option<Vec<bool>> {
    let first = x.row(order[random.random_range(0..order.len())]);
    let squares: Vec<f64> = order.iter().map(|&i| square(x.row(i), first)).collect();
    let mut left = random.random::<f64>() * squares.iter().sum::<f64>();
    let place = squares.iter().position(|distance| {
        left -= distance;
        left < 0.0
    })?;
    let second = x.row(order[place]);
    Some(x.outer_iter().map(|row| square(row, second) < square(row, first)).collect())
}

/// Lloyd's iteration; the sum of squares and the clusters, or `None` if one of them is empty.
fn lloyd(x: ArrayView2<'_, f64>, mut second: Vec<bool>) -> Option<(f64, Vec<bool>)> {
    for _ in 0..MAX_ITERATIONS {
        let centres = [centre(x, &second, false)?, centre(x, &second, true)?];
        let nearer = |row: ArrayView1<'_, f64>| square(row, centres[1].view()) < square(row, centres[0].view());
        let next: Vec<bool> = x.outer_iter().map(nearer).collect();
        if next == second {
            break;
        }
        second = next;
    }
    let centres = [centre(x, &second, false)?, centre(x, &second, true)?];
    let squares = x.outer_iter().zip(&second).map(|(row, &at)| square(row, centres[usize::from(at)].view()));
    Some((squares.sum(), second))
}

fn centre(x: ArrayView2<'_, f64>, second: &[bool], which: bool) -> Option<Array1<f64>> {
    let (mut sum, mut count) = (Array1::zeros(x.ncols()), 0usize);
    for (row, _) in x.outer_iter().zip(second).filter(|(_, at)| **at == which) {
        sum += &row;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// The silhouette of every sample. It takes the distances of all pairs.
pub(super) fn silhouettes(x: ArrayView2<'_, f64>, second: &[bool]) -> Vec<f64> {
    let n = x.nrows();
    // The sums of distances to both clusters.
    let mut sums = vec![[0.0; 2]; n];
    for i in 0..n {
        for j in 0..i {
            let distance = square(x.row(i), x.row(j)).sqrt();
            sums[i][usize::from(second[j])] += distance;
            sums[j][usize::from(second[i])] += distance;
        }
    }
    let in_second = second.iter().filter(|at| **at).count();
    let sizes = [n - in_second, in_second];
    let of_sample = |(sums, &at): (&[f64; 2], &bool)| {
        let (own, other) = (usize::from(at), usize::from(!at));
        if sizes[own] < 2 || sizes[other] == 0 {
            return 0.0;
        }
        let (a, b) = (sums[own] / (sizes[own] - 1) as f64, sums[other] / sizes[other] as f64);
        if a.max(b) > 0.0 { (b - a) / a.max(b) } else { 0.0 }
    };
    sums.iter().zip(second).map(of_sample).collect()
}

fn square(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
