//! A surface over the plane, as an image behind the series.

use super::axis::Axis;
use super::heat::{self, BAR};
use super::palette::sequential;
use super::picture::{Channels, Picture};
use super::svg::{OUTLINE, Svg};

/// Room for the colour bar.
pub(super) const MARGIN: f64 = 16.0 + BAR + 34.0;

/// Shades, so that their edges look like contours.
const LEVELS: f64 = 10.0;

/// Numbers between 0 and 1, row by row from the top.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

fn shade(value: f64) -> [u8; 3] {
    sequential(((value * LEVELS).floor() / (LEVELS - 1.0)).clamp(0.0, 1.0) * 0.85)
}

pub(super) fn draw(svg: &mut Svg, field: &Field, corner: (f64, f64), size: (f64, f64)) {
    let bytes: Vec<u8> = field.values.iter().flat_map(|&value| shade(value)).collect();
    let rows = field.values.len() / field.columns.max(1);
    if let Some(picture) = Picture::new(field.columns, rows, Channels::Rgb, bytes) {
        svg.image(corner, size, &picture, "density", false);
    }
    let end = (corner.0 + size.0, corner.1 + size.1);
    svg.rectangle(corner, end, OUTLINE);
    let ruler = Axis::linear("").range(0.0, 1.0).fit(std::iter::empty(), false);
    heat::bar(svg, &ruler, shade, (end.0 + 12.0, corner.1), size.1);
}
