//! Figures and reports: typed findings in, text that anyone can open out.

pub mod figure;

pub use figure::{Axis, Bin, Figure, Panel, Series};
