//! Figures of comparisons.

use super::findings::{CompareFindings, NetworkFindings, PairFindings};
use super::words::{distinct, time};
use crate::Error;
use crate::job::folder::ResultFolder;
use mercer_report::figure::{Axis, Figure, Panel, Series};

/// All files that comparisons may write.
pub(super) const NAMES: [&str; 3] = ["agreement.svg", "circle.svg", "kernels.svg"];

/// Draws all figures.
pub(super) fn write(folder: &ResultFolder, found: &CompareFindings) -> Result<(), Error> {
    let save = |name: &str, figure: Figure| folder.file(name, figure.to_svg().as_bytes());
    save("kernels.svg", kernels(found))?;
    if !found.networks.is_empty() {
        save("agreement.svg", agreement(&found.networks))?;
    }
    if let Some(angles) = &found.angles {
        save("circle.svg", circle(found, angles))?;
    }
    Ok(())
}

/// Distance and alignment of all pairs.
fn kernels(found: &CompareFindings) -> Figure {
    let names: Vec<String> = found.matrices.iter().map(|one| one.name.clone()).collect();
    let map = |title: &str, own: f64, value: &dyn Fn(&PairFindings) -> f64| {
        let one = |(at, other): (usize, usize)| match at == other {
            true => own,
            false => {
                let (a, b) = (&names[at.min(other)], &names[at.max(other)]);
                found.pairs.iter().find(|pair| pair.a == *a && pair.b == *b).map_or(f64::NAN, value)
            }
        };
        let cells = (0..names.len()).flat_map(|at| (0..names.len()).map(move |other| (at, other)));
        Panel::named_heat_map(title, names.iter().cloned(), names.iter().cloned(), cells.map(one).collect::<Vec<_>>())
    };
    Figure::new("")
        .panel(map("Distance, after the best multiple", 0.0, &|pair| pair.likeness.scaled_frobenius))
        .panel(map("Debiased CKA", 1.0, &|pair| pair.likeness.cka.unwrap_or(f64::NAN)))
}

type Measure = fn(&NetworkFindings, usize) -> Option<f64>;

/// The measures of a pair: those of the figures of the paper, in their order, and CKA.
const MEASURES: [(&str, Measure, bool); 9] = [
    ("Relative distance of the matrices", |one, at| Some(one.pairs[at].likeness.frobenius), true),
    ("Largest eigenvalue, relative difference", |one, at| one.pairs[at].lambda_max, true),
    ("Smallest eigenvalue, relative difference", |one, at| one.pairs[at].lambda_min, true),
    ("Condition number, relative difference", |one, at| one.pairs[at].condition, true),
    ("Predictions, relative difference", |one, at| one.pairs[at].predictions, true),
    ("Accuracy, second minus first", |one, at| Some(one.pairs[at].accuracy_b? - one.pairs[at].accuracy_a?), false),
    ("Distance after the best multiple", |one, at| Some(one.pairs[at].likeness.scaled_frobenius), true),
    ("Debiased CKA", |one, at| one.pairs[at].likeness.cka, false),
    ("Accuracy of the network on the test samples", |one, _| one.test_accuracy, false),
];

/// Everything against the width, or with several checkpoints against these, a line per width.
fn agreement(networks: &[NetworkFindings]) -> Figure {
    let times = distinct(networks.iter().map(time));
    let widths = distinct(networks.iter().map(|one| one.width));
    let n_pairs = networks[0].pairs.len();
    let pair_name = |at: usize| format!("{}, {}", networks[0].pairs[at].a, networks[0].pairs[at].b);
    let x = || match (times.len() > 1, widths.len() > 1) {
        (true, _) => Axis::names("checkpoint", times.clone()),
        (false, true) => Axis::log("factor of the hidden widths"),
        (false, false) => Axis::names("network", networks.iter().map(|one| one.name.clone())),
    };
    // Points of a line: place and values of all seeds.
    let points = |measure: &dyn Fn(&NetworkFindings) -> Option<f64>, width: Option<Option<f64>>| {
        let mut points: Vec<(f64, Vec<f64>)> = Vec::new();
        for (number, one) in networks.iter().enumerate() {
            if width.is_some_and(|width| one.width != width) {
                continue;
            }
            let place = match (times.len() > 1, widths.len() > 1) {
                (true, _) => times.iter().position(|own| *own == time(one)).unwrap_or(0) as f64,
                (false, true) => one.width.unwrap_or(1.0),
                (false, false) => number as f64,
            };
            let Some(value) = measure(one) else { continue };
            match points.iter_mut().find(|(known, _)| *known == place) {
                Some((_, values)) => values.push(value),
                None => points.push((place, vec![value])),
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let line = |name: String, points: Vec<(f64, Vec<f64>)>, colour: usize| {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let deviation = |values: &[f64]| {
            let (own, n) = (mean(values), values.len() as f64);
            (values.iter().map(|value| (value - own).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
        };
        let series = Series::marked_line(name, points.iter().map(|(place, own)| (*place, mean(own)))).colour(colour);
        match points.iter().any(|(_, own)| own.len() > 1) {
            true => series.errors(points.iter().map(|(_, own)| deviation(own)).collect::<Vec<_>>()),
            false => series,
        }
    };
    let lines = |measure: Measure, n_pairs: usize| -> Vec<Series> {
        let by_width = times.len() > 1 && widths.len() > 1;
        let chosen: Vec<Option<Option<f64>>> =
            if by_width { widths.iter().map(|width| Some(*width)).collect() } else { vec![None] };
        let mut all = Vec::new();
        for pair in 0..n_pairs {
            for width in &chosen {
                let own = points(&|one| measure(one, pair), *width);
                if own.is_empty() {
                    continue;
                }
                let mut name = if n_pairs > 1 { pair_name(pair) } else { String::new() };
                if let Some(Some(width)) = width {
                    name = format!("{name} × {width}").trim().to_owned();
                }
                all.push(line(name, own, all.len()));
            }
        }
        all
    };
    let mut figure = Figure::new("").columns(3);
    // The first figure of the paper is about a kernel by itself.
    let mass: Measure = |one, at| one.matrices.iter().filter_map(|own| own.mass?.ratio).nth(at);
    let own = lines(mass, 1);
    if !own.is_empty() {
        figure = figure.panel(Panel::lines(
            "Off-diagonal over diagonal mass of the blocks",
            x(),
            Axis::linear("ratio"),
            own,
        ));
    }
    for (title, measure, logarithmic) in MEASURES {
        let own = lines(measure, if title.starts_with("Accuracy of the network") { 1 } else { n_pairs });
        if own.is_empty() {
            continue;
        }
        let y = if logarithmic { Axis::log("") } else { Axis::linear("") };
        figure = figure.panel(Panel::lines(title, x(), y, own));
    }
    figure
}

/// `κ(x₀, x)` along the circle, a panel per kernel, a line per network; the first checkpoint is dashed.
fn circle(found: &CompareFindings, angles: &[f64]) -> Figure {
    let mut order: Vec<usize> = (0..angles.len()).collect();
    order.sort_by(|&a, &b| angles[a].total_cmp(&angles[b]));
    let line = |row: &[f64]| -> Vec<(f64, f64)> { order.iter().map(|&at| (angles[at], row[at])).collect() };
    let widths = distinct(found.networks.iter().map(|one| one.width));
    let times = distinct(found.networks.iter().map(time));
    let drawn = found.matrices.iter().enumerate().filter(|(_, one)| one.row.is_some());
    drawn.fold(Figure::new("").columns(2), |figure, (at, kernel)| {
        let (mut series, mut names) = (Vec::new(), std::collections::BTreeSet::new());
        for one in &found.networks {
            let Some(row) = one.matrices.get(at).and_then(|own| own.row.as_deref()) else { continue };
            let group = widths.iter().position(|width| *width == one.width).unwrap_or(0);
            let (moment, is_first) = (time(one), times.first().is_some_and(|first| *first == time(one)));
            let mut name = one.width.map_or(String::new(), |width| format!("× {width}"));
            if times.len() > 1 {
                name = format!("{name} {moment}").trim().to_owned();
            }
            // Seeds share an entry of the legend.
            let is_known = !names.insert(name.clone());
            let own = Series::line(if is_known { String::new() } else { name }, line(row)).colour(group);
            series.push(if is_first && times.len() > 1 { own.dashed() } else { own });
        }
        if series.is_empty()
            && let Some(row) = &kernel.row
        {
            series.push(Series::line(kernel.name.clone(), line(row)));
        }
        figure.panel(Panel::lines(
            kernel.name.clone(),
            Axis::linear("angle in degrees"),
            Axis::linear("κ(x₀, x)"),
            series,
        ))
    })
}
