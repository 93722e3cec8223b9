//! Series: named points and how they look.

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

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    Line,
    Points,
    LineAndPoints,
    /// Separate bars of this width around their points.
    Bars(f64),
    /// The transparent outline of adjacent bars, for overlapping histograms.
    Steps(f64),
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
        heights
    }

    /// All horizontal positions, including the edges of bars.
    pub(super) fn extents(&self) -> impl Iterator<Item = f64> {
        let room = match self.look {
            Look::Bars(width) | Look::Steps(width) => width / 2.0,
            _ => 0.0,
        };
        self.points.iter().flat_map(move |point| [point.0 - room, point.0 + room])
    }
}
