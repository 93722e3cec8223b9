//! What the blocks of a ResNet know, and in how few directions.

use crate::experiment::{Experiment, Needs};
use crate::explain::cifar::{network, part};
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::job::{ProbeJob, SpectrumJob};
use mercer::report::{Axis, Figure, Panel, Series};
use serde_json::Value;
use std::path::PathBuf;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "layer-probes",
    group: "Layers and spectra",
    title: "Classifiers on the principal components of every block",
    paper: "Chiang et al., Report on Pure Mathematics of Machine Learning, 2023, section 4",
    claim: "In the last blocks of a ResNet, nearest neighbours, the nearest class centre and a linear SVM reach the same accuracy, on few \
        principal components (figure 17) that explain 20 to 40 % of the variance (figure 18).",
    published: "a ResNet-18 of 92.5 % on CIFAR-10: the three agree from block 5 of 8 on, and from block 6 on need 2 or 3 components for 90 % \
        of the accuracy; the components that the nonlinear two need explain 20 to 40 % of the variance in all blocks.",
    setting: "A ResNet-20 of 91.7 %, because the report's network is not public; `--nets DIR` adds a ResNet-56 from that folder. The first \
        5,000 training and the first 2,000 test images of CIFAR-10; the report does not say how many it takes. Layers are the first \
        activation, the nine (27) blocks and the features of the last layer. The cost of the support vector machines is 1 on samples \
        scaled to a mean square of 1. CKA and TwoNN are of 2,000 training images.",
    cost: 1800,
    needs: &[Needs::Cifar10],
    options: &["samples", "test", "nets", "only"],
    threads: 0,
    run,
};

/// Seconds that the probes of the ResNet-20 and the spectra of all weights may take.
const LIMITS: [f64; 2] = [900.0, 10.0];

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let (samples, test) = (options.number("samples", 5000, 120)?, options.number("test", 2000, 40)?);
    let folder = options.set(Needs::Cifar10)?;
    let mut networks: Vec<(&str, PathBuf)> = vec![("ResNet-20", network())];
    if let Some(nets) = options.path("nets") {
        networks.push(("ResNet-56", nets.join("cifar10_resnet56.onnx")));
    }
    let (train, held_out) = (part(&work, &folder, true, 0..samples)?, part(&work, &folder, false, 0..test)?);
    let (mut tables, mut figures, mut notes, mut holds) = (Vec::new(), Vec::new(), Vec::new(), None);
    for (name, path) in networks.into_iter().filter(|(name, _)| options.wants(name)) {
        let job = ProbeJob {
            test: held_out.data.clone(),
            test_labels: held_out.labels.clone(),
            ..ProbeJob::new(&path, train.clone())
        };
        let done = work.run(&name.to_lowercase(), &job)?;
        let spectra = work.fresh(&format!("{}-spectra", name.to_lowercase()), &SpectrumJob::new(&path))?;
        tables.push(table(name, &done)?);
        notes.extend(claims(name, &done, &spectra)?);
        if name == "ResNet-20" {
            holds = Some(agree(&done)?);
            figures = vec![
                Drawing {
                    file: "probe-accuracy.svg",
                    caption: "Accuracy against the number of principal components, a line per block of the ResNet-20.",
                    figure: accuracy(&done)?,
                },
                Drawing {
                    file: "probe-components.svg",
                    caption: "Components for 90 % of the accuracy of each probe, and the variance they explain.",
                    figure: components(&done)?,
                },
            ];
        }
    }
    if options.quick {
        figures.clear();
    }
    Ok(Report { tables, figures, notes, holds, earlier: work.earlier() })
}

/// The probes, by the keys of the results.
const PROBES: [(&str, &str); 3] =
    [("neighbours", "10-NN"), ("centre", "nearest class centre"), ("svm", "support vector machine")];

fn layers(done: &Done) -> Fallible<&[Value]> {
    Ok(done.found["layers"].as_array().ok_or("there are no layers")?)
}

fn number(value: &Value) -> Cell {
    value.as_f64().map_or(Cell::Nothing, Cell::Number)
}

fn table(name: &str, done: &Done) -> Fallible<Table> {
    let mut table = Table::new(format!("{name}, {:.0} s:", done.seconds))
        .column("layer", Format::Plain)
        .column("numbers", Format::Plain);
    for (_, probe) in PROBES {
        table = table.column(probe, Format::Percent(1));
    }
    table = table.column("linear probe", Format::Percent(1)).column("d₉₀ of the three", Format::Plain);
    table = table.column("variance of the three", Format::Plain).column("PCs for 90 %", Format::Plain);
    table = table.column("TwoNN", Format::Fixed(1)).column("NC1", Format::Fixed(2)).column("NC4", Format::Percent(1));
    for layer in layers(done)? {
        let mut cells = row![layer["node"].as_str().unwrap_or_default(), layer["n_features"].as_f64().unwrap_or(0.0)];
        cells.extend(PROBES.map(|(key, _)| number(&layer["accuracy"][key])));
        cells.push(number(&layer["linear"]["accuracy"]));
        let joined = |group: &str, text: fn(f64) -> String| {
            let parts = PROBES.map(|(key, _)| layer[group][key].as_f64().map_or("–".to_owned(), text));
            Cell::Text(parts.join(", "))
        };
        cells.push(joined("d90", |d| format!("{d}")));
        cells.push(joined("variance_at_d90", |share| format!("{:.0} %", 100.0 * share)));
        cells.push(number(&layer["intrinsic_dimension"]["pca90"]));
        cells.push(number(&layer["intrinsic_dimension"]["twonn"]));
        cells.extend([number(&layer["nc1"]), number(&layer["nc4"])]);
        table.push(cells);
    }
    Ok(table)
}

/// Whether the three probes agree in the last block, on at most ten components.
fn agree(done: &Done) -> Fallible<bool> {
    let blocks = layers(done)?;
    let last = blocks.len().checked_sub(2).and_then(|at| blocks.get(at)).ok_or("there are no blocks")?;
    let few = PROBES.iter().all(|(key, _)| last["d90"][key].as_f64().is_some_and(|d| d <= 10.0));
    let own = PROBES.map(|(key, _)| last["accuracy"][key].as_f64().unwrap_or(0.0));
    let spread = own.iter().copied().fold(f64::MIN, f64::max) - own.iter().copied().fold(f64::MAX, f64::min);
    Ok(few && spread <= 0.02 + 1e-12)
}

/// The claims of the report, one by one.
fn claims(name: &str, done: &Done, spectra: &Done) -> Fallible<Vec<String>> {
    let blocks = layers(done)?;
    let from = done.found["agree_from"].as_str().unwrap_or("none");
    let later = &blocks[blocks.len() / 2..];
    let shares: Vec<f64> = later
        .iter()
        .flat_map(|layer| PROBES.map(|(key, _)| layer["variance_at_d90"][key].as_f64()))
        .flatten()
        .collect();
    let (low, high) = shares.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    let within = |seconds: f64, limit: f64| if seconds <= limit { "within" } else { "beyond" };
    Ok(vec![
        format!("{name}: the three probes agree within two points from {from} on."),
        format!(
            "{name}: in the second half of the layers, the components for 90 % of the accuracy explain {:.0} to {:.0} % of the variance.",
            100.0 * low,
            100.0 * high
        ),
        format!(
            "{name}: probes took {:.0} s ({} {} s), spectra of all weights {:.2} s ({} {} s).",
            done.seconds,
            within(done.seconds, LIMITS[0]),
            LIMITS[0],
            spectra.seconds,
            within(spectra.seconds, LIMITS[1]),
            LIMITS[1]
        ),
    ])
}

/// The name of a layer without its exporter's words.
fn short(layer: &Value) -> String {
    let name = layer["node"].as_str().unwrap_or_default().trim_end_matches("_output_0");
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [.., block, _] => block.to_owned(),
        _ => parts.join("/"),
    }
}

fn accuracy(done: &Done) -> Fallible<Figure> {
    let mut figure = Figure::new("").panel_size(420, 420);
    for (key, title) in PROBES {
        let mut lines = Vec::new();
        for layer in layers(done)? {
            let list = |value: &Value| -> Vec<f64> {
                value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
            };
            let (d, values) = (list(&layer["curves"]["dimensions"]), list(&layer["curves"][key]));
            lines.push(Series::line(short(layer), d.into_iter().zip(values).collect::<Vec<_>>()));
        }
        let (x, y) = (Axis::log("principal components"), Axis::linear("accuracy").range(0.0, 1.0));
        figure = figure.panel(Panel::lines(title, x, y, lines));
    }
    Ok(figure)
}

fn components(done: &Done) -> Fallible<Figure> {
    let blocks = layers(done)?;
    let names: Vec<String> = blocks.iter().map(short).collect();
    let lines = |group: &str| -> Vec<Series> {
        let line = |(key, title): (&str, &str)| {
            let points = blocks.iter().enumerate();
            let points = points.filter_map(|(at, layer)| Some((at as f64, layer[group][key].as_f64()?)));
            Series::marked_line(title, points.collect::<Vec<_>>())
        };
        PROBES.map(line).into()
    };
    let x = || Axis::names("layer", names.clone());
    let y = Axis::linear("share of the variance").range(0.0, 1.0);
    Ok(Figure::new("")
        .panel(Panel::lines(
            "Components for 90 % of the accuracy",
            x(),
            Axis::log("principal components"),
            lines("d90"),
        ))
        .panel(Panel::lines("The variance they explain", x(), y, lines("variance_at_d90"))))
}
