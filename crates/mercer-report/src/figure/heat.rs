//! Heat maps: a matrix as colours, with a colour bar, and ticks for groups of rows.

use super::axis::Axis;
use super::draw::{SMALL, TITLE};
use super::panel::Panel;
use super::svg::{Anchor, Svg, width};

/// A matrix, and how it is divided into groups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heat {
    columns: usize,
    values: Vec<f64>,
    /// Names of groups of consecutive rows, with their sizes.
    groups: Vec<(String, usize)>,
}

impl Panel {
    /// A matrix, row by row, in colours from its smallest to its largest number, with a colour bar. Rows and columns are ticked
    /// by consecutive groups, such as classes, given with their sizes; without any they are not ticked. Numbers that are not
    /// finite are grey and count as [skipped](super::Figure::skipped); numbers beyond full rows are left out.
    pub fn heat_map<N: Into<String>>(
        title: impl Into<String>,
        columns: usize,
        values: impl IntoIterator<Item = f64>,
        groups: impl IntoIterator<Item = (N, usize)>,
    ) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        let columns = columns.max(1);
        values.truncate(values.len() / columns * columns);
        let left_out = values.iter().filter(|value| !drawable(**value)).count();
        let groups = groups.into_iter().map(|(name, size)| (name.into(), size)).collect();
        Self { heat: Some(Heat { columns, values, groups }), left_out, ..Self::new(title) }
    }
}

fn drawable(value: f64) -> bool {
    Axis::linear("").drawable(value)
}

/// From white to dark blue.
fn shade(fraction: f64) -> String {
    let channel = |dark: f64| (255.0 - (255.0 - dark) * fraction.clamp(0.0, 1.0)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", channel(8.0), channel(48.0), channel(107.0))
}

const BAR: f64 = 12.0;

pub(super) fn draw(svg: &mut Svg, title: &str, heat: &Heat, corner: (f64, f64), size: (f64, f64)) {
    let n_rows = heat.values.len() / heat.columns;
    let ruler = Axis::linear("").tight(heat.values.iter().copied());
    let longest = |names: &mut dyn Iterator<Item = &str>| names.map(|name| width(name, SMALL)).fold(0.0, f64::max);
    let left = 12.0 + longest(&mut heat.groups.iter().map(|group| group.0.as_str()));
    let right = 12.0 + BAR + 8.0 + longest(&mut ruler.ticks.iter().map(|tick| tick.1.as_str())) + 8.0;
    let top = if title.is_empty() { 8.0 } else { 26.0 };
    let bottom = if heat.groups.is_empty() { 8.0 } else { 20.0 };
    // Cells are squares.
    let (inner, high) = ((size.0 - left - right).max(20.0), (size.1 - top - bottom).max(20.0));
    let cell = (inner / heat.columns as f64).min(high / n_rows.max(1) as f64);
    let (wide, high) = (cell * heat.columns as f64, cell * n_rows as f64);
    let (x0, y0) = (corner.0 + left + (inner - wide) / 2.0, corner.1 + top);
    svg.text((x0 + wide / 2.0, corner.1 + 18.0), title, TITLE, Anchor::Middle, " font-weight=\"bold\"");
    svg.put("<g shape-rendering=\"crispEdges\">");
    for (at, &value) in heat.values.iter().enumerate() {
        let (row, column) = ((at / heat.columns) as f64, (at % heat.columns) as f64);
        let fill = if drawable(value) { shade(ruler.place(value)) } else { "#bbbbbb".to_owned() };
        let from = (x0 + column * cell, y0 + row * cell);
        svg.rectangle(from, (from.0 + cell, from.1 + cell), &format!("fill=\"{fill}\""));
    }
    svg.put("</g>");
    svg.rectangle((x0, y0), (x0 + wide, y0 + high), "fill=\"none\" stroke=\"#666\"");
    groups(svg, heat, (x0, y0), (wide, high), cell);
    bar(svg, &ruler, (x0 + wide + 12.0, y0), high);
}

/// A tick in the middle of each group, for rows and columns, as many as have room.
fn groups(svg: &mut Svg, heat: &Heat, (x0, y0): (f64, f64), (wide, high): (f64, f64), cell: f64) {
    let mut start = 0.0;
    let (mut last_x, mut last_y) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (name, count) in &heat.groups {
        let middle = (start + *count as f64 / 2.0) * cell;
        start += *count as f64;
        let half = width(name, SMALL) / 2.0;
        if middle <= wide && middle - half > last_x {
            svg.line((x0 + middle, y0 + high), (x0 + middle, y0 + high + 3.0), "stroke=\"#666\"");
            svg.text((x0 + middle, y0 + high + 15.0), name, SMALL, Anchor::Middle, "");
            last_x = middle + half + 3.0;
        }
        if middle <= high && middle - SMALL / 2.0 > last_y {
            svg.line((x0 - 3.0, y0 + middle), (x0, y0 + middle), "stroke=\"#666\"");
            svg.text((x0 - 6.0, y0 + middle + 3.7), name, SMALL, Anchor::End, "");
            last_y = middle + SMALL / 2.0;
        }
    }
}

/// What the colours mean.
fn bar(svg: &mut Svg, ruler: &super::axis::Ruler, (x, y): (f64, f64), high: f64) {
    const STEPS: usize = 32;
    let step = high / STEPS as f64;
    svg.put("<g shape-rendering=\"crispEdges\">");
    for at in 0..STEPS {
        let from = y + at as f64 * step;
        let fill = shade(1.0 - (at as f64 + 0.5) / STEPS as f64);
        svg.rectangle((x, from), (x + BAR, from + step), &format!("fill=\"{fill}\""));
    }
    svg.put("</g>");
    svg.rectangle((x, y), (x + BAR, y + high), "fill=\"none\" stroke=\"#666\"");
    for (tick, name) in &ruler.ticks {
        let at = y + (1.0 - ruler.fraction(*tick)) * high;
        svg.line((x + BAR, at), (x + BAR + 3.0, at), "stroke=\"#666\"");
        svg.text((x + BAR + 6.0, at + 3.7), name, SMALL, Anchor::Start, "");
    }
}
