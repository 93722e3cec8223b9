//! The cells of a heat map: rectangles with numbers, or an image of many.

use super::axis::Ruler;
use super::draw::SMALL;
use super::heat::{Heat, drawable};
use super::palette::{hex, ink_on};
use super::picture::{Channels, Picture};
use super::svg::{Anchor, Svg, width};

/// More cells than this are an image.
const CELLS: usize = 1600;
/// The most rows and columns of the image.
const SIDE: usize = 512;
/// The smallest text in a cell.
const SMALLEST: f64 = 7.0;

pub(super) fn draw(svg: &mut Svg, heat: &Heat, ruler: &Ruler, (x0, y0): (f64, f64), cell: (f64, f64)) {
    let n_rows = heat.n_rows();
    if heat.values.len() > CELLS {
        let (columns, values) = coarser(heat);
        let bytes: Vec<u8> = values.iter().flat_map(|&value| heat.shade(ruler, value)).collect();
        if let Some(picture) = Picture::new(columns, values.len() / columns, Channels::Rgb, bytes) {
            let size = (cell.0 * heat.columns as f64, cell.1 * n_rows as f64);
            svg.image((x0, y0), size, &picture, &format!("{n_rows} by {} numbers", heat.columns), true);
        }
        return;
    }
    let place = |at: usize| (x0 + (at % heat.columns) as f64 * cell.0, y0 + (at / heat.columns) as f64 * cell.1);
    svg.put("<g shape-rendering=\"crispEdges\">");
    for (at, &value) in heat.values.iter().enumerate() {
        let from = place(at);
        let fill = format!("fill=\"{}\"", hex(heat.shade(ruler, value)));
        svg.rectangle(from, (from.0 + cell.0, from.1 + cell.1), &fill);
    }
    svg.put("</g>");
    if !heat.written() {
        return;
    }
    let texts = brief(&heat.values);
    let longest = texts.iter().map(|text| width(text, 1.0)).fold(0.1, f64::max);
    let size = SMALL.min((cell.0 - 3.0) / longest).min(cell.1 - 2.0);
    if size < SMALLEST {
        return;
    }
    for (at, (text, &value)) in texts.iter().zip(&heat.values).enumerate() {
        let (x, y) = place(at);
        let ink = format!(" fill=\"{}\"", ink_on(heat.shade(ruler, value)));
        svg.text((x + cell.0 / 2.0, y + cell.1 / 2.0 + 0.35 * size), text, size, Anchor::Middle, &ink);
    }
}

/// Means over blocks of neighbours, so that neither side is longer than an image should be.
fn coarser(heat: &Heat) -> (usize, Vec<f64>) {
    let n_rows = heat.n_rows();
    let block = heat.columns.max(n_rows).div_ceil(SIDE);
    if block == 1 {
        return (heat.columns, heat.values.clone());
    }
    let (columns, rows) = (heat.columns.div_ceil(block), n_rows.div_ceil(block));
    let mut sums = vec![(0.0, 0.0); columns * rows];
    for (at, &value) in heat.values.iter().enumerate().filter(|(_, value)| drawable(**value)) {
        let sum: &mut (f64, f64) = &mut sums[at / heat.columns / block * columns + at % heat.columns / block];
        // A running mean, which cannot overflow.
        sum.1 += 1.0;
        sum.0 += value / sum.1 - sum.0 / sum.1;
    }
    (columns, sums.into_iter().map(|(mean, count)| if count > 0.0 { mean } else { f64::NAN }).collect())
}

/// The numbers of a matrix in few characters, with as many decimals as the largest one needs.
fn brief(values: &[f64]) -> Vec<String> {
    let drawn = || values.iter().copied().filter(|&value| drawable(value));
    let most = drawn().fold(0.0, |most: f64, value| most.max(value.abs()));
    let decimals = match most {
        _ if most < 1e6 && drawn().all(|value| value.fract() == 0.0) => 0,
        100.0..1e6 => 0,
        10.0..100.0 => 1,
        0.1..10.0 => 2,
        0.01..0.1 => 3,
        _ => return values.iter().map(|&value| written(value, format!("{value:.0e}"))).collect(),
    };
    values.iter().map(|&value| written(value, format!("{value:.decimals$}"))).collect()
}

/// A number with a true minus sign, or a dash for what is no number. Zero has no sign.
fn written(value: f64, text: String) -> String {
    match text.strip_prefix('-') {
        _ if !drawable(value) => "–".to_owned(),
        Some(zero) if zero.chars().all(|c| "0.e".contains(c)) => zero.to_owned(),
        _ => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Figure, Panel};

    #[test]
    fn numbers_are_brief() {
        assert_eq!(brief(&[0.0, -0.123, 3.999, -0.001, f64::NAN]), ["0.00", "−0.12", "4.00", "0.00", "–"]);
        assert_eq!(brief(&[120.0, -7.0, f64::INFINITY]), ["120", "−7", "–"]);
        assert_eq!(brief(&[120.4, 0.2]), ["120", "0"]);
        assert_eq!(brief(&[2e-5, -3e7]), ["2e−5", "−3e7"]);
        assert_eq!(brief(&[-0.0, 0.0]), ["0", "0"]);
    }

    #[test]
    fn named_maps_have_names_and_numbers_around_zero() {
        let values = [-0.5, 0.25, 0.0, 1.0, f64::NAN, 0.125];
        let panel = Panel::named_heat_map("Means", ["cat", "<dog>"], ["a", "b", "c"], values)
            .signed()
            .x(Axis::linear("output"))
            .y(Axis::linear("class"));
        let figure = Figure::new("").panel(panel);
        assert_eq!(figure.skipped(), 1);
        let svg = figure.to_svg();
        for text in [">cat<", ">&lt;dog&gt;<", ">b<", ">−0.50<", ">0.25<", ">–<", ">output<", ">class<"] {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
        assert!(svg.contains("fill=\"#ffffff\""), "zero is white");
        assert!(svg.contains("fill=\"#b2182b\"") && svg.contains(">−1<"), "a range of the same length on both sides");
        let many = Panel::named_heat_map("", ["r"; 13], ["c"; 13], [0.25; 169]);
        assert!(Figure::new("").panel(many).to_svg().matches(">0.25<").count() <= 1, "only the bar has numbers");
    }

    #[test]
    fn large_maps_are_images() {
        let side = 1500;
        let values = (0..side * side).map(|at| if at == 7 { f64::NAN } else { ((at / 700) % 97) as f64 });
        let figure = Figure::new("").panel(Panel::heat_map("k", side, values, [("a", 750), ("b", 750)]));
        assert_eq!(figure.skipped(), 1);
        let svg = figure.to_svg();
        assert_eq!(svg.matches("<image").count(), 1);
        assert!(svg.len() < 500_000, "{}", svg.len());
        let heat = |values: Vec<f64>, columns: usize| {
            let panel = Panel::heat_map::<String>("", columns, values, []);
            let super::super::panel::Kind::Heat(heat) = panel.kind else { unreachable!() };
            coarser(&heat)
        };
        // One row of 1024 becomes 512 means of pairs.
        let (columns, means) = heat((0..1024).map(f64::from).collect(), 1024);
        assert_eq!((columns, means.len(), means[0], means[511]), (512, 512, 0.5, 1022.5));
    }
}
