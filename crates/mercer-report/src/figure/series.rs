//! Series: named points and how they look.

/// Points of one name and one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) look: Look,
    pub(super) spread: Spread,
    pub(super) dashed: bool,
    pub(super) colour: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    Line,
    Points,
    LineAndPoints,
    /// Separate bars of this width around their points.
    Bars(f64),
    /// The outline of bars that touch, see-through: histograms lie on top of each other.
    Steps(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spread {
    None,
    /// Bars up and down by so much, point by point.
    Errors(Vec<f64>),
    /// The lower and upper edge of an area, point by point.
    Band(Vec<(f64, f64)>),
}

impl Series {
    pub(super) fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, look: Look) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), points, look, spread: Spread::None, dashed: false, colour: None }
    }

    /// Points joined in their order. A series without a name is not in the legend.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::Line)
    }

    /// Points alone.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::Points)
    }

    /// Points joined in their order, each marked.
    pub fn marked_line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points, Look::LineAndPoints)
    }

    /// Bars from zero, so wide in units of the horizontal axis.
    pub fn bars(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, width: f64) -> Self {
        Self::new(name, points, Look::Bars(width))
    }

    /// An error of every point, drawn as a bar up and down. Points beyond the list have none.
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

    /// The colour with this number instead of that of the place in the panel, so that a series keeps its colour in
    /// every panel, or a fit has that of its points.
    #[must_use]
    pub fn colour(mut self, number: usize) -> Self {
        self.colour = Some(number);
        self
    }

    /// All vertical positions, ends of errors included.
    pub(super) fn heights(&self) -> Vec<f64> {
        let mut heights: Vec<f64> = self.points.iter().map(|point| point.1).collect();
        match &self.spread {
            Spread::None => {}
            Spread::Errors(errors) => {
                heights.extend(self.points.iter().zip(errors).flat_map(|(point, e)| [point.1 - e, point.1 + e]));
            }
            Spread::Band(ends) => heights.extend(ends.iter().flat_map(|&(low, high)| [low, high])),
        }
        heights
    }

    /// All horizontal positions, edges of bars included.
    pub(super) fn extents(&self) -> impl Iterator<Item = f64> {
        let room = match self.look {
            Look::Bars(width) | Look::Steps(width) => width / 2.0,
            _ => 0.0,
        };
        self.points.iter().flat_map(move |point| [point.0 - room, point.0 + room])
    }
}
