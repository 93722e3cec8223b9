//! Figures that a page draws itself: those that a slider turns over, and those of results without figures.

use super::data::plain;
use super::run::Run;
use super::section::figure_id;
use crate::Error;
use mercer_data::{Dataset, Source};
use mercer_kernel::gram::KeptGram;
use mercer_report::page::{Drawing, FigureBlock};
use mercer_report::{Axis, Figure, Panel, Series};
use mercer_run::Context;
use serde_json::Value;

/// The most steps of a slider; of more, some are left out evenly.
const STEPS: usize = 12;

/// The most rows and columns of a matrix that are drawn.
const SIDE: usize = 160;

/// Bins of a histogram.
const BINS: usize = 40;

/// Stores up to this size are read to be drawn.
const STORE: usize = 64 << 20;

/// The figures of a result, beside those in its folder, and why there are none where a reader may expect one.
pub(super) fn special(run: &Run, at: usize, context: &Context) -> Result<(Vec<FigureBlock>, Vec<String>), Error> {
    let mut notes = Vec::new();
    let figures = match run.job() {
        "train" => course(run, at).into_iter().collect(),
        "kernel" | "predict" => match matrix(run, at, context)? {
            Ok(figure) => vec![figure],
            Err(why) => {
                notes.push(why);
                Vec::new()
            }
        },
        "probe" => [probe_layers(run, at), probe_checkpoints(run, at)].into_iter().flatten().collect(),
        "spectrum" => [spectrum_weights(run, at), spectrum_checkpoints(run, at)].into_iter().flatten().collect(),
        _ => Vec::new(),
    };
    Ok((figures, notes))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The indices of at most [`STEPS`] of many, with both ends.
fn some(n: usize) -> Vec<usize> {
    if n <= STEPS {
        return (0..n).collect();
    }
    (0..STEPS).map(|at| at * (n - 1) / (STEPS - 1)).collect()
}

fn said(n: usize, thing: &str) -> String {
    if n <= STEPS { String::new() } else { format!(" {STEPS} of {n} {thing} are shown.") }
}

/// Loss and accuracy over the epochs.
fn course(run: &Run, at: usize) -> Option<FigureBlock> {
    let history = list(&run.result, "history");
    let line = |name: &str, key: &str| {
        let points = history.iter().filter_map(|own| Some((own["epoch"].as_f64()?, own[key].as_f64()?)));
        Series::line(name, points.collect::<Vec<_>>())
    };
    let has = |key: &str| history.iter().any(|own| own[key].is_number());
    if history.is_empty() {
        return None;
    }
    let mut figure = Figure::new("");
    for (title, keys) in [("Loss", ["loss", "evaluation_loss"]), ("Accuracy", ["accuracy", "evaluation_accuracy"])] {
        let lines: Vec<Series> = keys
            .into_iter()
            .zip(["training", "unseen"])
            .filter(|(key, _)| has(key))
            .map(|(key, name)| line(name, key))
            .collect();
        if !lines.is_empty() {
            let y = if title == "Loss" { Axis::log("loss") } else { Axis::linear("accuracy") };
            figure = figure.panel(Panel::lines(title, Axis::whole("epoch"), y, lines));
        }
    }
    Some(FigureBlock::new(figure_id(at, "course.svg"), "The course of training.", Drawing::of(&figure)))
}

/// Rows and columns of a matrix, evenly spaced if it is large; or why it is not drawn.
fn matrix(run: &Run, at: usize, context: &Context) -> Result<Result<FigureBlock, String>, Error> {
    let source = Source::new(run.path.clone(), None);
    let pick = |n: usize| -> Vec<usize> { (0..n.min(SIDE)).map(|at| at * n / n.clamp(1, SIDE)).collect() };
    let unsuitable =
        |shape: &[usize]| format!("The result has the shape {}; a page draws matrices.", crate::text::shape(shape));
    let mut values = Vec::new();
    let (rows, columns) = if run.path.is_dir() {
        let kept = match KeptGram::open(&source) {
            Ok(kept) => kept,
            Err(error) => return Ok(Err(format!("The store is not drawn: {}.", plain(&error.into())))),
        };
        let (shape, needed) = (kept.shape(), kept.bytes::<f64>());
        if needed > STORE {
            let text = format!("The store is not drawn: as a matrix it takes {}.", crate::text::bytes(needed));
            return Ok(Err(text));
        }
        let [rows, columns] = *shape else { return Ok(Err(unsuitable(&shape))) };
        let matrix = kept.read::<f64>(context)?;
        let across = pick(columns);
        values.extend(
            pick(rows)
                .iter()
                .flat_map(|&row| across.iter().map(move |&column| (row, column)))
                .map(|(row, column)| matrix.get([row, column].as_slice()).copied().unwrap_or(f64::NAN)),
        );
        (rows, columns)
    } else {
        if run.path.extension().is_some_and(|extension| extension == "json") {
            return Ok(Err("The result is a list of files, a matrix each; a page draws single matrices.".to_owned()));
        }
        let matrix = source.open()?;
        let [rows, columns] = *matrix.shape() else { return Ok(Err(unsuitable(matrix.shape()))) };
        let across = pick(columns);
        for row in pick(rows) {
            let own = one(&matrix, row)?;
            values.extend(across.iter().map(|&column| own[column]));
        }
        (rows, columns)
    };
    let what = if run.job() == "predict" { "Predictions" } else { "Kernel values" };
    let panel = Panel::heat_map(what, pick(columns).len(), values, Vec::<(String, usize)>::new());
    let note = match (rows.min(SIDE), columns.min(SIDE)) {
        kept if kept == (rows, columns) => format!("{what}, a row per sample."),
        (kept, across) => format!("{kept} of {rows} rows and {across} of {columns} columns, evenly spaced."),
    };
    Ok(Ok(FigureBlock::new(figure_id(at, "matrix.svg"), note, Drawing::of(&Figure::new("").panel(panel)))))
}

/// A row of an array, as numbers.
pub(super) fn one(array: &Dataset, row: usize) -> Result<Vec<f64>, Error> {
    Ok(array.rows::<f64>(row..row + 1)?.iter().copied().collect())
}

/// A slider over layers: accuracy of the probes, and explained variance.
fn probe_layers(run: &Run, at: usize) -> Option<FigureBlock> {
    let layers = list(&run.result, "layers");
    let steps = some(layers.len()).into_iter().map(|index| {
        let layer = &layers[index];
        let counts = numbers(&layer["curves"]["dimensions"]);
        let line = |name: &str, values: &Value| {
            Series::line(name, counts.iter().copied().zip(numbers(values)).collect::<Vec<_>>())
        };
        let curves = &layer["curves"];
        let lines = [
            ("nearest neighbours", &curves["neighbours"]),
            ("nearest class centre", &curves["centre"]),
            ("support vector machine", &curves["svm"]),
        ];
        let mut series: Vec<Series> = lines
            .iter()
            .filter(|(_, own)| own.as_array().is_some_and(|own| !own.is_empty()))
            .map(|(name, own)| line(name, own))
            .collect();
        series.push(line("explained variance", &layer["explained"]).dashed().colour(9));
        let (x, y) = (Axis::log("principal components"), Axis::linear("share").range(0.0, 1.0));
        let panel = Panel::lines(text(&layer["node"]), x, y, series);
        (text(&layer["node"]), Drawing::of(&Figure::new("").panel(panel)))
    });
    let steps: Vec<_> = steps.collect();
    let caption = format!(
        "One layer at a time: what probes read from its first principal components.{}",
        said(layers.len(), "layers")
    );
    (steps.len() > 1).then(|| FigureBlock::stepped(figure_id(at, "by-layer"), caption, "Layer", steps))
}

/// A slider over checkpoints: the best accuracy of every probe by layer.
fn probe_checkpoints(run: &Run, at: usize) -> Option<FigureBlock> {
    let checkpoints = list(&run.result, "checkpoints");
    let steps = some(checkpoints.len()).into_iter().map(|index| {
        let own = &checkpoints[index];
        let layers = list(own, "layers");
        let names: Vec<String> = layers.iter().map(|layer| text(&layer["node"])).collect();
        let line = |name: &str, key: &str| {
            let points =
                layers.iter().enumerate().filter_map(|(at, layer)| Some((at as f64, layer["accuracy"][key].as_f64()?)));
            Series::marked_line(name, points.collect::<Vec<_>>())
        };
        let series = [
            ("nearest neighbours", "neighbours"),
            ("nearest class centre", "centre"),
            ("support vector machine", "svm"),
        ];
        let accuracy = Panel::lines(
            "Best accuracy by layer",
            Axis::names("layer", names.clone()),
            Axis::linear("accuracy").range(0.0, 1.0),
            series
                .into_iter()
                .filter(|(_, key)| layers.iter().any(|layer| layer["accuracy"][key].is_number()))
                .map(|(name, key)| line(name, key)),
        );
        let collapse = ["nc1", "nc4"].map(|key| {
            let points = layers.iter().enumerate().filter_map(|(at, layer)| Some((at as f64, layer[key].as_f64()?)));
            Series::marked_line(key.to_uppercase(), points.collect::<Vec<_>>())
        });
        let collapse = Panel::lines("Collapse by layer", Axis::names("layer", names), Axis::linear(""), collapse);
        (text(&own["name"]), Drawing::of(&Figure::new("").panel(accuracy).panel(collapse)))
    });
    let steps: Vec<_> = steps.collect();
    let caption = format!("One checkpoint at a time.{}", said(checkpoints.len(), "checkpoints"));
    (steps.len() > 1).then(|| FigureBlock::stepped(figure_id(at, "by-checkpoint"), caption, "Checkpoint", steps))
}

/// A slider over weights: their eigenvalues at the first and the last checkpoint.
fn spectrum_weights(run: &Run, at: usize) -> Option<FigureBlock> {
    let checkpoints = list(&run.result, "checkpoints");
    let (first, last) = (checkpoints.first()?, checkpoints.last()?);
    let weights = list(last, "weights");
    let steps = some(weights.len()).into_iter().map(|index| {
        let own = &weights[index];
        let mut sets = vec![(text(&last["name"]), numbers(&own["eigenvalues"]))];
        if checkpoints.len() > 1 {
            sets.insert(
                0,
                (
                    text(&first["name"]),
                    numbers(&list(first, "weights").get(index).cloned().unwrap_or_default()["eigenvalues"]),
                ),
            );
        }
        let mut panel = Panel::histogram(text(&own["layer"]), "eigenvalue of W·Wᵀ/d", BINS, sets);
        if let Some(edge) = own["threshold"].as_f64() {
            panel = panel.vertical(edge);
        }
        (text(&own["layer"]), Drawing::of(&Figure::new("").panel(panel)))
    });
    let steps: Vec<_> = steps.collect();
    let caption = format!(
        "One weight at a time. Beyond the dashed line an eigenvalue is more than noise.{}",
        said(weights.len(), "weights")
    );
    (steps.len() > 1).then(|| FigureBlock::stepped(figure_id(at, "by-weight"), caption, "Weight", steps))
}

/// A slider over checkpoints: the eigenvalues of all weights.
fn spectrum_checkpoints(run: &Run, at: usize) -> Option<FigureBlock> {
    const LINES: usize = 8;
    const POINTS: usize = 100;
    let checkpoints = list(&run.result, "checkpoints");
    let steps = some(checkpoints.len()).into_iter().map(|index| {
        let own = &checkpoints[index];
        let line = |name: String, values: &Value| {
            let values = numbers(values);
            let step = values.len().div_ceil(POINTS).max(1);
            let ranked = values.into_iter().enumerate().step_by(step).map(|(rank, value)| ((rank + 1) as f64, value));
            Series::line(name, ranked.collect::<Vec<_>>())
        };
        let weights = list(own, "weights").iter().take(LINES).map(|own| line(text(&own["layer"]), &own["eigenvalues"]));
        let axes = || (Axis::log("rank"), Axis::log("eigenvalue"));
        let (x, y) = axes();
        let mut figure = Figure::new("").panel(Panel::lines("Weights", x, y, weights.collect::<Vec<_>>()));
        let kernels = [("conjugate kernel", &own["ck"]), ("tangent kernel", &own["ntk"])];
        let kernels: Vec<Series> = kernels
            .into_iter()
            .filter(|(_, own)| own.is_object())
            .map(|(name, own)| line(name.to_owned(), &own["eigenvalues"]))
            .collect();
        if !kernels.is_empty() {
            let (x, y) = axes();
            figure = figure.panel(Panel::lines("Kernels", x, y, kernels));
        }
        (text(&own["name"]), Drawing::of(&figure))
    });
    let steps: Vec<_> = steps.collect();
    let caption = format!("One checkpoint at a time: eigenvalues by rank.{}", said(checkpoints.len(), "checkpoints"));
    (steps.len() > 1).then(|| FigureBlock::stepped(figure_id(at, "by-checkpoint"), caption, "Checkpoint", steps))
}
