//! Figures of probes.

use super::findings::{LayerFindings, ProbeFindings, SimilarityMatrix};
use crate::Error;
use crate::job::folder::ResultFolder;
use mercer_lens::probe::Curves;
use mercer_report::figure::{Axis, Figure, Panel, Series};

/// All files that probes may write.
pub(super) const NAMES: [&str; 4] = ["accuracy.svg", "layers.svg", "collapse.svg", "similarity.svg"];

/// A heat map with more names than this cannot be read.
const READABLE: usize = 40;

/// Draws all figures.
pub(super) fn write(folder: &ResultFolder, found: &ProbeFindings) -> Result<(), Error> {
    let save = |name: &str, figure: Figure| folder.file(name, figure.to_svg().as_bytes());
    save("accuracy.svg", accuracy(found))?;
    save("layers.svg", layers(found))?;
    save("collapse.svg", collapse(found))?;
    if found.similarity.names.len() <= READABLE {
        save("similarity.svg", similarity(found))?;
    }
    Ok(())
}

/// The names of nodes, as short as they stay distinct: without the exporter's suffix, and without folders that the next
/// one repeats (`/layer1/layer1.0/Relu_1_output_0` becomes `layer1.0/Relu_1`).
pub(in crate::job) fn labels<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let names: Vec<&String> = names.collect();
    let short = |name: &str| {
        let parts: Vec<&str> = name.trim_end_matches("_output_0").split('/').filter(|part| !part.is_empty()).collect();
        let repeated = |at: usize| parts.get(at + 1).is_some_and(|next| next.starts_with(parts[at]));
        let kept: Vec<&str> = (0..parts.len()).filter(|&at| !repeated(at)).map(|at| parts[at]).collect();
        kept.join("/")
    };
    let all: Vec<String> = names.iter().map(|name| short(name)).collect();
    let distinct = |at: usize| all.iter().filter(|other| **other == all[at]).count() == 1 && !all[at].is_empty();
    (0..all.len()).map(|at| if distinct(at) { all[at].clone() } else { names[at].clone() }).collect()
}

type Curve = fn(&Curves) -> &[f64];

const PROBES: [(&str, Curve); 3] = [
    ("nearest neighbours", |curves| &curves.neighbours),
    ("nearest class centre", |curves| &curves.centre),
    ("support vector machine", |curves| &curves.svm),
];

/// Accuracy against the number of components, a panel per probe and a line per layer.
fn accuracy(found: &ProbeFindings) -> Figure {
    let names = labels(found.layers.iter().map(|layer| &layer.node));
    PROBES.iter().fold(Figure::new("").panel_size(420, 420), |figure, (title, curve)| {
        let line = |(layer, name): (&LayerFindings, &String)| {
            let points = layer.curves.dimensions.iter().zip(curve(&layer.curves));
            Series::line(name, points.map(|(&d, &value)| (d as f64, value)).collect::<Vec<_>>())
        };
        let lines: Vec<Series> =
            found.layers.iter().zip(&names).filter(|(layer, _)| !curve(&layer.curves).is_empty()).map(line).collect();
        if lines.is_empty() {
            return figure;
        }
        let (x, y) = (Axis::log("principal components"), Axis::linear("accuracy").range(0.0, 1.0));
        figure.panel(Panel::lines(*title, x, y, lines))
    })
}

/// What every layer needs and uses: components for 90 % of the accuracy, the variance they explain, dimensions.
fn layers(found: &ProbeFindings) -> Figure {
    let names = labels(found.layers.iter().map(|layer| &layer.node));
    let line = |name: &str, value: &dyn Fn(&LayerFindings) -> Option<f64>| {
        let points = found.layers.iter().enumerate();
        Series::marked_line(name, points.filter_map(|(at, layer)| Some((at as f64, value(layer)?))).collect::<Vec<_>>())
    };
    let x = || Axis::names("layer", names.clone());
    let needed = Panel::lines(
        "Components for 90 % of the accuracy",
        x(),
        Axis::log("principal components"),
        [
            line("nearest neighbours", &|layer| Some(layer.d90?.neighbours as f64)),
            line("nearest class centre", &|layer| Some(layer.d90?.centre as f64)),
            line("support vector machine", &|layer| Some(layer.d90?.svm? as f64)),
        ],
    );
    let variance = Panel::lines(
        "The variance they explain",
        x(),
        Axis::linear("share of the variance").range(0.0, 1.0),
        [
            line("nearest neighbours", &|layer| Some(layer.variance_at_d90?.neighbours)),
            line("nearest class centre", &|layer| Some(layer.variance_at_d90?.centre)),
            line("support vector machine", &|layer| layer.variance_at_d90?.svm),
        ],
    );
    let dimension = Panel::lines(
        "Intrinsic dimension",
        x(),
        Axis::log("dimensions"),
        [
            line("components for 90 % of the variance", &|layer| Some(layer.intrinsic_dimension.pca90 as f64)),
            line("TwoNN", &|layer| layer.intrinsic_dimension.twonn),
        ],
    );
    let mut linear = vec![
        line("on labels", &|layer| Some(layer.linear?.accuracy)),
        line("on shuffled labels", &|layer| Some(layer.linear?.shuffled_accuracy)),
    ];
    if found.layers.iter().any(|layer| layer.untrained.is_some()) {
        linear.push(line("untrained network", &|layer| layer.untrained));
    }
    let linear = Panel::lines("Linear probe", x(), Axis::linear("accuracy").range(0.0, 1.0), linear);
    Figure::new("").panel(needed).panel(variance).panel(dimension).panel(linear).columns(2)
}

/// Neural collapse by layer, or by checkpoint in the last layer.
fn collapse(found: &ProbeFindings) -> Figure {
    type Measure = fn(&LayerFindings) -> Option<f64>;
    const MEASURES: [(&str, Measure); 4] = [
        ("NC1: within classes / between", |layer| layer.collapse.nc1),
        ("NC2: distance from a simplex", |layer| layer.collapse.nc2),
        ("NC3: weights against class means", |layer| layer.collapse.nc3),
        ("NC4: not the nearest class mean", |layer| Some(layer.collapse.nc4)),
    ];
    MEASURES.iter().fold(Figure::new("").columns(2), |figure, (title, measure)| {
        let (x, series): (Axis, Vec<Series>) = match found.checkpoints.len() {
            0 | 1 => {
                let points = found.layers.iter().enumerate();
                let points: Vec<(f64, f64)> =
                    points.filter_map(|(at, layer)| Some((at as f64, measure(layer)?))).collect();
                let names = labels(found.layers.iter().map(|layer| &layer.node));
                (Axis::names("layer", names), vec![Series::marked_line("", points)])
            }
            _ => {
                let labels = labels(found.layers.iter().map(|layer| &layer.node));
                let line = |at: usize| {
                    let own = found.checkpoints.iter().enumerate();
                    let points = own.filter_map(|(time, one)| Some((time as f64, measure(one.layers.get(at)?)?)));
                    Series::marked_line(&labels[at], points.collect::<Vec<_>>())
                };
                let names = found.checkpoints.iter().map(|one| one.name.clone());
                (Axis::names("checkpoint", names), (0..found.layers.len()).map(line).collect())
            }
        };
        figure.panel(Panel::lines(*title, x, Axis::linear(""), series))
    })
}

/// CKA between all layers, checkpoints and kernels.
fn similarity(found: &ProbeFindings) -> Figure {
    let names = labels(found.similarity.names.iter());
    let panel = |title: &str, matrix: &SimilarityMatrix| {
        let values = matrix.cka.iter().flatten().map(|value| value.unwrap_or(f64::NAN)).collect::<Vec<_>>();
        Panel::named_heat_map(title, names.iter().cloned(), names.iter().cloned(), values)
    };
    Figure::new("")
        .panel(panel("Debiased linear CKA", &found.similarity.linear))
        .panel(panel("Debiased Gaussian CKA", &found.similarity.gaussian))
}
