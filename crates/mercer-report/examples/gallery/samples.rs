//! Rows of pictures and texts.

use crate::noise;
use mercer_report::{Cell, Figure, Panel, Picture, Strip};

pub(crate) fn figure() -> Figure {
    Figure::new("Samples").panel(pictures()).panel(texts()).columns(1)
}

/// A bright disc on a gradient, in colour or grey.
fn picture(seed: u32, channels: usize) -> Option<Picture> {
    let (x, y) = (16.0 + 16.0 * noise(seed), 16.0 + 16.0 * noise(seed + 1));
    let pixel = |at: usize| {
        let (channel, row, column) = (at / 1024, (at / 32 % 32) as f64, (at % 32) as f64);
        let inside = (row - y).hypot(column - x) < 8.0;
        let colour = noise(seed + 2 + channel as u32);
        (if inside { 1.5 * colour } else { row / 40.0 - 0.4 }) + noise(seed + at as u32) / 8.0
    };
    Picture::from_chw((0..channels * 1024).map(pixel), [channels, 32, 32], None)
}

fn pictures() -> Panel {
    let cell = |row: u32, at: u32| {
        let caption = format!("{} +{:.2}", ["ship", "truck"][((row + at) % 2) as usize], 0.9 / f64::from(at + 1));
        let picture = picture(100 * row + 7 * at, if row == 2 { 1 } else { 3 })?;
        Some(Cell::picture(picture, caption).colour((at % 3 / 2) as usize))
    };
    let row = |row: u32| Strip::new(format!("test {row}: predicted ship"), (0..10).filter_map(move |at| cell(row, at)));
    Panel::strips("Training samples with the largest attribution", (0..3).map(row))
}

fn texts() -> Panel {
    let long = "The film starts slowly & then <never> recovers; what could have been a quiet study of two people becomes \
                an hour of running through corridors that all look the same, with a score that never ends.";
    let cells = |at: usize| {
        [
            Cell::text(&long[at..], "negative +0.41"),
            Cell::text("A joy.", "positive −0.12").colour(1),
            Cell::text(long, "negative +0.09"),
        ]
    };
    Panel::strips("Reviews", (0..2).map(|row| Strip::new(format!("review {row}"), cells(9 * row))))
}
