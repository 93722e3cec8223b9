//! Quantile–quantile plots of two samples.

use super::axis::Axis;
use super::panel::Panel;
use super::series::Series;

/// The most quantiles that are drawn.
const POINTS: usize = 200;

/// The quantile of sorted numbers at a fraction, interpolated between neighbours; none of no numbers.
pub(super) fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let place = fraction.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    let rest = place - place.floor();
    Some(below * (1.0 - rest) + above * rest)
}

impl Panel {
    /// The quantiles of one sample against those of another, with the diagonal on which equal distributions lie. There
    /// are as many points as the smaller sample has numbers, up to 200, and both axes show the same range. Numbers that
    /// are not finite count as [skipped](super::Figure::skipped).
    pub fn quantiles(
        title: impl Into<String>,
        x: (impl Into<String>, Vec<f64>),
        y: (impl Into<String>, Vec<f64>),
    ) -> Self {
        let axis = Axis::linear("");
        let all = x.1.len() + y.1.len();
        let sorted = |mut values: Vec<f64>| {
            values.retain(|&value| axis.drawable(value));
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let (across, up) = (sorted(x.1), sorted(y.1));
        let count = across.len().min(up.len()).min(POINTS);
        let points = (0..count).filter_map(|at| {
            let fraction = if count == 1 { 0.5 } else { at as f64 / (count - 1) as f64 };
            Some((quantile(&across, fraction)?, quantile(&up, fraction)?))
        });
        let points: Vec<(f64, f64)> = points.collect();
        let (low, high) = axis.fit(points.iter().flat_map(|point| [point.0, point.1]), false).values();
        let mut panel = Self::new(title)
            .x(Axis::linear(x.0).range(low, high))
            .y(Axis::linear(y.0).range(low, high))
            .series(Series::points("", points))
            .diagonal();
        panel.left_out = all - across.len() - up.len();
        panel
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|p| quantile(&[1.0, 2.0, 4.0], p)), [1.0, 1.5, 2.0, 4.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }

    /// A shifted sample lies on a line parallel to the diagonal, whatever the sizes.
    #[test]
    fn a_shift_is_a_parallel() {
        let left: Vec<f64> = (0..=1000).rev().map(f64::from).chain([f64::NAN]).collect();
        let right: Vec<f64> = (0..=4000).map(|at| f64::from(at) / 4.0 + 50.0).collect();
        let panel = Panel::quantiles("q", ("left", left), ("right", right));
        assert_eq!(panel.series[0].points.len(), 200);
        assert!(panel.series[0].points.iter().all(|(x, y)| (y - x - 50.0).abs() < 1e-9));
        assert_eq!(panel.x.range, panel.y.range);
        let figure = Figure::new("").panel(panel);
        assert_eq!(figure.skipped(), 1);
        assert!(figure.to_svg().contains("stroke-dasharray=\"5 4\""));
        for hard in [vec![], vec![3.0], vec![f64::NAN], vec![1e300, -1e300]] {
            Figure::new("").panel(Panel::quantiles("", ("", hard.clone()), ("", hard))).to_svg();
        }
    }
}
