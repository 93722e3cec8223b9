//! Series: named points and how they look.

use super::boxes::BoxSummary;
use super::panel::Panel;

/// Points with a common name and colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) look: Look,
    pub(super) spread: Spread,
    pub(super) dashed: bool,
    pub(super) colour: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Look {
    Line,
    Points,
    LineAndPoints,
    /// A line that keeps its height up to the next point.
    Stairs,
    /// A line with the area under it.
    Area,
    /// Separate bars of this width around their points.
    Bars(f64),
    /// The transparent outline of adjacent bars, for overlapping histograms.
    Steps(f64),
    /// A box of this width per point, which is at its median.
    Boxes(f64, Vec<BoxSummary>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spread {
    None,
    /// Error bars, one length per point.
    Errors(Vec<f64>),
    /// The lower and upper edge of an area, one pair per point.
    Band(Vec<(f64, f64)>),
}

impl Series {
    pub(super) fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, look: Look) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), points, look, spread: Spread::None, dashed: false, colour: None }
    }

    /// Points joined in order. A series without a name is not in the legend.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::Line)
    }

    /// Unconnected points.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::Points)
    }

    /// Points joined in order, each with a mark.
    pub fn marked_line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::LineAndPoints)
    }

    /// A line that keeps its height from each point to the next, such as a monotone fit.
    pub fn stairs(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::Stairs)
    }

    /// The straight line of least squares through the finite points, from the smallest to the largest x; empty if all x
    /// are equal.
    pub fn fitted_line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let drawable = |x: f64| x.abs() <= 1e300;
        let points: Vec<(f64, f64)> = points.into_iter().filter(|&(x, y)| drawable(x) && drawable(y)).collect();
        let ends = points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &(x, _)| (a.min(x), b.max(x)));
        // Relative to the range, so that no square overflows.
        let (wide, high) = (ends.1 - ends.0, points.iter().fold(0.0, |most: f64, point| most.max(point.1.abs())));
        if points.is_empty() || wide <= 0.0 {
            return Self::new(name, [], Look::Line);
        }
        let high = if high > 0.0 { high } else { 1.0 };
        let n = points.len() as f64;
        let scaled = || points.iter().map(|&(x, y)| ((x - ends.0) / wide, y / high));
        let (mean_x, mean_y) = scaled().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y / n));
        let (both, own) = scaled()
            .fold((0.0, 0.0), |sum, (x, y)| (sum.0 + (x - mean_x) * (y - mean_y), sum.1 + (x - mean_x) * (x - mean_x)));
        let at = |x: f64| high * (mean_y + both / own * (x - mean_x));
        Self::new(name, [(ends.0, at(0.0)), (ends.1, at(1.0))], Look::Line)
    }

    /// Bars from zero, with this width in units of the horizontal axis.
    pub fn bars(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, width: f64) -> Self {
        Self::new(name, points, Look::Bars(width))
    }

    /// An error of every point, drawn as a bar up and down. Points beyond the end of the list have none.
    #[must_use]
    pub fn errors(mut self, errors: impl IntoIterator<Item = f64>) -> Self {
        self.spread = Spread::Errors(errors.into_iter().collect());
        self
    }

    /// The lower and upper end of every point, drawn as an area behind the line.
    #[must_use]
    pub fn band(mut self, ends: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.spread = Spread::Band(ends.into_iter().collect());
        self
    }

    /// Draws the line dashed.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Uses the colour with this number instead of that of the index in the panel, so that a series keeps its colour in
    /// every panel, or a fit has the colour of its points.
    #[must_use]
    pub fn colour(mut self, number: usize) -> Self {
        self.colour = Some(number);
        self
    }

    /// All vertical positions, including the ends of error bars.
    pub(super) fn heights(&self) -> Vec<f64> {
        let mut heights: Vec<f64> = self.points.iter().map(|point| point.1).collect();
        match &self.spread {
            Spread::None => {}
            Spread::Errors(errors) => {
                heights.extend(self.points.iter().zip(errors).flat_map(|(point, e)| [point.1 - e, point.1 + e]));
            }
            Spread::Band(ends) => heights.extend(ends.iter().flat_map(|&(low, high)| [low, high])),
        }
        if let Look::Boxes(_, boxes) = &self.look {
            heights.extend(boxes.iter().flat_map(BoxSummary::heights));
        }
        heights
    }

    /// All horizontal positions, including the edges of bars.
    pub(super) fn extents(&self) -> impl Iterator<Item = f64> {
        let room = match self.look {
            Look::Bars(width) | Look::Steps(width) | Look::Boxes(width, _) => width / 2.0,
            _ => 0.0,
        };
        self.points.iter().flat_map(move |point| [point.0 - room, point.0 + room])
    }

    /// Numbers that cannot be drawn in this panel.
    pub(super) fn skipped(&self, panel: &Panel) -> usize {
        match &self.look {
            Look::Boxes(_, boxes) => boxes.iter().map(|summary| summary.undrawable(&panel.y)).sum(),
            _ => self.points.iter().filter(|&&point| !panel.drawable(point)).count(),
        }
    }

    /// The number of points with a mark.
    pub(super) fn marked(&self, panel: &Panel) -> usize {
        match self.look {
            Look::Points | Look::LineAndPoints => self.points.iter().filter(|&&point| panel.drawable(point)).count(),
            _ => 0,
        }
    }

    /// Whether a box has more outliers than are drawn.
    pub(super) fn hides_fliers(&self) -> bool {
        matches!(&self.look, Look::Boxes(_, boxes) if boxes.iter().any(|summary| summary.hidden() > 0))
    }
}
