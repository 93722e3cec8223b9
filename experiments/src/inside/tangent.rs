//! Tangent kernels of a small convolutional network before and after three trainings.

use super::pictures::{Spectra, numbers};
use super::training::history;
use crate::experiment::{Experiment, Needs};
use crate::images::{Images, Part, first_of_each};
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::job::train::{OptimiserName, TrainingSpec};
use mercer::job::{SpectrumJob, TrainJob};
use mercer::lens::spectra::compare_quantiles;
use mercer::net::train::files;
use mercer::report::{Figure, Panel};
use mercer::spec::DataSpec;
use serde_json::Value;
use std::num::NonZeroUsize;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tangent-spectra-over-training",
    group: "Layers and spectra",
    title: "Spectra of a tangent kernel over training",
    paper: "Chiang et al., Report on Pure Mathematics of Machine Learning, 2023, section 5; Wang et al. 2022, arXiv 2211.06506",
    claim: "Of a small convolutional network on two classes of CIFAR-10, gradient descent leaves the spectrum of the NTK as it was and \
        generalises worst, SGD makes its tail heavier, Adam does so most and generalises best (figure 22).",
    published: "the test accuracies, in the table; spectra and quantiles as figures.",
    setting: "The report prints no network, sample, loss, learning rate or length. Ours: three convolutions with average pools and a dense \
        layer, 159,969 parameters in the parametrisation of the report (weights N(0, 1), NTK scaling), one output, logistic loss; airplanes \
        against automobiles, the first 1,000 training images of each class, all 2,000 test images, pixels from −1 to 1. The kernel is \
        that of all training images. Learning rates come from one pilot run each, of 20 to 60 epochs, whose losses and \
        test accuracies were seen, and whose spectra were not: 3 for gradient descent, 0.5 for SGD and 0.01 for Adam, the last two in \
        batches of 32. *Moved* is the largest distance between \
        the distributions of eigenvalues before and after (Kolmogorov and Smirnov), *tail* the exponent α of a power law, smaller for a \
        heavier tail. The claim counts as held if distances and accuracies are in the order of the report.",
    cost: 1200,
    needs: &[Needs::Cifar10],
    options: &["samples", "test", "steps", "epochs", "only"],
    threads: 0,
    run,
};

const ARCH: &str = include_str!("nets/small_cnn.toml");

/// A subplot of figure 22.
struct Case {
    name: &'static str,
    optimiser: OptimiserName,
    learning_rate: f64,
    batch: Option<NonZeroUsize>,
    /// The test accuracy of the report.
    published: f64,
}

const CASES: [Case; 3] = [
    Case { name: "GD", optimiser: OptimiserName::Gd, learning_rate: 3.0, batch: None, published: 0.79 },
    Case {
        name: "SGD",
        optimiser: OptimiserName::Sgd,
        learning_rate: 0.5,
        batch: NonZeroUsize::new(32),
        published: 0.84,
    },
    Case {
        name: "Adam",
        optimiser: OptimiserName::Adam,
        learning_rate: 0.01,
        batch: NonZeroUsize::new(32),
        published: 0.864,
    },
];

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let (samples, test) = (options.number("samples", 1000, 15)?, options.number("test", 1000, 10)?);
    let (steps, epochs) = (options.number("steps", 300, 2)?, options.number("epochs", 30, 2)?);
    let folder = options.set(Needs::Cifar10)?;
    let part = |part, name: &str, most: usize| -> Fallible<DataSpec> {
        let first = |classes: &[usize]| first_of_each(classes, most);
        work.images(name, &Images::chosen((Needs::Cifar10, &folder), part, first)?.centred()?)
    };
    let (data, held_out) = (part(Part::Train, "train", samples)?, part(Part::Test, "test", test)?);
    let arch = work.architecture("network", ARCH)?;
    let mut table = Table::new("")
        .column("training", Format::Plain)
        .column("test accuracy", Format::Percent(1))
        .published("test accuracy", Format::Percent(1))
        .column("training loss", Format::Scientific(1))
        .column("moved", Format::Fixed(3))
        .column("tail before", Format::Fixed(2))
        .column("tail", Format::Fixed(2))
        .column("largest eigenvalue, ×", Format::Fixed(2))
        .column("median, ×", Format::Fixed(2))
        .column("‖ΔNTK‖_F/‖NTK‖_F", Format::Fixed(3))
        .column("alignment with labels before", Format::Fixed(3))
        .column("after", Format::Fixed(3))
        .column("s", Format::Fixed(0));
    let (mut cases, mut order) = (Vec::new(), Vec::new());
    for case in CASES.iter().filter(|case| options.wants(case.name)) {
        let length = if case.batch.is_none() { steps } else { epochs };
        let training = TrainingSpec {
            epochs: NonZeroUsize::new(length).ok_or("at least one epoch is needed")?,
            batch: case.batch,
            optimiser: case.optimiser,
            learning_rate: Some(case.learning_rate),
            checkpoint_at: vec![0],
            seed: options.seed,
            ..TrainingSpec::default()
        };
        let job = TrainJob {
            training,
            eval_data: Some(held_out.data[0].clone()),
            eval_labels: held_out.labels.clone(),
            ..TrainJob::new(&arch, data.clone())
        };
        let trained = work.run(&case.name.to_lowercase(), &job)?;
        let found = spectra(&work, case, &trained, &data, options.seed)?;
        let (epochs, loss) = history(&trained)?;
        let accuracy = trained.number(&format!("/history/{}/evaluation_accuracy", epochs - 1))?;
        let (first, last) = (found.first(), found.last());
        let [before, after] = [first, last].map(|one| numbers(one, "/ntk/eigenvalues"));
        let moved = compare_quantiles(&before, &after, &[0.5])?.distance;
        let ratio = |pick: fn(&[f64]) -> Option<f64>| Some(pick(&after)? / pick(&before)?);
        let number = |one: &Value, pointer: &str| Cell::from(one.pointer(pointer).and_then(Value::as_f64));
        let mut cells = row![case.name, accuracy, case.published, loss, moved];
        cells.extend([first, last].map(|one| number(one, "/ntk/alpha")));
        cells.extend([ratio(|all| all.first().copied()), ratio(|all| all.get(all.len() / 2).copied())].map(Cell::from));
        cells.push(number(last, "/ntk/drift/relative"));
        cells.extend([first, last].map(|one| number(one, "/kta/ntk/plain")));
        cells.push(trained.seconds.into());
        table.push(cells);
        order.push((moved, accuracy));
        cases.push(found);
    }
    let rises = order.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
    let figures = match options.quick {
        true => Vec::new(),
        false => vec![Drawing {
            file: "tangent-spectra.svg",
            caption: "The NTK of a small convolutional network on two classes of CIFAR-10, before and after training: densities of the \
                logarithms of its eigenvalues, and their quantiles before (across) and after (up)",
            figure: picture(&cases),
        }],
    };
    let holds = (cases.len() == CASES.len()).then_some(rises);
    Ok(Report { tables: vec![table], figures, holds, earlier: work.earlier(), ..Report::default() })
}

/// The tangent kernel of the training images, before and after.
fn spectra(work: &Work, case: &Case, trained: &Done, data: &DataSpec, seed: u64) -> Fallible<Spectra> {
    let checkpoints = vec![trained.folder.join(files::checkpoint(0)), trained.folder.join(files::TENSORS)];
    let job = SpectrumJob {
        checkpoints,
        layers: vec!["layer1*".to_owned()],
        data: Some(data.clone()),
        seed,
        ..SpectrumJob::new(trained.model())
    };
    let found = work.run(&format!("{}-spectra", case.name.to_lowercase()), &job)?.found;
    Ok(Spectra { name: case.name, found, epochs: vec![0, history(trained)?.0] })
}

fn picture(cases: &[Spectra]) -> Figure {
    cases.iter().fold(Figure::new("").columns(2), |figure, case| {
        let logarithms = |one: &Value| -> Vec<f64> {
            let values = numbers(one, "/ntk/eigenvalues");
            // Below this, eigenvalues are rounding.
            let least = values.first().copied().unwrap_or(0.0) * 1e-7;
            values.into_iter().filter(|value| *value > least).map(f64::log10).collect()
        };
        let [before, after] = [("before", logarithms(case.first())), ("after", logarithms(case.last()))];
        figure
            .panel(Panel::density(case.name, "log₁₀ of the eigenvalues", [before.clone(), after.clone()]))
            .panel(Panel::quantiles(format!("{}: quantiles", case.name), before, after))
    })
}
