//! Drawing series: lines, marks, bars, and their errors.

use super::boxes;
use super::draw::Area;
use super::palette::round;
use super::panel::Panel;
use super::series::{Look, Series, Spread};
use super::svg::{Svg, number};
use super::thin::{LIMIT, pick, slim};

/// The style of a line.
pub(super) fn stroke(svg: &Svg, series: &Series, number: usize) -> String {
    let dashes = match (series.dashed, round(number)) {
        (false, 0) => "",
        (true, 0) => " stroke-dasharray=\"6 4\"",
        (false, _) => " stroke-dasharray=\"10 3 2 3\"",
        (true, _) => " stroke-dasharray=\"2 3\"",
    };
    format!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"{dashes}", svg.colour(number))
}

/// Draws a series in the colour with a number, with a mark at no more than `share` of its points.
pub(super) fn series(svg: &mut Svg, panel: &Panel, series: &Series, (number, share): (usize, usize), area: &Area<'_>) {
    let paint = svg.colour(number);
    spread(svg, panel, series, &paint, area);
    let drawable: Vec<(f64, f64)> = series.points.iter().copied().filter(|&point| panel.drawable(point)).collect();
    let marked = || pick(&drawable, share).into_iter().map(|at| area.point(drawable[at])).collect::<Vec<_>>();
    match &series.look {
        Look::Line | Look::LineAndPoints | Look::Stairs | Look::Area => {
            let style = stroke(svg, series, number);
            let runs = series.points.split(|&point| !panel.drawable(point));
            for run in runs {
                let run = slim(run.iter().map(|&point| area.point(point)).collect());
                if series.look == Look::Area {
                    let feet = [run.last(), run.first()].into_iter().flatten();
                    let feet: Vec<_> = feet.map(|&(x, _)| (x, area.point((0.0, 0.0)).1)).collect();
                    svg.path(&[&run[..], &feet].concat(), true, &format!("fill=\"{paint}\" fill-opacity=\"0.18\""));
                }
                let run = if series.look == Look::Stairs { stairs(&run) } else { run };
                match run[..] {
                    // A single point between two gaps would be invisible as a line.
                    [alone] if series.look != Look::LineAndPoints => marks(svg, &[alone], number, 1.6, 1.0),
                    _ => svg.path(&run, false, &style),
                }
            }
            if series.look == Look::LineAndPoints {
                marks(svg, &marked(), number, 2.8, 1.0);
            }
        }
        Look::Points => {
            // Many points are drawn smaller and more transparent.
            let pixels = marked();
            let (radius, opacity) = if pixels.len() > 2000 { (1.5, 0.35) } else { (2.5, 0.75) };
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
        Look::Boxes(width, summaries) => boxes::draw(svg, panel, (series, *width, summaries), &paint, area),
    }
}

/// The corners of a line that keeps its height up to the next point.
fn stairs(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = run.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    corners.chain(run.last().copied()).collect()
}

/// Error bars, or the area between two ends. Ends that are not finite are not drawn.
fn spread(svg: &mut Svg, panel: &Panel, series: &Series, paint: &str, area: &Area<'_>) {
    match &series.spread {
        Spread::None => {}
        Spread::Errors(errors) => {
            let style = format!("stroke=\"{paint}\" stroke-width=\"1.2\"");
            // Where points are thinned out, their errors would be a solid area.
            let few = series.points.len() <= LIMIT;
            for (&(x, y), &error) in series.points.iter().zip(errors).filter(|_| few) {
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
pub(super) fn marks(svg: &mut Svg, points: &[(f64, f64)], at: usize, radius: f64, opacity: f64) {
    svg.put(&format!("<g fill=\"{}\" fill-opacity=\"{}\">", svg.colour(at), number(opacity)));
    for &(x, y) in points {
        if round(at) == 0 {
            svg.put(&format!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", number(x), number(y), number(radius)));
        } else {
            svg.rectangle((x - radius, y - radius), (x + radius, y + radius), "");
        }
    }
    svg.put("</g>");
}
