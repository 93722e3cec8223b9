//! Figures and reports: typed data in, SVG out.

pub mod figure;

pub use figure::{Axis, Bin, Figure, Panel, Series};
