//! Drawing a panel: title, legend, axes, and where the series go.

use super::axis::Ruler;
use super::marks::{marks, series as draw_series, stroke};
use super::panel::{Helper, Kind, Panel};
use super::series::{Look, Series};
use super::svg::{Anchor, FRAME, GRID, Svg, number, shortened, width};
use super::{data, field, heat, strips};

/// Sizes of text.
pub(super) const SMALL: f64 = 10.5;
pub(super) const LABEL: f64 = 12.0;
pub(super) const TITLE: f64 = 13.0;
/// The distance between rows of the legend.
const ROW: f64 = 16.0;
/// The height of a note under the axes.
const NOTE: f64 = 14.0;

/// The data area, and the mapping from numbers to pixels inside it.
pub(super) struct Area<'a> {
    corner: (f64, f64),
    pub(super) size: (f64, f64),
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

    pub(super) fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        self.pixel((self.x.place(x), self.y.place(y)))
    }
}

pub(super) fn panel(svg: &mut Svg, panel: &Panel, corner: (f64, f64), size: (f64, f64)) {
    match &panel.kind {
        Kind::Heat(matrix) => return heat::draw(svg, panel, matrix, corner, size),
        Kind::Strips(rows) => return strips::draw(svg, &panel.title, rows, corner, size),
        Kind::Plot => {}
    }
    let x = panel.x.fit(panel.series.iter().flat_map(Series::extents), false);
    let y = panel.y.fit(panel.series.iter().flat_map(Series::heights), panel.stands());
    let title = if panel.title.is_empty() { 8.0 } else { 26.0 };
    heading(svg, &panel.title, corner.0 + size.0 / 2.0, corner.1, size.0);
    let longest = |ruler: &Ruler| ruler.ticks.iter().map(|tick| width(&tick.1, SMALL)).fold(0.0, f64::max);
    let label = |text: &str, room: f64| if text.is_empty() { 0.0 } else { room };
    let left = if panel.bare { 12.0 } else { 14.0 + longest(&y) + label(&panel.y.label, 18.0) };
    let right = if panel.field.is_some() { field::MARGIN } else { 16.0 };
    let notes = panel.notes();
    // Names that do not fit next to each other are slanted.
    let inner = size.0 - left - right;
    let slanted = matches!(panel.x.scale, super::axis::Scale::Names(_))
        && longest(&x) + 6.0 > inner / x.ticks.len().max(1) as f64;
    let ticks = if slanted { (12.0 + 0.6 * longest(&x)).min(0.35 * size.1) } else { 20.0 };
    let bottom = if panel.bare { 6.0 } else { ticks + 6.0 + label(&panel.x.label, 18.0) };
    let bottom = bottom + NOTE * notes.len() as f64;
    let top = title + legend(svg, panel, (corner.0 + left, corner.1 + title), inner, 0.4 * size.1);
    let area = Area {
        corner: (corner.0 + left, corner.1 + top),
        size: (inner.max(20.0), (size.1 - top - bottom).max(20.0)),
        x: &x,
        y: &y,
        bare: panel.bare,
    };
    if let Some(surface) = &panel.field {
        field::draw(svg, surface, area.corner, area.size);
    }
    if !panel.bare {
        axes(svg, panel, &area, (slanted, ticks), corner.0);
    }
    for (up, note) in notes.iter().rev().enumerate() {
        let place = (corner.0 + size.0 - 16.0, corner.1 + size.1 - 5.0 - NOTE * up as f64);
        svg.text(
            place,
            &shortened(note, SMALL, size.0),
            SMALL,
            Anchor::End,
            " font-style=\"italic\" fill-opacity=\"0.8\"",
        );
    }
    svg.keep(data::plot(panel, (&x, &y), area.corner, area.size));
    // A nested element clips what is outside, without the identifiers that a clip path would need.
    let [at_x, at_y, wide, high] = [area.corner.0, area.corner.1, area.size.0, area.size.1].map(number);
    svg.put(&format!("<svg x=\"{at_x}\" y=\"{at_y}\" width=\"{wide}\" height=\"{high}\">"));
    if panel.bare {
        helpers(svg, panel, &area);
    }
    let shares = panel.shares();
    for (at, series) in panel.series.iter().enumerate() {
        svg.put(&format!("<g data-series=\"{at}\">"));
        draw_series(svg, panel, series, (series.colour.unwrap_or(at), shares[at]), &area);
        svg.put("</g>");
    }
    if !panel.bare {
        helpers(svg, panel, &area);
    }
    svg.put("</svg>");
}

/// The title of a panel, around this position.
pub(super) fn heading(svg: &mut Svg, title: &str, middle: f64, top: f64, room: f64) {
    let title = shortened(title, TITLE, room);
    svg.text((middle, top + 18.0), &title, TITLE, Anchor::Middle, " font-weight=\"bold\"");
}

/// Draws the legend in rows; returns its height.
fn legend(svg: &mut Svg, panel: &Panel, corner: (f64, f64), room: f64, height: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    let named: Vec<(usize, &Series)> = panel.series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()).collect();
    for (shown, (at, series)) in named.iter().enumerate() {
        let name = shortened(&series.name, SMALL, room - 34.0);
        let wide = 24.0 + width(&name, SMALL) + 10.0;
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
        svg.text((place.0 + 22.0, place.1), &name, SMALL, Anchor::Start, "");
        x += wide;
    }
    if named.is_empty() { 4.0 } else { y + ROW + 4.0 }
}

/// The legend symbol of a series.
fn key(svg: &mut Svg, series: &Series, number: usize, (x, y): (f64, f64)) {
    let paint = svg.colour(number);
    if let Look::Bars(_) | Look::Steps(_) | Look::Area | Look::Boxes(..) = series.look {
        let style = format!("fill=\"{paint}\" fill-opacity=\"0.6\" stroke=\"{paint}\"");
        svg.rectangle((x + 3.0, y - 4.0), (x + 17.0, y + 4.0), &style);
        return;
    }
    if series.look != Look::Points {
        let style = stroke(svg, series, number);
        svg.line((x, y), (x + 18.0, y), &style);
    }
    if let Look::Points | Look::LineAndPoints = series.look {
        marks(svg, &[(x + 9.0, y)], number, 3.0, 1.0);
    }
}

fn axes(svg: &mut Svg, panel: &Panel, area: &Area<'_>, (slanted, depth): (bool, f64), panel_left: f64) {
    let (left, top) = area.corner;
    let (right, bottom) = (left + area.size.0, top + area.size.1);
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
        svg.line((x, top), (x, bottom), GRID);
        svg.line((x, bottom), (x, bottom + 4.0), FRAME);
        if at % every != 0 {
            continue;
        }
        if slanted {
            let turn = format!(" transform=\"rotate(-35 {} {})\"", number(x + 3.0), number(bottom + 13.0));
            let name = shortened(name, SMALL, (depth - 12.0) / 0.57);
            svg.text((x + 3.0, bottom + 13.0), &name, SMALL, Anchor::End, &turn);
        } else {
            svg.text((x, bottom + 16.0), name, SMALL, Anchor::Middle, "");
        }
    }
    for (tick, name) in &area.y.ticks {
        let y = bottom - area.y.fraction(*tick) * area.size.1;
        if shown(area.y.fraction(*tick)) {
            svg.line((left, y), (right, y), GRID);
            svg.line((left - 4.0, y), (left, y), FRAME);
            svg.text((left - 7.0, y + 3.7), name, SMALL, Anchor::End, "");
        }
    }
    for &tick in &area.x.minor {
        let x = left + area.x.fraction(tick) * area.size.0;
        svg.line((x, bottom), (x, bottom + 2.0), FRAME);
    }
    for &tick in &area.y.minor {
        let y = bottom - area.y.fraction(tick) * area.size.1;
        svg.line((left - 2.0, y), (left, y), FRAME);
    }
    svg.line((left, top), (left, bottom), FRAME);
    svg.line((left, bottom), (right, bottom), FRAME);
    svg.text(((left + right) / 2.0, bottom + depth + 15.0), &panel.x.label, LABEL, Anchor::Middle, "");
    let (x, y) = (panel_left + 14.0, (top + bottom) / 2.0);
    let turn = format!(" transform=\"rotate(-90 {} {})\"", number(x), number(y));
    svg.text((x, y), &shortened(&panel.y.label, LABEL, area.size.1 + 40.0), LABEL, Anchor::Middle, &turn);
}

fn helpers(svg: &mut Svg, panel: &Panel, area: &Area<'_>) {
    let dashed = "stroke=\"currentColor\" stroke-opacity=\"0.8\" stroke-width=\"1.2\" stroke-dasharray=\"5 4\"";
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
            Helper::Edge([from, to]) => {
                svg.line(area.point(*from), area.point(*to), "stroke=\"currentColor\" stroke-opacity=\"0.3\"")
            }
            Helper::Text(at, text, hold) => {
                svg.text(area.point(*at), text, SMALL, (*hold).into(), " fill-opacity=\"0.85\"");
            }
        }
    }
}
