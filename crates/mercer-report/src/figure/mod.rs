//! Figures as typed data, written as SVG.
//!
//! A [`Figure`] is a grid of [`Panel`]s. A panel has two [`Axis`]es and several [`Series`], or is a matrix in colours or
//! rows of pictures and texts:
//!
//! | constructor | shows |
//! |---|---|
//! | [`Panel::lines`] | lines, marked lines, stairs, bands and error bars over two axes |
//! | [`Panel::scatter`], [`Panel::scatter3`] | points in classes; at most 5,000 are drawn, and the panel says so |
//! | [`Panel::histogram`], [`Panel::density`] | the distribution of sets of numbers |
//! | [`Panel::density_map`] | the density of points in the plane |
//! | [`Panel::boxes`] | quartiles, whiskers, means and outliers by name and group |
//! | [`Panel::quantiles`] | the quantiles of one sample against those of another |
//! | [`Panel::bars`], [`Panel::reliability`] | bars by name; accuracy by confidence |
//! | [`Panel::roc`], [`Panel::precision_recall`] | [`RankCurve`]s with their areas |
//! | [`Panel::heat_map`], [`Panel::named_heat_map`] | matrices, by groups or with all names; [`signed`](Panel::signed) around zero |
//! | [`Panel::strips`] | rows of [`Picture`]s or texts with captions |
//!
//! The SVG is written by hand: what a report needs (lines, bands, points, bars, ticks, a legend) takes a few hundred
//! lines. `plotters` brings eight crates for its SVG backend alone, places its legend on top of the data, has no error
//! bands and rounds coordinates to whole pixels.
//!
//! The same data give the same text on every machine: positions are computed in `f64` and written with two decimals,
//! ticks are multiples of 1, 2 or 5 times a power of ten and formatted from integers, and a figure has no identifiers,
//! times or random numbers, so several figures can share a page. Fonts are those of the viewer. [`Figure::to_svg`] is a
//! file with a white background; [`Figure::to_inline_svg`] takes over the text colour of the page around it.
//!
//! **What cannot be drawn is left out**: points that are not finite (or beyond ±1e300), and on a logarithmic axis those
//! that are not positive. A line has a gap there. [`Figure::skipped`] counts these points, so that a report can mention
//! them. Text is escaped.
//!
//! **A figure carries its data.** Its panels are groups, and a `<metadata>` element holds their titles, axes and series
//! as JSON, with the place of the data area. A page can therefore show values under the pointer, turn points in space and
//! save the numbers of any figure, without the program that drew it.
//!
//! ```
//! use mercer_report::{Axis, Figure, Panel, Series};
//!
//! let loss = (1..100).map(|step| (f64::from(step), 1.0 / f64::from(step)));
//! let panel = Panel::new("Training").x(Axis::linear("step")).y(Axis::log("loss")).series(Series::line("train", loss));
//! let svg = Figure::new("How it went").panel(panel).to_svg();
//! assert!(svg.starts_with("<svg") && svg.contains("How it went"));
//! ```

mod axis;
mod boxes;
mod cells;
mod chart;
mod data;
mod density;
mod describe;
mod draw;
mod field;
mod heat;
mod marks;
mod palette;
mod panel;
mod picture;
mod png;
mod quantiles;
mod rank;
mod series;
mod space;
mod strips;
mod svg;
mod thin;

use mercer_data::Existing;
use panel::Kind;
use std::path::Path;
use svg::{Anchor, Paper, Svg, shortened};

pub(crate) use data::markup_json;
pub(crate) use palette::COLOURS;
pub(crate) use png::base64;
pub(crate) use svg::{escape, grouped};

pub use axis::Axis;
pub use boxes::BoxSummary;
pub use chart::Bin;
pub use panel::Panel;
pub use picture::{Channels, Picture};
pub use rank::RankCurve;
pub use series::Series;
pub use strips::{Cell, Strip};

/// Panels in a grid under one title.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    title: String,
    columns: Option<usize>,
    panel_size: Option<(f64, f64)>,
    description: Option<String>,
    panels: Vec<Panel>,
}

impl Figure {
    /// A figure without panels; the title may be empty.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), columns: None, panel_size: None, description: None, panels: Vec::new() }
    }

    /// Adds a panel, row by row.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Panels per row; by default up to three, and fewer if they are wide.
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns.max(1));
        self
    }

    /// Width and height of every panel in pixels, at least 120 each; by default 440 by 320, or what the largest of
    /// [`Panel::strips`] needs.
    #[must_use]
    pub fn panel_size(mut self, width: u32, height: u32) -> Self {
        self.panel_size = Some((f64::from(width.max(120)), f64::from(height.max(120))));
        self
    }

    /// Points that cannot be drawn: not finite, or not positive on a logarithmic axis.
    pub fn skipped(&self) -> usize {
        self.panels.iter().map(Panel::skipped).sum()
    }

    /// The figure as a file of its own, dark on white.
    pub fn to_svg(&self) -> String {
        self.draw(Paper::White)
    }

    /// The figure as an element of a page: without a background, with axes and text in the text colour of the page, and
    /// as wide as the page allows. A page can replace the colours of series with `--mercer-colour-0` to
    /// `--mercer-colour-9`.
    pub fn to_inline_svg(&self) -> String {
        self.draw(Paper::Page)
    }

    /// A style sheet that replaces the dark ones among the colours of series where a reader prefers dark pages, for
    /// pages with [inline](Self::to_inline_svg) figures.
    pub fn dark_style() -> String {
        palette::dark_style()
    }

    /// The size of a panel: as given, or as large as the largest one needs.
    fn size(&self) -> (f64, f64) {
        let wanted = |size: (f64, f64), panel: &Panel| match &panel.kind {
            Kind::Strips(rows) => {
                let (width, height) = strips::wanted(&panel.title, rows);
                (size.0.max(width), size.1.max(height))
            }
            Kind::Plot | Kind::Heat(_) => (size.0.max(440.0), size.1.max(320.0)),
        };
        let found = || self.panels.iter().fold((300.0, 100.0), wanted);
        self.panel_size.unwrap_or_else(found)
    }

    fn draw(&self, paper: Paper) -> String {
        const HEAD: f64 = 34.0;
        const WIDEST: f64 = 1400.0;
        let (width, height) = self.size();
        let columns = self.columns.unwrap_or_else(|| ((WIDEST / width) as usize).clamp(1, 3));
        let columns = columns.min(self.panels.len()).max(1);
        let head = if self.title.is_empty() { 0.0 } else { HEAD };
        let rows = self.panels.len().div_ceil(columns);
        let size = (width * columns as f64, head + height * rows as f64);
        let mut svg = Svg::new(size, paper, &self.spoken_title(), &self.description());
        let title = shortened(&self.title, 16.0, size.0);
        svg.text((size.0 / 2.0, 23.0), &title, 16.0, Anchor::Middle, " font-weight=\"bold\"");
        for (at, panel) in self.panels.iter().enumerate() {
            let corner = ((at % columns) as f64 * width, head + (at / columns) as f64 * height);
            svg.begin_panel(corner, (width, height));
            draw::panel(&mut svg, panel, corner, (width, height));
            svg.put("</g>");
        }
        svg.finish()
    }

    /// Writes the SVG to a file, atomically.
    pub fn write(&self, path: &Path, existing: Existing) -> mercer_data::Result<()> {
        mercer_data::write_atomic(path, existing, |writer| writer.write_all(self.to_svg().as_bytes()))
    }
}

#[cfg(test)]
mod tests;
