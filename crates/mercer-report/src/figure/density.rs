//! Densities: Gaussian kernel estimates of one or two dimensions.
//!
//! ```text
//! f(x) = (1/n) Σᵢ N(x − xᵢ; h²),   h = 0.9 min(s, IQR / 1.34) n^(−1/5)      (Silverman 1986, eq. 3.31)
//! ```
//!
//! Numbers are shared out to the points of a fine grid first, so that the cost does not grow with their number squared.
//! All work is in fractions of a range, so nothing overflows.

use super::axis::Axis;
use super::field::Field;
use super::panel::Panel;
use super::quantiles::quantile;
use super::series::{Look, Series};

/// Points of a curve.
const POINTS: usize = 256;
/// No bandwidth is smaller than this part of the range of all sets: about a pixel and a half.
const FINEST: f64 = 1.0 / 200.0;
/// Columns and rows of a map.
const GRID: (usize, usize) = (120, 90);

impl Panel {
    /// The densities of sets of numbers, as curves with an area of one. Numbers that are not finite count as
    /// [skipped](super::Figure::skipped). A set of equal numbers is a narrow peak; an empty one is only in the legend.
    pub fn density<N: Into<String>>(
        title: impl Into<String>,
        label: impl Into<String>,
        sets: impl IntoIterator<Item = (N, Vec<f64>)>,
    ) -> Self {
        let axis = Axis::linear(label);
        let mut panel = Self::new(title).y(Axis::linear("density"));
        let mut sets: Vec<(String, Vec<f64>)> = sets.into_iter().map(|(name, values)| (name.into(), values)).collect();
        for (_, values) in &mut sets {
            let all = values.len();
            values.retain(|&x| axis.drawable(x));
            panel.left_out += all - values.len();
            values.sort_unstable_by(f64::total_cmp);
        }
        // The shared range, with room if all numbers are equal.
        let (low, high) = axis.fit(sets.iter().flat_map(|set| set.1.iter().copied()), false).values();
        let shared = high - low;
        for (name, values) in sets {
            let fractions: Vec<f64> = values.iter().map(|x| (x - low) / shared).collect();
            let curve = curve(&fractions).into_iter().map(|(t, density)| (low + t * shared, density / shared));
            panel.series.push(Series::new(name, curve.collect::<Vec<_>>(), Look::Area));
        }
        panel.x(axis)
    }

    /// The density of points in the plane, in shades relative to the densest place. Series can be drawn on top. Points
    /// that the axes cannot show count as [skipped](super::Figure::skipped).
    pub fn density_map(
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let mut points: Vec<(f64, f64)> = points.into_iter().collect();
        let all = points.len();
        points.retain(|&(a, b)| x.drawable(a) && y.drawable(b));
        let across = x.fit(points.iter().map(|point| point.0), false);
        let up = y.fit(points.iter().map(|point| point.1), false);
        let inside = |place: &f64| (0.0..=1.0).contains(place);
        let places = points.iter().map(|point| (across.place(point.0), up.place(point.1)));
        let places: Vec<(f64, f64)> = places.filter(|(a, b)| inside(a) && inside(b)).collect();
        let ((left, right), (low, high)) = (across.values(), up.values());
        let field = Field { columns: GRID.0, values: surface(&places) };
        Self { field: Some(field), left_out: all - points.len(), ..Self::new(title) }
            .x(x.range(left, right))
            .y(y.range(low, high))
    }
}

/// The density of sorted fractions of the range, three bandwidths beyond their ends.
fn curve(sorted: &[f64]) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let width = bandwidth(sorted).max(FINEST);
    let (from, to) = (first - 3.0 * width, last + 3.0 * width);
    let step = (to - from) / (POINTS - 1) as f64;
    let mut bins = vec![0.0; POINTS];
    for x in sorted {
        share_out((x - from) / step, POINTS, |at, part| bins[at] += part);
    }
    let smooth = blur(&bins, width / step);
    let mass = sorted.len() as f64 * step;
    smooth.iter().enumerate().map(|(at, weight)| (from + at as f64 * step, weight / mass)).collect()
}

/// Silverman's rule of thumb. A quartile distance of zero says nothing about the scale.
fn bandwidth(sorted: &[f64]) -> f64 {
    let quartiles = quantile(sorted, 0.75).zip(quantile(sorted, 0.25)).map_or(0.0, |(q3, q1)| (q3 - q1) / 1.34);
    let scale = deviation(sorted.iter().copied());
    let scale = if quartiles > 0.0 { scale.min(quartiles) } else { scale };
    0.9 * scale * (sorted.len() as f64).powf(-0.2)
}

fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.clone().sum::<f64>() / n;
    (values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// Shares a weight of one between the two grid points next to a place.
fn share_out(place: f64, points: usize, mut add: impl FnMut(usize, f64)) {
    let place = place.clamp(0.0, (points - 1) as f64);
    let (at, rest) = ((place as usize).min(points - 2), place - place.floor().min((points - 2) as f64));
    add(at, 1.0 - rest);
    add(at + 1, rest);
}

/// Weights on a grid, smoothed by a Gaussian whose deviation is in units of the grid. The total remains, but for what
/// leaves the grid.
fn blur(weights: &[f64], width: f64) -> Vec<f64> {
    let bell: Vec<f64> = (0..weights.len()).map(|d| (-0.5 * (d as f64 / width).powi(2)).exp()).collect();
    let total = 2.0 * bell.iter().sum::<f64>() - bell[0];
    let near = |at: usize| weights.iter().enumerate().map(move |(other, weight)| (at.abs_diff(other), weight));
    (0..weights.len()).map(|at| near(at).map(|(d, weight)| weight * bell[d]).sum::<f64>() / total).collect()
}

/// The density of places in the unit square, row by row from the top; 1 where it is largest.
fn surface(places: &[(f64, f64)]) -> Vec<f64> {
    let (columns, rows) = GRID;
    let mut grid = vec![vec![0.0; columns]; rows];
    for &(x, y) in places {
        share_out(x * (columns - 1) as f64, columns, |column, part| {
            share_out((1.0 - y) * (rows - 1) as f64, rows, |row, other| grid[row][column] += part * other);
        });
    }
    // Scott's rule in two dimensions; at least one and a half cells.
    let rule = (places.len().max(1) as f64).powf(-1.0 / 6.0);
    let width = |scale: f64, cells: usize| (scale * rule * (cells - 1) as f64).max(1.5);
    let across = width(deviation(places.iter().map(|place| place.0)), columns);
    let along = width(deviation(places.iter().map(|place| place.1)), rows);
    let wide: Vec<Vec<f64>> = grid.iter().map(|row| blur(row, across)).collect();
    let column = |at: usize| blur(&wide.iter().map(|row| row[at]).collect::<Vec<_>>(), along);
    let smooth: Vec<Vec<f64>> = (0..columns).map(column).collect();
    let most = smooth.iter().flatten().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    (0..rows).flat_map(|row| smooth.iter().map(move |column| column[row] / most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    fn area(points: &[(f64, f64)]) -> f64 {
        points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    }

    /// Against the sum over all numbers, without a grid.
    #[test]
    fn curves_agree_with_the_definition() {
        let values: Vec<f64> = (0..400).map(|at| (f64::from(at) * 0.7).sin() * 3.0 + f64::from(at % 7)).collect();
        let panel = Panel::density("d", "x", [("a", values.clone())]);
        let mut sorted = values;
        sorted.sort_unstable_by(f64::total_cmp);
        let h = bandwidth(&sorted);
        let exact = |x: f64| {
            let bell = |y: &f64| (-0.5 * ((x - y) / h).powi(2)).exp();
            sorted.iter().map(bell).sum::<f64>() / (sorted.len() as f64 * h * std::f64::consts::TAU.sqrt())
        };
        let points = &panel.series[0].points;
        let largest = points.iter().map(|point| point.1).fold(0.0, f64::max);
        assert!(points.iter().all(|&(x, y)| (y - exact(x)).abs() < 2e-3 * largest));
        assert!((area(points) - 1.0).abs() < 0.01, "{}", area(points));
    }

    #[test]
    fn odd_sets_have_densities_too() {
        let sets = [("none", vec![]), ("one", vec![3.0]), ("same", vec![2.0; 9]), ("bad", vec![f64::NAN, 1.0])];
        let panel = Panel::density("d", "x", sets);
        let areas: Vec<f64> = panel.series.iter().map(|series| area(&series.points)).collect();
        assert_eq!(areas[0], 0.0);
        assert!(areas[1..].iter().all(|area| (area - 1.0).abs() < 0.01), "{areas:?}");
        let figure = Figure::new("").panel(panel);
        assert_eq!(figure.skipped(), 1);
        assert!(!figure.to_svg().contains("NaN"));
        for hard in [vec![], vec![f64::NAN], vec![1e300, -1e300], vec![0.0; 2], vec![1e-300, 2e-300]] {
            assert!(!Figure::new("").panel(Panel::density("", "", [("s", hard)])).to_svg().contains("NaN"));
        }
    }

    #[test]
    fn maps_are_darkest_where_points_are() {
        let cloud = (0..500).map(|at| (f64::from(at % 10) * 0.01, 100.0 + f64::from(at % 7)));
        let panel = Panel::density_map("m", Axis::linear("x"), Axis::log("y"), cloud.chain([(10.0, 1.0), (1.0, -1.0)]));
        let field = panel.field.as_ref().unwrap();
        assert_eq!(field.values.len(), GRID.0 * GRID.1);
        let darkest = field.values.iter().position(|&value| value == 1.0).unwrap();
        let (row, column) = (darkest / GRID.0, darkest % GRID.0);
        assert!(row < GRID.1 / 6 && column < GRID.0 / 6, "at the top left: {row} {column}");
        let figure = Figure::new("").panel(panel);
        assert_eq!(figure.skipped(), 1);
        assert_eq!(figure.to_svg().matches("<image").count(), 1);
        for hard in [vec![], vec![(1.0, 1.0); 5], vec![(f64::NAN, 0.0)], vec![(1e300, -1e300), (-1e300, 1e300)]] {
            let panel = Panel::density_map("", Axis::linear(""), Axis::linear(""), hard);
            crate::figure::tests::well_formed(&Figure::new("").panel(panel).to_svg());
        }
    }
}
