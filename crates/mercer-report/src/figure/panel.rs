//! Panels: two axes, series, and guide lines.

use super::axis::Axis;
use super::field::Field;
use super::heat::Heat;
use super::series::{Look, Series};
use super::strips::Strip;
use super::svg::{Anchor, grouped};
use super::thin;

/// One plot of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    pub(super) helpers: Vec<Helper>,
    /// Without ticks and frame, and with equal units in both directions: a projection from more dimensions.
    pub(super) bare: bool,
    pub(super) kind: Kind,
    /// A surface in colours behind the series.
    pub(super) field: Option<Field>,
    /// Points that were dropped before they became part of a series.
    pub(super) left_out: usize,
    /// Points in three dimensions, if the series are a projection of them.
    pub(super) space: Option<Space>,
}

/// Points in three dimensions, scaled to `[-½, ½]` per axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Space {
    pub(super) labels: [String; 3],
    /// The ends of each axis, which are at −½ and ½.
    pub(super) ends: [(f64, f64); 3],
    /// The points of each class.
    pub(super) points: Vec<Vec<[f64; 3]>>,
}

/// What a panel consists of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Axes and series.
    Plot,
    /// A matrix in colours.
    Heat(Heat),
    /// Rows of pictures or texts.
    Strips(Vec<Strip>),
}

/// A guide line behind the data.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Helper {
    /// Equality of both axes.
    Diagonal,
    Horizontal(f64),
    Vertical(f64),
    Edge([(f64, f64); 2]),
    Text((f64, f64), String, Hold),
}

/// Which side of a text is anchored at its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hold {
    Left,
    Middle,
    Right,
}

impl From<Hold> for Anchor {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::Left => Anchor::Start,
            Hold::Middle => Anchor::Middle,
            Hold::Right => Anchor::End,
        }
    }
}

impl Panel {
    /// An empty panel with linear axes; the title may be empty.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            series: Vec::new(),
            helpers: Vec::new(),
            bare: false,
            kind: Kind::Plot,
            field: None,
            left_out: 0,
            space: None,
        }
    }

    /// A panel of lines, or of any other series.
    pub fn lines(title: impl Into<String>, x: Axis, y: Axis, series: impl IntoIterator<Item = Series>) -> Self {
        Self { series: series.into_iter().collect(), ..Self::new(title).x(x).y(y) }
    }

    /// The horizontal axis.
    #[must_use]
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The vertical axis.
    #[must_use]
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Adds a series on top of the earlier ones.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a dashed line where both axes are equal.
    #[must_use]
    pub fn diagonal(mut self) -> Self {
        self.helpers.push(Helper::Diagonal);
        self
    }

    /// Adds a dashed horizontal line.
    #[must_use]
    pub fn horizontal(mut self, y: f64) -> Self {
        self.helpers.push(Helper::Horizontal(y));
        self
    }

    /// Adds a dashed vertical line.
    #[must_use]
    pub fn vertical(mut self, x: f64) -> Self {
        self.helpers.push(Helper::Vertical(x));
        self
    }

    /// Whether a point can be drawn.
    pub(super) fn drawable(&self, (x, y): (f64, f64)) -> bool {
        self.x.drawable(x) && self.y.drawable(y)
    }

    /// Whether bars stand on the horizontal axis.
    pub(super) fn stands(&self) -> bool {
        self.series.iter().any(|series| matches!(series.look, Look::Bars(_) | Look::Steps(_) | Look::Area))
    }

    pub(super) fn skipped(&self) -> usize {
        self.left_out + self.series.iter().map(|series| series.skipped(self)).sum::<usize>()
    }

    /// How many points of each series are drawn with a mark.
    pub(super) fn shares(&self) -> Vec<usize> {
        thin::shares(&self.series.iter().map(|series| series.marked(self)).collect::<Vec<_>>())
    }

    /// What a reader should know about the drawing, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let all: usize = self.series.iter().map(|series| series.marked(self)).sum();
        let shown: usize = self.shares().iter().sum();
        let mut notes = Vec::new();
        if shown < all {
            notes.push(format!("{} of {} points shown", grouped(shown), grouped(all)));
        }
        if self.series.iter().any(Series::hides_fliers) {
            notes.push("+n: further outliers, not drawn".to_owned());
        }
        notes
    }
}
