//! Figures as typed data, written as SVG.
//!
//! A [`Figure`] is a grid of [`Panel`]s, a panel has two [`Axis`]es and several [`Series`]. The SVG is written by hand:
//! what a report needs (lines, bands, points, bars, ticks, a legend) takes a few hundred lines. `plotters` brings eight
//! crates for its SVG backend alone, places its legend on top of the data, has no error bands and rounds coordinates to
//! whole pixels.
//!
//! The same data give the same text on every machine: positions are computed in `f64` and written with two decimals,
//! ticks are multiples of 1, 2 or 5 times a power of ten and formatted from integers, and a figure has no identifiers,
//! times or random numbers, so several figures can share a page. Fonts are those of the viewer.
//!
//! **What cannot be drawn is left out**: points that are not finite (or beyond ±1e300), and on a logarithmic axis those
//! that are not positive. A line has a gap there. [`Figure::skipped`] counts these points, so that a report can mention
//! them. Text is escaped.
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
mod chart;
mod draw;
mod heat;
mod palette;
mod panel;
mod series;
mod space;
mod svg;

use mercer_data::Existing;
use std::path::Path;
use svg::{Anchor, Svg};

pub use axis::Axis;
pub use chart::Bin;
pub use panel::Panel;
pub use series::Series;

/// Panels in a grid under one title.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    title: String,
    columns: Option<usize>,
    panel_size: (f64, f64),
    panels: Vec<Panel>,
}

impl Figure {
    /// A figure without panels; the title may be empty.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), columns: None, panel_size: (440.0, 320.0), panels: Vec::new() }
    }

    /// Adds a panel, row by row.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Panels per row; by default up to three.
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns.max(1));
        self
    }

    /// Width and height of every panel in pixels; 440 by 320 by default, at least 120 each.
    #[must_use]
    pub fn panel_size(mut self, width: u32, height: u32) -> Self {
        self.panel_size = (f64::from(width.max(120)), f64::from(height.max(120)));
        self
    }

    /// Points that cannot be drawn: not finite, or not positive on a logarithmic axis.
    pub fn skipped(&self) -> usize {
        self.panels.iter().map(Panel::skipped).sum()
    }

    /// The figure as one SVG element, for a separate file or inside a page.
    pub fn to_svg(&self) -> String {
        const HEAD: f64 = 34.0;
        let columns = self.columns.unwrap_or(3).min(self.panels.len()).max(1);
        let (width, height) = self.panel_size;
        let head = if self.title.is_empty() { 0.0 } else { HEAD };
        let rows = self.panels.len().div_ceil(columns);
        let size = (width * columns as f64, head + height * rows as f64);
        let mut svg = Svg::new(size, &self.title);
        svg.text((size.0 / 2.0, 23.0), &self.title, 16.0, Anchor::Middle, " font-weight=\"bold\"");
        for (at, panel) in self.panels.iter().enumerate() {
            let corner = ((at % columns) as f64 * width, head + (at / columns) as f64 * height);
            draw::panel(&mut svg, panel, corner, self.panel_size);
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
