//! Figures and reports: typed data in, SVG and HTML out.
//!
//! ```
//! use mercer_report::{Axis, Figure, Panel, Series};
//!
//! let values = [(1.0, 5.2), (2.0, 0.9), (3.0, 0.1)];
//! let panel = Panel::new("Spectrum").x(Axis::linear("index")).y(Axis::log("eigenvalue"));
//! let svg = Figure::new("A kernel").panel(panel.series(Series::line("trace", values))).to_svg();
//! assert!(svg.starts_with("<svg"));
//! ```

pub mod figure;
pub mod page;

pub use figure::{Axis, Bin, BoxSummary, Cell, Channels, Figure, Panel, Picture, RankCurve, Series, Strip};
