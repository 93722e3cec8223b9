//! How far the pseudo-NTK is from the NTK, over width and training.

use crate::experiment::{Experiment, Needs};
use crate::explain::cifar::part;
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::job::CompareJob;
use mercer::job::train::{OptimiserName, TrainingSpec};
use mercer::report::{Axis, Figure, Panel, Series};
use serde_json::Value;
use std::num::NonZeroUsize;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pseudo-ntk-agreement",
    group: "Kernels",
    title: "The pseudo-NTK in the place of the NTK",
    paper: "Mohamadi and Sutherland 2022, arXiv 2206.12543",
    claim: "At initialisation, the pseudo-NTK comes nearer to the NTK as the network becomes wider (figures 2 to 6). The predictions of the two \
        linearised networks converge during training, though the matrices do not (figures 7 and 8).",
    published: "as figures only.",
    setting: "Fully connected networks of depth 3, convolutional ones of depth 8 and residual ones of three blocks, three widths each, with He's \
        initialisation, trained on the images on which the kernels are evaluated by SGD with momentum 0.9 and weight decay 1e-4, as in the \
        paper. Smaller than there: 300 training and 150 test images of CIFAR-10 instead of 1,000 and 500; one seed instead of three; at \
        most 1.7·10⁵ parameters in convolutional networks; 100 epochs of batches of 32 at a learning rate of 0.01 instead of 200 of 128 at \
        0.1. The residual networks have scales and shifts in the place of batch normalisation, and there is no WideResNet. The \
        ratio of figure 2 is not defined there; ours is the sum of magnitudes off the diagonals of the 10 × 10 blocks over that on them. \
        No ridge; jitter only where a factor needs it.",
    cost: 1200,
    needs: &[Needs::Cifar10],
    options: &["samples", "test", "epochs", "seeds", "only"],
    threads: 0,
    run,
};

/// A kind of network: its name, its description, and the factors of its widths.
const NETWORKS: [(&str, &str, [f64; 3]); 3] = [
    (
        "FCN",
        "[mlp]\ninputs = [3, 32, 32]\nwidths = [64, 64]\noutputs = 10\ninitialisation = \"he\"\n",
        [1.0, 4.0, 16.0],
    ),
    (
        "ConvNet",
        "[cnn]\ninputs = [3, 32, 32]\noutputs = 10\ninitialisation = \"he\"\nlayers = [\n    { conv = { channels = 8, kernel = 3, stride = 2 } },\n    \
         { conv = { channels = 8, kernel = 3 } },\n    { conv = { channels = 8, kernel = 3 } },\n    { average-pool = { size = 2 } },\n    \
         { conv = { channels = 8, kernel = 3 } },\n    { conv = { channels = 8, kernel = 3 } },\n    { conv = { channels = 8, kernel = 3 } },\n    \
         { conv = { channels = 8, kernel = 3 } },\n    \"global-average-pool\",\n]\n",
        [1.0, 2.5, 6.0],
    ),
    (
        "ResNet",
        "[residual]\noutputs = 10\nblocks = [1, 1, 1]\nwidth = 6\nnormalisation = \"affine\"\n",
        [1.0, 2.0, 4.0],
    ),
];

/// The measures of a pair, by the keys of the result, and the figures of the paper.
const MEASURES: [(&str, &str); 5] = [
    ("frobenius", "Figure 3: relative distance"),
    ("lambda_max", "Figure 4: largest eigenvalue"),
    ("lambda_min", "Figure 5: smallest eigenvalue"),
    ("condition", "Figure 6: condition number"),
    ("predictions", "Figure 7: predictions"),
];

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let (samples, test) = (options.number("samples", 300, 20)?, options.number("test", 150, 10)?);
    let (epochs, seeds) = (options.number("epochs", 100, 2)?, options.number("seeds", 1, 1)?);
    let folder = options.set(Needs::Cifar10)?;
    let (train, held_out) = (part(&work, &folder, true, 0..samples)?, part(&work, &folder, false, 0..test)?);
    let (mut cases, mut notes) = (Vec::new(), Vec::new());
    for (name, toml, widths) in NETWORKS.into_iter().filter(|(name, ..)| options.wants(name)) {
        let widths = if options.quick { vec![0.25, 1.0] } else { widths.to_vec() };
        let job = CompareJob {
            arch: Some(work.architecture(&name.to_lowercase(), toml)?),
            kernels: vec!["full".to_owned(), "pseudo".to_owned()],
            widths,
            seeds: Some(seeds),
            training: TrainingSpec {
                optimiser: OptimiserName::Sgd,
                learning_rate: Some(0.01),
                momentum: Some(0.9),
                weight_decay: Some(1e-4),
                batch: NonZeroUsize::new(32),
                checkpoint_at: vec![0, epochs / 2, epochs],
                ..TrainingSpec::default()
            },
            data: train.clone(),
            test: held_out.data.clone(),
            test_labels: held_out.labels.clone(),
            ..CompareJob::default()
        };
        let done = work.run(&name.to_lowercase(), &job)?;
        notes.push(format!("{name}: {:.0} s.", done.seconds));
        cases.push(Case { name, done });
    }
    let mut all = true;
    for case in &cases {
        let (narrow, wide) = (case.at_start(true)?, case.at_start(false)?);
        let (start, end) = (case.predictions(true)?, case.predictions(false)?);
        all &= wide < narrow && end < start;
        notes.push(format!(
            "{}: at initialisation the distance is {narrow:.3} at the smallest width and {wide:.3} at the largest; the predictions differ by \
             {start:.3} before training and by {end:.3} after it (mean over widths).",
            case.name
        ));
    }
    let figures = if options.quick { Vec::new() } else { drawings(&cases)? };
    Ok(Report { tables: vec![table(&cases)?], figures, notes, holds: Some(all), earlier: work.earlier() })
}

/// The comparisons of one kind of network.
struct Case {
    name: &'static str,
    done: Done,
}

impl Case {
    fn networks(&self) -> Fallible<&[Value]> {
        Ok(self.done.found["networks"].as_array().ok_or("there are no networks")?)
    }

    /// Different widths, in order.
    fn widths(&self) -> Fallible<Vec<f64>> {
        let mut widths: Vec<f64> = self.networks()?.iter().filter_map(|one| one["width"].as_f64()).collect();
        widths.dedup();
        Ok(widths)
    }

    /// The mean of a number over the networks that are wanted.
    fn mean(&self, wanted: impl Fn(&Value) -> bool, pointer: &str) -> Fallible<f64> {
        let own = self.networks()?.iter().filter(|one| wanted(one));
        let values: Vec<f64> = own.filter_map(|one| one.pointer(pointer)?.as_f64()).collect();
        if values.is_empty() {
            return Err(format!("{}: there is no {pointer}", self.name).into());
        }
        Ok(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The distance at initialisation, of the narrowest or the widest network.
    fn at_start(&self, narrowest: bool) -> Fallible<f64> {
        let widths = self.widths()?;
        let width = if narrowest { widths.first() } else { widths.last() }.copied();
        self.mean(|one| one["epoch"] == 0 && one["width"].as_f64() == width, "/pairs/0/frobenius")
    }

    /// How much the predictions differ before or after training.
    fn predictions(&self, before: bool) -> Fallible<f64> {
        let last = self.networks()?.last().map(|one| one["epoch"].clone()).unwrap_or_default();
        self.mean(|one| if before { one["epoch"] == 0 } else { one["epoch"] == last }, "/pairs/0/predictions")
    }

    /// A number over the epochs, a line per width.
    fn lines(&self, value: impl Fn(&Value) -> Option<f64>) -> Fallible<Vec<Series>> {
        let mut lines = Vec::new();
        for width in self.widths()? {
            let own = self.networks()?.iter().filter(|one| one["width"].as_f64() == Some(width));
            let mut points: Vec<(f64, Vec<f64>)> = Vec::new();
            for one in own {
                let (Some(epoch), Some(value)) = (one["epoch"].as_f64(), value(one)) else { continue };
                match points.iter_mut().find(|(known, _)| *known == epoch) {
                    Some((_, values)) => values.push(value),
                    None => points.push((epoch, vec![value])),
                }
            }
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let points: Vec<(f64, f64)> = points.iter().map(|(epoch, values)| (*epoch, mean(values))).collect();
            lines.push(Series::marked_line(format!("× {width}"), points));
        }
        Ok(lines)
    }
}

fn number(value: &Value) -> Cell {
    value.as_f64().map_or(Cell::Nothing, Cell::Number)
}

/// A row per network.
fn table(cases: &[Case]) -> Fallible<Table> {
    let mut table =
        Table::new("NTK and pseudo-NTK; accuracies of the two linearised networks and of the network itself.")
            .column("network", Format::Plain)
            .column("parameters", Format::Plain)
            .column("epoch", Format::Plain)
            .column("off/on", Format::Fixed(3));
    for (name, format) in [
        ("distance", Format::Fixed(3)),
        ("λmax", Format::Fixed(3)),
        ("λmin", Format::Scientific(1)),
        ("condition", Format::Scientific(1)),
        ("predictions", Format::Fixed(3)),
    ] {
        table = table.column(name, format);
    }
    for name in ["NTK", "pseudo-NTK", "network", "on training images"] {
        table = table.column(name, Format::Percent(1));
    }
    for case in cases {
        for one in case.networks()? {
            let pair = &one["pairs"][0];
            let mut row = row![
                format!("{} × {}", case.name, one["width"]),
                number(&one["n_params"]),
                number(&one["epoch"]),
                number(&one["matrices"][0]["mass"]["ratio"])
            ];
            row.extend(MEASURES.iter().map(|(key, _)| number(&pair[*key])));
            row.extend([&pair["accuracy_a"], &pair["accuracy_b"], &one["test_accuracy"], &one["accuracy"]].map(number));
            table.push(row);
        }
    }
    Ok(table)
}

fn drawings(cases: &[Case]) -> Fallible<Vec<Drawing>> {
    let x = || Axis::linear("epoch");
    let (mut agreement, mut spectra) = (Figure::new("").columns(4), Figure::new("").columns(3));
    for case in cases {
        let mass = case.lines(|one| one["matrices"][0]["mass"]["ratio"].as_f64())?;
        agreement =
            agreement.panel(Panel::lines(format!("{}, figure 2: off/on", case.name), x(), Axis::linear(""), mass));
        for (key, title) in MEASURES {
            let lines = case.lines(|one| one["pairs"][0][key].as_f64())?;
            let panel = Panel::lines(format!("{}, {}", case.name, title.to_lowercase()), x(), Axis::log(""), lines);
            match key {
                "frobenius" | "predictions" => agreement = agreement.panel(panel),
                _ => spectra = spectra.panel(panel),
            }
        }
        let difference = |one: &Value| {
            let accuracy = |key: &str| one["pairs"][0][key].as_f64();
            Some(accuracy("accuracy_b")? - accuracy("accuracy_a")?)
        };
        let title = format!("{}, figure 8: accuracy, pseudo − full", case.name);
        agreement =
            agreement.panel(Panel::lines(title, x(), Axis::linear(""), case.lines(difference)?).horizontal(0.0));
    }
    Ok(vec![
        Drawing {
            file: "pseudo-agreement.svg",
            caption: "NTK and pseudo-NTK over training, a line per width: figures 2, 3, 7 and 8 of the paper.",
            figure: agreement,
        },
        Drawing {
            file: "pseudo-spectra.svg",
            caption: "Relative differences of eigenvalues and condition numbers: figures 4, 5 and 6 of the paper.",
            figure: spectra,
        },
    ])
}
