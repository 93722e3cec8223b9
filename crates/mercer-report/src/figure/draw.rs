//! Drawing a panel: title, legend, axes, and the series on top.

use super::axis::Ruler;
use super::heat;
use super::palette::{colour, round};
use super::panel::{Helper, Panel};
use super::series::{Look, Series, Spread};
use super::svg::{Anchor, Svg, number, width};

/// Sizes of text.
pub(super) const SMALL: f64 = 10.5;
const LABEL: f64 = 12.0;
pub(super) const TITLE: f64 = 13.0;
/// The distance between rows of the legend.
const ROW: f64 = 16.0;

/// The data area, and the mapping from numbers to pixels inside it.
struct Area<'a> {
    corner: (f64, f64),
    size: (f64, f64),
    x: &'a Ruler,
    y: &'a Ruler,
    bare: bool,
}

impl Area<'_> {
    /// From fractions of the axes to pixels. A bare panel has equal units and is centred.
    fn pixel(&self, (right, up): (f64, f64)) -> (f64, f64) {
        if !self.bare {
            return (right * self.size.0, (1.0 - up) * self.size.1);
        }
        let ((left, end), (low, high)) = (self.x.ends(), self.y.ends());
        let unit = (self.size.0 / (end - left)).min(self.size.1 / (high - low));
        let (middle, centre) = ((right - 0.5) * (end - left) * unit, (up - 0.5) * (high - low) * unit);
        (self.size.0 / 2.0 + middle, self.size.1 / 2.0 - centre)
    }

    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        self.pixel((self.x.place(x), self.y.place(y)))
    }
}

pub(super) fn panel(svg: &mut Svg, panel: &Panel, corner: (f64, f64), size: (f64, f64)) {
    if let Some(matrix) = &panel.heat {
        return heat::draw(svg, &panel.title, matrix, corner, size);
    }
    let x = panel.x.fit(panel.series.iter().flat_map(Series::extents), false);
    let y = panel.y.fit(panel.series.iter().flat_map(Series::heights), panel.stands());
    let title = if panel.title.is_empty() { 8.0 } else { 26.0 };
    svg.text((corner.0 + size.0 / 2.0, corner.1 + 18.0), &panel.title, TITLE, Anchor::Middle, " font-weight=\"bold\"");
    let longest = |ruler: &Ruler| ruler.ticks.iter().map(|tick| width(&tick.1, SMALL)).fold(0.0, f64::max);
    let label = |text: &str, room: f64| if text.is_empty() { 0.0 } else { room };
    let left = if panel.bare { 12.0 } else { 14.0 + longest(&y) + label(&panel.y.label, 18.0) };
    let right = 16.0;
    // Names that do not fit next to each other are slanted.
    let inner = size.0 - left - right;
    let slanted = matches!(panel.x.scale, super::axis::Scale::Names(_))
        && longest(&x) + 6.0 > inner / x.ticks.len().max(1) as f64;
    let ticks = if slanted { (12.0 + 0.6 * longest(&x)).min(0.35 * size.1) } else { 20.0 };
    let bottom = if panel.bare { 6.0 } else { ticks + 6.0 + label(&panel.x.label, 18.0) };
    let top = title + legend(svg, panel, (corner.0 + left, corner.1 + title), inner, 0.4 * size.1);
    let area = Area {
        corner: (corner.0 + left, corner.1 + top),
        size: (inner.max(20.0), (size.1 - top - bottom).max(20.0)),
        x: &x,
        y: &y,
        bare: panel.bare,
    };
    if !panel.bare {
        axes(svg, panel, &area, (slanted, ticks + 15.0), corner.0);
    }
    // A nested element clips what is outside, without the identifiers that a clip path would need.
    let [at_x, at_y, wide, high] = [area.corner.0, area.corner.1, area.size.0, area.size.1].map(number);
    svg.put(&format!("<svg x=\"{at_x}\" y=\"{at_y}\" width=\"{wide}\" height=\"{high}\">"));
    if panel.bare {
        helpers(svg, panel, &area);
    }
    for (at, series) in panel.series.iter().enumerate() {
        draw_series(svg, panel, series, series.colour.unwrap_or(at), &area);
    }
    if !panel.bare {
        helpers(svg, panel, &area);
    }
    svg.put("</svg>");
}

/// Draws the legend in rows; returns its height.
fn legend(svg: &mut Svg, panel: &Panel, corner: (f64, f64), room: f64, height: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    let named: Vec<(usize, &Series)> = panel.series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()).collect();
    for (shown, (at, series)) in named.iter().enumerate() {
        let wide = 24.0 + width(&series.name, SMALL) + 10.0;
        if x > 0.0 && x + wide > room {
            (x, y) = (0.0, y + ROW);
        }
        let place = (corner.0 + x, corner.1 + y + 11.0);
        if y + ROW > height {
            let more = format!("… and {} more", named.len() - shown);
            svg.text(place, &more, SMALL, Anchor::Start, "");
            break;
        }
        key(svg, series, series.colour.unwrap_or(*at), (place.0, place.1 - 4.0));
        svg.text((place.0 + 22.0, place.1), &series.name, SMALL, Anchor::Start, "");
        x += wide;
    }
    if named.is_empty() { 4.0 } else { y + ROW + 4.0 }
}

/// The legend symbol of a series.
fn key(svg: &mut Svg, series: &Series, number: usize, (x, y): (f64, f64)) {
    let paint = colour(number);
    if let Look::Bars(_) | Look::Steps(_) = series.look {
        let style = format!("fill=\"{paint}\" fill-opacity=\"0.6\" stroke=\"{paint}\"");
        svg.rectangle((x + 3.0, y - 4.0), (x + 17.0, y + 4.0), &style);
        return;
    }
    if series.look != Look::Points {
        svg.line((x, y), (x + 18.0, y), &stroke(series, number));
    }
    if series.look != Look::Line {
        marks(svg, &[(x + 9.0, y)], number, 3.0, 1.0);
    }
}

fn stroke(series: &Series, number: usize) -> String {
    let dashes = match (series.dashed, round(number)) {
        (false, 0) => "",
        (true, 0) => " stroke-dasharray=\"6 4\"",
        (false, _) => " stroke-dasharray=\"10 3 2 3\"",
        (true, _) => " stroke-dasharray=\"2 3\"",
    };
    format!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"{dashes}", colour(number))
}

fn axes(svg: &mut Svg, panel: &Panel, area: &Area<'_>, (slanted, below): (bool, f64), panel_left: f64) {
    let (left, top) = area.corner;
    let (right, bottom) = (left + area.size.0, top + area.size.1);
    let (grid, frame) = ("stroke=\"#e4e4e4\"", "stroke=\"#666\"");
    let shown = |fraction: f64| (-1e-6..=1.0 + 1e-6).contains(&fraction);
    // As many labels as fit without touching.
    let widest = area.x.ticks.iter().map(|tick| width(&tick.1, SMALL)).fold(0.0, f64::max) + 8.0;
    let every = if slanted { 14.0 } else { widest } * area.x.ticks.len() as f64 / area.size.0;
    let every = (every.ceil() as usize).max(1);
    for (at, (tick, name)) in area.x.ticks.iter().enumerate() {
        let x = left + area.x.fraction(*tick) * area.size.0;
        if !shown(area.x.fraction(*tick)) {
            continue;
        }
        svg.line((x, top), (x, bottom), grid);
        svg.line((x, bottom), (x, bottom + 4.0), frame);
        if at % every != 0 {
            continue;
        }
        if slanted {
            let turn = format!(" transform=\"rotate(-35 {} {})\"", number(x + 3.0), number(bottom + 13.0));
            svg.text((x + 3.0, bottom + 13.0), name, SMALL, Anchor::End, &turn);
        } else {
            svg.text((x, bottom + 16.0), name, SMALL, Anchor::Middle, "");
        }
    }
    for (tick, name) in &area.y.ticks {
        let y = bottom - area.y.fraction(*tick) * area.size.1;
        if shown(area.y.fraction(*tick)) {
            svg.line((left, y), (right, y), grid);
            svg.line((left - 4.0, y), (left, y), frame);
            svg.text((left - 7.0, y + 3.7), name, SMALL, Anchor::End, "");
        }
    }
    for &tick in &area.x.minor {
        let x = left + area.x.fraction(tick) * area.size.0;
        svg.line((x, bottom), (x, bottom + 2.0), frame);
    }
    for &tick in &area.y.minor {
        let y = bottom - area.y.fraction(tick) * area.size.1;
        svg.line((left - 2.0, y), (left, y), frame);
    }
    svg.line((left, top), (left, bottom), frame);
    svg.line((left, bottom), (right, bottom), frame);
    svg.text(((left + right) / 2.0, bottom + below), &panel.x.label, LABEL, Anchor::Middle, "");
    let (x, y) = (panel_left + 14.0, (top + bottom) / 2.0);
    let turn = format!(" transform=\"rotate(-90 {} {})\"", number(x), number(y));
    svg.text((x, y), &panel.y.label, LABEL, Anchor::Middle, &turn);
}

fn helpers(svg: &mut Svg, panel: &Panel, area: &Area<'_>) {
    let dashed = "stroke=\"#555\" stroke-width=\"1.2\" stroke-dasharray=\"5 4\"";
    for helper in &panel.helpers {
        match helper {
            Helper::Diagonal => {
                let ((left, right), (low, high)) = (area.x.values(), area.y.values());
                let (from, to) = (left.max(low), right.min(high));
                if from < to {
                    svg.line(area.point((from, from)), area.point((to, to)), dashed);
                }
            }
            Helper::Horizontal(y) if panel.y.drawable(*y) => {
                let y = area.y.place(*y);
                svg.line(area.pixel((0.0, y)), area.pixel((1.0, y)), dashed);
            }
            Helper::Vertical(x) if panel.x.drawable(*x) => {
                let x = area.x.place(*x);
                svg.line(area.pixel((x, 0.0)), area.pixel((x, 1.0)), dashed);
            }
            Helper::Horizontal(_) | Helper::Vertical(_) => {}
            Helper::Edge([from, to]) => svg.line(area.point(*from), area.point(*to), "stroke=\"#bbb\""),
            Helper::Text(at, text, hold) => {
                svg.text(area.point(*at), text, SMALL, (*hold).into(), " fill=\"#444\"");
            }
        }
    }
}

fn draw_series(svg: &mut Svg, panel: &Panel, series: &Series, number: usize, area: &Area<'_>) {
    let paint = colour(number);
    spread(svg, panel, series, paint, area);
    let drawable: Vec<(f64, f64)> = series.points.iter().copied().filter(|&point| panel.drawable(point)).collect();
    let pixels: Vec<(f64, f64)> = drawable.iter().map(|&point| area.point(point)).collect();
    match series.look {
        Look::Line | Look::LineAndPoints => {
            let runs = series.points.split(|&point| !panel.drawable(point));
            for run in runs {
                let run: Vec<(f64, f64)> = run.iter().map(|&point| area.point(point)).collect();
                match run[..] {
                    // A single point between two gaps would be invisible as a line.
                    [alone] if series.look == Look::Line => marks(svg, &[alone], number, 1.6, 1.0),
                    _ => svg.path(&run, false, &stroke(series, number)),
                }
            }
            if series.look == Look::LineAndPoints {
                marks(svg, &pixels, number, 2.8, 1.0);
            }
        }
        Look::Points => {
            // Many points are drawn smaller and more transparent.
            let (radius, opacity) = if pixels.len() > 2000 { (1.5, 0.5) } else { (2.5, 0.75) };
            marks(svg, &pixels, number, radius, opacity);
        }
        Look::Bars(width) => {
            let style = format!("fill=\"{paint}\" fill-opacity=\"0.75\"");
            for &(x, y) in &drawable {
                let (from, to) = (area.point((x - width / 2.0, 0.0)), area.point((x + width / 2.0, y)));
                svg.rectangle(from, to, &style);
            }
        }
        Look::Steps(width) => {
            let corners = drawable.iter().flat_map(|&(x, y)| [(x - width / 2.0, y), (x + width / 2.0, y)]);
            let mut outline: Vec<(f64, f64)> = corners.map(|point| area.point(point)).collect();
            if let (Some(first), Some(last)) = (drawable.first(), drawable.last()) {
                outline.insert(0, area.point((first.0 - width / 2.0, 0.0)));
                outline.push(area.point((last.0 + width / 2.0, 0.0)));
            }
            let style = format!("fill=\"{paint}\" fill-opacity=\"0.25\" stroke=\"{paint}\" stroke-width=\"1.4\"");
            svg.path(&outline, true, &style);
        }
    }
}

/// Error bars, or the area between two ends. Ends that are not finite are not drawn.
fn spread(svg: &mut Svg, panel: &Panel, series: &Series, paint: &str, area: &Area<'_>) {
    match &series.spread {
        Spread::None => {}
        Spread::Errors(errors) => {
            let style = format!("stroke=\"{paint}\" stroke-width=\"1.2\"");
            for (&(x, y), &error) in series.points.iter().zip(errors) {
                if !panel.drawable((x, y)) || !error.is_finite() || !panel.y.drawable(y + error.abs()) {
                    continue;
                }
                let (low, high) = (area.point((x, y - error)), area.point((x, y + error)));
                svg.line(low, high, &style);
                for end in [low, high] {
                    svg.line((end.0 - 3.0, end.1), (end.0 + 3.0, end.1), &style);
                }
            }
        }
        Spread::Band(ends) => {
            let style = format!("fill=\"{paint}\" fill-opacity=\"0.18\"");
            let both: Vec<_> = series.points.iter().zip(ends).collect();
            let drawn = |&(point, &(low, high)): &(&(f64, f64), &(f64, f64))| {
                panel.drawable((point.0, high)) && low.abs() <= 1e300
            };
            for run in both.split(|pair| !drawn(pair)) {
                let lower = run.iter().map(|&(point, ends)| area.point((point.0, ends.0)));
                let upper = run.iter().rev().map(|&(point, ends)| area.point((point.0, ends.1)));
                svg.path(&lower.chain(upper).collect::<Vec<_>>(), true, &style);
            }
        }
    }
}

/// Circles, and squares once the colours are used up.
fn marks(svg: &mut Svg, points: &[(f64, f64)], at: usize, radius: f64, opacity: f64) {
    svg.put(&format!("<g fill=\"{}\" fill-opacity=\"{}\">", colour(at), number(opacity)));
    for &(x, y) in points {
        if round(at) == 0 {
            svg.put(&format!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", number(x), number(y), number(radius)));
        } else {
            svg.rectangle((x - radius, y - radius), (x + radius, y + radius), "");
        }
    }
    svg.put("</g>");
}
