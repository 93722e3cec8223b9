//! The numbers of a figure, as the figure carries them.

use super::axis::{Axis, Ruler, Scale};
use super::heat::Heat;
use super::panel::Panel;
use super::series::{Look, Series, Spread};
use super::thin::pick;
use serde_json::{Value, json};

/// The most points of a line that are kept; further ones are left out evenly.
const LINE: usize = 2000;

/// The most cells of a matrix that are kept.
const CELLS: usize = 4096;

/// JSON that may stand inside an element of a page or a drawing: without `<`, `>` and `&`, and without characters that XML
/// does not allow.
pub(crate) fn markup_json(value: &Value) -> String {
    let text = value.to_string();
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => safe.push(character),
        }
    }
    safe
}

/// A number with six digits, which is more than a figure shows.
fn short(x: f64) -> Value {
    format!("{x:.5e}").parse::<f64>().ok().filter(|x| x.is_finite()).map_or(Value::Null, |x| match x.abs() < 1e15 {
        true if x.fract() == 0.0 => json!(x as i64),
        _ => json!(x),
    })
}

fn numbers(values: impl Iterator<Item = f64>) -> Value {
    Value::Array(values.map(short).collect())
}

fn axis(axis: &Axis, ruler: &Ruler) -> Value {
    let scale = match &axis.scale {
        Scale::Linear | Scale::Whole => json!("linear"),
        Scale::Log => json!("log"),
        Scale::Names(names) => json!(names),
    };
    let (low, high) = ruler.ends();
    json!({ "label": axis.label, "scale": scale, "ends": [short(low), short(high)] })
}

/// A panel with axes: its series, and where they are.
pub(super) fn plot(panel: &Panel, (x, y): (&Ruler, &Ruler), corner: (f64, f64), size: (f64, f64)) -> Value {
    let shares = panel.shares();
    let mut found = json!({
        "title": panel.title,
        "area": numbers([corner.0, corner.1, size.0, size.1].into_iter()),
    });
    if let Some(space) = &panel.space {
        let classes = panel.series.iter().zip(&space.points).zip(&shares).enumerate().map(|(at, ((own, points), &share))| {
            // The points that are drawn are those that `pick` finds in the projection.
            let kept = pick(&own.points, share);
            let along = |k: usize| numbers(kept.iter().map(|&at| points[at][k]));
            json!({ "name": own.name, "colour": own.colour.unwrap_or(at), "x": along(0), "y": along(1), "z": along(2) })
        });
        found["kind"] = json!("space");
        found["labels"] = json!(space.labels);
        found["ends"] = Value::Array(space.ends.iter().map(|&(low, high)| json!([short(low), short(high)])).collect());
        found["series"] = classes.collect();
        return found;
    }
    found["kind"] = json!("plot");
    found["x"] = axis(&panel.x, x);
    found["y"] = axis(&panel.y, y);
    let each = panel.series.iter().zip(shares).enumerate();
    found["series"] = each.map(|(at, (series, share))| one(panel, series, at, share)).collect();
    found
}

fn one(panel: &Panel, series: &Series, at: usize, share: usize) -> Value {
    let drawable: Vec<usize> = (0..series.points.len()).filter(|&at| panel.drawable(series.points[at])).collect();
    let kept: Vec<usize> = match &series.look {
        Look::Points => {
            let points: Vec<(f64, f64)> = drawable.iter().map(|&at| series.points[at]).collect();
            pick(&points, share).into_iter().map(|at| drawable[at]).collect()
        }
        _ => drawable.iter().copied().step_by(drawable.len().div_ceil(LINE).max(1)).collect(),
    };
    let mut found = json!({
        "name": series.name,
        "colour": series.colour.unwrap_or(at),
        "look": if series.look == Look::Points { "points" } else { "line" },
        "x": numbers(kept.iter().map(|&at| series.points[at].0)),
        "y": numbers(kept.iter().map(|&at| series.points[at].1)),
    });
    let ends = |at: usize| match &series.spread {
        Spread::None => None,
        Spread::Errors(errors) => {
            errors.get(at).map(|error| (series.points[at].1 - error, series.points[at].1 + error))
        }
        Spread::Band(ends) => ends.get(at).copied(),
    };
    if series.spread != Spread::None {
        found["low"] = numbers(kept.iter().map(|&at| ends(at).map_or(f64::NAN, |ends| ends.0)));
        found["high"] = numbers(kept.iter().map(|&at| ends(at).map_or(f64::NAN, |ends| ends.1)));
    }
    if let Look::Boxes(_, summaries) = &series.look {
        let kept = || kept.iter().filter_map(|&at| summaries.get(at));
        found["mean"] = numbers(kept().map(|own| own.mean));
        found["q1"] = numbers(kept().map(|own| own.q1));
        found["q3"] = numbers(kept().map(|own| own.q3));
        found["low"] = numbers(kept().map(|own| own.low_whisker));
        found["high"] = numbers(kept().map(|own| own.high_whisker));
    }
    found
}

/// A matrix, if it is not too large to be carried.
pub(super) fn heat(panel: &Panel, heat: &Heat, corner: (f64, f64), size: (f64, f64)) -> Value {
    if heat.values.len() > CELLS {
        return Value::Null;
    }
    let names = heat.groups().map(|groups| -> Vec<&str> {
        groups.iter().flat_map(|(name, count)| std::iter::repeat_n(name.as_str(), *count)).collect()
    });
    json!({
        "kind": "heat",
        "title": panel.title,
        "area": numbers([corner.0, corner.1, size.0, size.1].into_iter()),
        "x": { "label": panel.x.label },
        "y": { "label": panel.y.label },
        "rows": names[0],
        "columns": names[1],
        "n_columns": heat.columns,
        "values": numbers(heat.values.iter().copied()),
    })
}
