//! Densities of two sets in the plane, and their ratio at every sample: which samples of one set lie where the other is.
//!
//! A kernel density estimate with Scott's bandwidths, `σ·n^(−1/6)` along each axis, on a grid: samples are shared out
//! between the four nearest points, and the grid is blurred along both axes. The cost is linear in the number of samples.
//! The report of Pacific Northwest (§3) keeps the samples of one set where the density of the other, relative to its own, is
//! above a threshold.

use crate::checks::{check_count, check_numbers, check_rows};
use crate::error::Result;
use ndarray::Array2;

/// Points of the grid along an axis.
const POINTS: usize = 160;

/// Bandwidths beyond the outermost samples, and of a blurred point.
const REACH: f64 = 4.0;

/// Densities below this share of the largest are no longer compared: a ratio of two nothings says nothing.
const FLOOR: f64 = 1e-6;

/// For every sample of both sets in the plane (the `n_first` of the first set come first), the density of the other set over
/// that of its own.
///
/// ```
/// use mercer_lens::shift::density_ratios;
/// let x = [0.0, 0.1, 0.2, 5.0, 5.1, 5.2];
/// let found = density_ratios(&x, &x, 3)?;
/// assert!(found.iter().all(|ratio| *ratio < 0.1));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For sets without samples, and numbers that are not finite.
pub fn density_ratios(x: &[f64], y: &[f64], n_first: usize) -> Result<Vec<f64>> {
    check_rows("the second coordinates", x.len(), y.len())?;
    check_count("the density of the first set", 1, n_first.min(x.len()))?;
    check_count("the density of the second set", n_first + 1, x.len())?;
    check_numbers("the first coordinate", x)?;
    check_numbers("the second coordinate", y)?;
    let widths: Vec<[f64; 2]> =
        [0..n_first, n_first..x.len()].map(|rows| [bandwidth(&x[rows.clone()]), bandwidth(&y[rows])]).to_vec();
    let axes = [Axis::over(x, widths[0][0].max(widths[1][0])), Axis::over(y, widths[0][1].max(widths[1][1]))];
    let surface = |set: usize| {
        let rows = if set == 0 { 0..n_first } else { n_first..x.len() };
        surface((&x[rows.clone()], &y[rows]), &axes, widths[set])
    };
    let surfaces = [surface(0), surface(1)];
    let largest = surfaces.iter().flatten().fold(0.0_f64, |most, value| most.max(*value));
    let ratio = |row: usize| {
        let [first, second] = [0, 1].map(|set| axes_value(&surfaces[set], &axes, x[row], y[row]) + FLOOR * largest);
        if row < n_first { second / first } else { first / second }
    };
    Ok((0..x.len()).map(ratio).collect())
}

/// Scott's rule in the plane; a constant has a bandwidth of zero.
fn bandwidth(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    variance.sqrt() * n.powf(-1.0 / 6.0)
}

/// The grid along one axis.
struct Axis {
    low: f64,
    step: f64,
}

impl Axis {
    fn over(values: &[f64], width: f64) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min) - REACH * width;
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) + REACH * width;
        let step = (high - low) / (POINTS - 1) as f64;
        // Without any spread one cell holds everything.
        Self { low, step: if step > 0.0 { step } else { 1.0 } }
    }

    /// The point below a number, and the share of the point above.
    fn place(&self, value: f64) -> (usize, f64) {
        let place = ((value - self.low) / self.step).clamp(0.0, (POINTS - 1) as f64);
        let at = (place as usize).min(POINTS - 2);
        (at, place - at as f64)
    }
}

/// The density of samples on the grid.
fn surface((x, y): (&[f64], &[f64]), axes: &[Axis; 2], widths: [f64; 2]) -> Array2<f64> {
    let mut grid = Array2::<f64>::zeros((POINTS, POINTS));
    let weight = 1.0 / x.len() as f64;
    for (&x, &y) in x.iter().zip(y) {
        let ((i, right), (j, up)) = (axes[0].place(x), axes[1].place(y));
        grid[[i, j]] += weight * (1.0 - right) * (1.0 - up);
        grid[[i, j + 1]] += weight * (1.0 - right) * up;
        grid[[i + 1, j]] += weight * right * (1.0 - up);
        grid[[i + 1, j + 1]] += weight * right * up;
    }
    let along = blurred(&grid, widths[0] / axes[0].step);
    blurred(&along.reversed_axes().as_standard_layout().to_owned(), widths[1] / axes[1].step).reversed_axes()
}

/// Blurs every column with a Gaussian of this many steps. A narrow one still has half a step, that of the grid itself.
fn blurred(grid: &Array2<f64>, width: f64) -> Array2<f64> {
    let width = width.max(0.5);
    let reach = (REACH * width).ceil() as usize;
    let weights: Vec<f64> = (0..=reach).map(|at| (-0.5 * (at as f64 / width).powi(2)).exp()).collect();
    let total = weights[0] + 2.0 * weights[1..].iter().sum::<f64>();
    let mut found = Array2::zeros(grid.dim());
    for i in 0..POINTS {
        for j in i.saturating_sub(reach)..(i + reach + 1).min(POINTS) {
            found.row_mut(i).scaled_add(weights[i.abs_diff(j)] / total, &grid.row(j));
        }
    }
    found
}

/// The value of a surface between the points of the grid.
fn axes_value(surface: &Array2<f64>, axes: &[Axis; 2], x: f64, y: f64) -> f64 {
    let ((i, right), (j, up)) = (axes[0].place(x), axes[1].place(y));
    let low = surface[[i, j]] * (1.0 - up) + surface[[i, j + 1]] * up;
    let high = surface[[i + 1, j]] * (1.0 - up) + surface[[i + 1, j + 1]] * up;
    low * (1.0 - right) + high * right
}
