//! One panel of every kind: `cargo run -p mercer-report --example gallery -- FOLDER`.
//!
//! Writes `panels.svg`, `distributions.svg`, `samples.svg` and a page with all of them in light and dark, `gallery.html`.

mod distributions;
mod samples;

use mercer_report::{Axis, Bin, Figure, Panel, Series};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or(".".to_owned()));
    let figures = [("panels", panels()), ("distributions", distributions::figure()), ("samples", samples::figure())];
    let mut page = format!("<!doctype html><meta charset=\"utf-8\"><title>Gallery</title><style>{}</style>", STYLE);
    for (name, figure) in &figures {
        let svg = figure.to_svg();
        println!("{name}.svg: {} bytes, {} values skipped", svg.len(), figure.skipped());
        std::fs::write(folder.join(format!("{name}.svg")), svg)?;
        for shade in ["light", "dark"] {
            page.push_str(&format!("<div class=\"{shade}\">{}</div>\n", figure.to_inline_svg()));
        }
    }
    std::fs::write(folder.join("gallery.html"), page)?;
    Ok(())
}

const STYLE: &str = ".light { background: #fff; color: #222 } .dark { background: #161616; color: #ddd; \
                     --mercer-colour-0: #2F8FD0; --mercer-colour-6: #8C7FE0; --mercer-colour-7: #C8507F; --mercer-colour-9: #B8B8B8 }";

/// Numbers that look random and are the same everywhere, between −½ and ½.
fn noise(at: u32) -> f64 {
    let mixed = (at ^ at >> 16).wrapping_mul(0x045d_9f3b);
    let mixed = (mixed ^ mixed >> 16).wrapping_mul(0x045d_9f3b);
    f64::from((mixed ^ mixed >> 16) >> 8) / f64::from(1 << 24) - 0.5
}

/// About normal, with a deviation of one half times √2.
fn normal(at: u32) -> f64 {
    (0..6).map(|k| noise(6 * at + k)).sum()
}

/// Lines, scatter plots, histograms, bars and a matrix.
fn panels() -> Figure {
    let steps = || (1..=40).map(f64::from);
    let decay = |rate: f64| steps().map(move |t| (t, (-rate * t).exp() + 1e-4));
    let lines = Panel::lines(
        "Loss over training",
        Axis::linear("step"),
        Axis::log("loss"),
        [
            Series::line("train", decay(0.3)).band(decay(0.3).map(|(_, y)| (y * 0.6, y * 1.6))),
            Series::line("test", decay(0.15)).dashed(),
            Series::marked_line("measured", decay(0.2).step_by(6)).errors(decay(0.2).step_by(6).map(|(_, y)| 0.4 * y)),
        ],
    )
    .horizontal(1e-3);
    let cloud = |class: u32| {
        (0..60).map(move |at| {
            let (x, y) = (noise(3 * at + 1000 * class), noise(5 * at + 7 + 1000 * class));
            (x + f64::from(class % 4), y + f64::from(class / 4))
        })
    };
    let classes = |count: u32| (0..count).map(|class| format!("class {class}")).zip(0..);
    let scatter = Panel::scatter(
        "Ten classes",
        Axis::linear("first eigenfunction"),
        Axis::linear("second"),
        classes(10).map(|(name, class)| (name, cloud(class))),
    );
    let space = Panel::scatter3(
        "Features in space",
        ["first", "second", "third"],
        classes(4).map(|(name, class)| (name, cloud(class).zip(0..).map(|((x, y), at)| [x, y, x * y + noise(at)]))),
    );
    let sum = |shift: f64, seed: u32| (0..2000).map(move |at| normal(seed + at) + shift);
    let histogram = Panel::histogram(
        "Scores",
        "log-probability",
        40,
        [("inside", sum(0.0, 1).collect()), ("shifted", sum(0.8, 50_000).collect())],
    );
    let bins: Vec<Bin> = (0..10)
        .map(f64::from)
        .map(|at| Bin {
            from: at / 10.0,
            to: (at + 1.0) / 10.0,
            confidence: at / 10.0 + 0.06,
            accuracy: (at / 10.0).powf(1.3),
            count: at as usize,
        })
        .collect();
    let bars = Panel::bars(
        "Accuracy",
        ["ridge", "Gaussian process", "support vectors", "network"],
        Axis::linear("%"),
        [("digits", vec![97.1, 98.0, 97.6, 98.4]), ("two moons", vec![88.0, 99.0, 98.5, 97.0])],
    );
    let near = |at: u32| {
        let (row, column) = (at / 30, at % 30);
        if row / 10 == column / 10 { 0.7 + noise(at) / 3.0 } else { 0.2 + noise(at) / 3.0 }
    };
    let heat = Panel::heat_map("Kernel", 30, (0..900).map(near), [("cats", 10), ("dogs", 10), ("owls", 10)]);
    let spectrum = Series::marked_line("μ", (1..=4).map(|j| (f64::from(j), (-f64::from(j)).exp())));
    let spectrum = Panel::lines("Eigenvalues", Axis::whole("j"), Axis::log("μ"), [spectrum]);
    Figure::new("One panel of every kind")
        .panel(heat)
        .panel(spectrum)
        .panel(lines)
        .panel(scatter)
        .panel(space)
        .panel(histogram)
        .panel(Panel::reliability("Reliability", &bins))
        .panel(bars)
}
