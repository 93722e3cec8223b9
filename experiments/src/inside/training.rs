//! Two-layer networks with as many units as samples and inputs: which optimiser moves which spectrum, and who learns more than the
//! initial tangent kernel?

use super::pictures::{self, Spectra, numbers};
use super::teacher::{Problem, Sizes};
use crate::experiment::Experiment;
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::data::Dataset;
use mercer::door::predict_on;
use mercer::job::train::{OptimiserName, TrainingSpec};
use mercer::job::{SpectrumJob, TrainJob};
use mercer::net::Network;
use mercer::net::train::files;
use mercer::prelude::{KernelFn, LeastSquares};
use mercer::spec::{DataRef, DataSpec, ParameterSpec, open_architecture};
use ndarray::{Array1, Array2, Axis, stack};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "spectra-over-training",
    group: "Layers and spectra",
    title: "Spectra over training",
    paper: "Chiang et al., Report on Pure Mathematics of Machine Learning, 2023, section 5; Wang et al. 2022, arXiv 2211.06506",
    claim: "Gradient descent and SGD with small steps leave the spectrum of the weights a bulk, SGD with large steps adds spikes, Adam \
        makes a heavy tail; the last two have smaller test errors than the lazy regime (table 8, figures 19 to 21).",
    published: "R², test error and the kind of spectrum, in the table; the rest as figures.",
    setting: "f(x) = 1/√h Σ vᵢ σ(wᵢ·x/√d), σ = tanh/0.6278, all weights standard normal, both layers trained. The teacher is \
        σ*(x·β) + 0.2/d ‖x‖²; training labels have noise of deviation 0.3, test labels have none. σ* is the softplus minus its mean, divided \
        by its deviation for a standard normal number. The report does not say how it is normalised. We chose by the lazy row, which \
        has no optimiser: with a softplus scaled to a mean square of one and not centred, its R² is below zero. Also, the report's \
        errors divided by 1 − R² are between 0.99 and 1 in four of the five rows, the variance of such labels. The loss is half the mean \
        square, as in the report's equation 74, so learning rates are the report's. Not printed there and chosen here: v is normal; \
        2000 test samples; SGD takes batches of 16, the largest of 64, 32 and 16 at which SGD at 22 leaves a spike (last table); Adam \
        takes all samples at once (with batches of 64 its loss stayed above 0.007 for 300 epochs); \
        at most --case1-steps steps of gradient descent, --case2-steps of SGD at 0.1, --case4-steps of Adam and --epochs epochs of SGD at 22. Training \
        ends earlier if the mean loss of an epoch is below 1e-5, the bound of figure 20; the table has the loss that was reached. The lazy \
        regime is least squares with the initial tangent kernel on y − f₀, without a penalty. Kinds of spectra are those of the first \
        layer by the rule of `mercer spectrum`; the report decides by eye. With --indices 5 the same optimisers learn the mean of five \
        σ*(x·βᵢ) (equation 80); with --cauchy RATE SGD starts from Cauchy weights (figure 21d, whose learning rate is not printed).",
    cost: 7200,
    needs: &[],
    options: &[
        "n",
        "h",
        "d",
        "test",
        "batch",
        "batches",
        "epochs",
        "case1-steps",
        "case2-steps",
        "case4-steps",
        "spectra",
        "indices",
        "cauchy",
        "only",
    ],
    threads: 0,
    run,
};

/// Training ends below this loss, as in figure 20.
const STOP: f64 = 1e-5;

/// A row of table 8.
struct Case {
    name: &'static str,
    optimiser: OptimiserName,
    learning_rate: f64,
    /// R² and test error of the report.
    published: [f64; 2],
    /// The kind of spectrum, in its words and in ours.
    kind: [&'static str; 2],
}

const CASES: [Case; 4] = [
    Case {
        name: "GD 5.0",
        optimiser: OptimiserName::Gd,
        learning_rate: 5.0,
        published: [0.63582, 0.36381],
        kind: ["invariant bulk", "bulk"],
    },
    Case {
        name: "SGD 0.1",
        optimiser: OptimiserName::Sgd,
        learning_rate: 0.1,
        published: [0.60605, 0.36879],
        kind: ["invariant bulk", "bulk"],
    },
    Case {
        name: "SGD 22.0",
        optimiser: OptimiserName::Sgd,
        learning_rate: 22.0,
        published: [0.76081, 0.23791],
        kind: ["bulk and spike", "spikes"],
    },
    Case {
        name: "Adam 0.092",
        optimiser: OptimiserName::Adam,
        learning_rate: 0.092,
        published: [0.78829, 0.21071],
        kind: ["heavy tail", "heavy-tail"],
    },
];

/// R² and test error of the lazy regime in the report.
const LAZY: [f64; 2] = [0.68092, 0.3185];

/// Sizes and lengths.
#[derive(Clone)]
struct Settings {
    sizes: Sizes,
    h: usize,
    batch: usize,
    epochs: usize,
    /// Steps of all cases but the third.
    steps: [usize; 3],
    /// Checkpoints whose spectra are computed, with the first and the last.
    spectra: usize,
    seed: u64,
}

/// A problem as files.
struct Kept {
    problem: Problem,
    data: DataSpec,
    directions: DataRef,
    arch: PathBuf,
}

/// What a trained network is worth.
struct Outcome {
    r2: f64,
    error: f64,
}

fn run(options: &Options) -> Fallible<Report> {
    let sizes = Sizes {
        n: options.number("n", 2000, 60)?,
        n_test: options.number("test", 2000, 50)?,
        d: options.number("d", 1000, 30)?,
    };
    let settings = Settings {
        sizes,
        h: options.number("h", 1500, 40)?,
        batch: options.number("batch", 16, 60)?,
        epochs: options.number("epochs", 1000, 3)?,
        steps: [
            options.number("case1-steps", 10_000, 4)?,
            options.number("case2-steps", 20_000, 9)?,
            options.number("case4-steps", 2000, 4)?,
        ],
        spectra: options.number("spectra", 6, 3)?,
        seed: options.seed,
    };
    let (indices, cauchy) = (options.number("indices", 5, 3)?, options.number("cauchy", 0.0, 1.0)?);
    let work = Work::new(options)?;
    let kept = keep(&work, &settings, 1, "normal")?;
    let mut table = Table::new("")
        .column("training", Format::Plain)
        .column("R²", Format::Fixed(3))
        .column("test error", Format::Fixed(4))
        .column("spectrum of W", Format::Plain)
        .published("R²", Format::Fixed(3))
        .published("test error", Format::Fixed(4))
        .published("spectrum", Format::Plain)
        .column("epochs", Format::Plain)
        .column("training loss", Format::Scientific(1))
        .column("s", Format::Fixed(0));
    let [lazy, others @ ..] = lazy(&kept, settings.seed)?;
    table.push(row!["lazy regime", lazy.r2, lazy.error, "", LAZY[0], LAZY[1], "", "", "", ""]);
    for (name, own) in ["the same with f₀ = 0", "the same, σ* not centred"].into_iter().zip(others) {
        table.push(row![name, own.r2, own.error, "", "", "", "", "", "", ""]);
    }
    let mut details = details();
    let (mut cases, mut holds) = (Vec::new(), true);
    for case in CASES.iter().filter(|case| options.wants(case.name)) {
        let (trained, found) = both(&work, &kept, case, &settings)?;
        let outcome = measure(&trained.model(), &kept.problem)?;
        let kind = found.last()["weights"][0]["kind"].as_str().unwrap_or_default().to_owned();
        holds &= kind == case.kind[1] && (case.kind[1] == "bulk" || outcome.error < lazy.error);
        let [r2, error] = case.published;
        let last = history(&trained)?;
        let measured = row![case.name, outcome.r2, outcome.error, kind, r2, error, case.kind[0]];
        table.push([measured, row![last.0, last.1, trained.seconds]].concat());
        [("before", found.first()), ("after", found.last())]
            .into_iter()
            .for_each(|(when, one)| details.push(detail(case.name, when, one)));
        cases.push(found);
    }
    let batches = options.list("batches", &[64, 32, 16], &[60])?;
    let batches = by_batch(&work, &kept, &batches, &settings)?;
    let ratio = settings.h as f64 / sizes.d as f64;
    let mut figures = vec![
        Drawing {
            file: "training-spectra.svg",
            caption: "Spectra of weights and conjugate kernels before and after training",
            figure: pictures::spectra(&cases, ratio),
        },
        Drawing {
            file: "training-alignment.svg",
            caption: "Alignment with the teacher and the labels over training",
            figure: pictures::training(&cases),
        },
    ];
    let mut notes = Vec::new();
    if indices > 0 {
        let kept = keep(&work, &settings, indices, "normal")?;
        let mut cases = Vec::new();
        for case in CASES.iter().filter(|case| case.learning_rate != 0.1 && options.wants(case.name)) {
            let (trained, found) = both(&work, &kept, case, &settings)?;
            let angles = numbers(found.last(), "/weights/0/direction/angles");
            let angles: Vec<String> = angles.iter().map(|angle| format!("{angle:.0}°")).collect();
            notes.push(format!(
                "{indices} directions, {}: test error {:.4}, training loss {:.1e}, angles between the directions and the leading singular \
                 vectors of W {}.",
                case.name,
                measure(&trained.model(), &kept.problem)?.error,
                history(&trained)?.1,
                angles.join(", "),
            ));
            cases.push(found);
        }
        let caption =
            "Angles between the directions of the teacher and the leading 100 singular vectors of the weights";
        figures.push(Drawing { file: "training-angles.svg", caption, figure: pictures::angles(&cases) });
    }
    if cauchy > 0.0 {
        let kept = keep(&work, &settings, 1, "cauchy")?;
        let (trained, found) = both(&work, &kept, &Case { learning_rate: cauchy, ..CASES[2] }, &settings)?;
        let (outcome, weights) = (measure(&trained.model(), &kept.problem)?, &found.last()["weights"][0]);
        notes.push(format!(
            "From Cauchy weights, SGD at {cauchy} reaches R² {:.2} and test error {:.3} (the report: −0.48 and 1.475) at training loss {:.1e}; the \
             spectrum of W has α = {:.2} and is called {}.",
            outcome.r2,
            outcome.error,
            history(&trained)?.1,
            weights["alpha"].as_f64().unwrap_or(f64::NAN),
            weights["kind"].as_str().unwrap_or_default(),
        ));
    }
    Ok(Report { tables: vec![table, details, batches], figures, notes, holds: Some(holds), earlier: work.earlier() })
}

/// Keeps a problem and the description of its network.
fn keep(work: &Work, settings: &Settings, directions: usize, law: &str) -> Fallible<Kept> {
    let problem = Problem::new(settings.sizes, directions, settings.seed)?;
    let (x, y) = &problem.train;
    let data = vec![work.array("x", x)?];
    let data = DataSpec { data, labels: Some(work.array("y", y)?), ..DataSpec::default() };
    let law = if law == "normal" { String::new() } else { format!("law = \"{law}\"\n") };
    let toml = format!(
        "[two-layer]\ninputs = {}\nwidth = {}\nactivation = \"tanh/0.6278\"\n{law}",
        settings.sizes.d, settings.h
    );
    let directions = work.array("directions", &problem.directions)?;
    Ok(Kept { problem, data, directions, arch: work.architecture("network", &toml)? })
}

/// The initial tangent kernel, without a penalty: on what the initial network leaves, on the labels, and on what it leaves of labels
/// that are not centred.
fn lazy(kept: &Kept, seed: u64) -> Fallible<[Outcome; 3]> {
    let (_, network) = open_architecture(&kept.arch, seed, &ParameterSpec::default())?;
    let [(x, y), (x_test, y_test)] = [&kept.problem.train, &kept.problem.test];
    let [other, other_test] = &kept.problem.not_centred;
    let (start, start_test) = (predictions(&network, x)?, predictions(&network, x_test)?);
    let left = stack(Axis(1), &[(y - &start).view(), y.view(), (other - &start).view()])?;
    let machine = KernelFn::new("trace", &network)?.fit(&LeastSquares::new(), &x.mapv(f64::from), &left)?;
    let rest = machine.predict(&x_test.mapv(f64::from))?;
    let found = |at: usize| rest.column(at).to_owned();
    Ok([
        score(&(found(0) + &start_test), y_test),
        score(&found(1), y_test),
        score(&(found(2) + &start_test), other_test),
    ])
}

/// SGD with large steps, by the size of batches.
fn by_batch(work: &Work, kept: &Kept, batches: &[usize], settings: &Settings) -> Fallible<Table> {
    let mut table = Table::new("SGD at 22 with batches of different size.")
        .column("batch", Format::Plain)
        .column("R²", Format::Fixed(3))
        .column("test error", Format::Fixed(4))
        .column("spectrum of W", Format::Plain)
        .column("largest eigenvalue", Format::Fixed(2))
        .column("|cos(u₁, β)|", Format::Fixed(3))
        .column("epochs", Format::Plain)
        .column("training loss", Format::Scientific(1));
    for &batch in batches {
        let (trained, found) = both(work, kept, &CASES[2], &Settings { batch, ..settings.clone() })?;
        let (outcome, (epochs, loss)) = (measure(&trained.model(), &kept.problem)?, history(&trained)?);
        let weights = &found.last()["weights"][0];
        let (largest, cosine) = (weights["largest"].as_f64(), weights["direction"]["cosines"][0].as_f64());
        let kind = weights["kind"].as_str().unwrap_or_default();
        table.push(row![batch, outcome.r2, outcome.error, kind, largest, cosine, epochs, loss]);
    }
    Ok(table)
}

/// Trains, and computes the spectra of some checkpoints.
fn both(work: &Work, kept: &Kept, case: &Case, settings: &Settings) -> Fallible<(Done, Spectra)> {
    let Settings { sizes, batch, steps, seed, .. } = settings;
    let per_epoch = sizes.n.div_ceil(*batch);
    let (epochs, batch) = match (case.optimiser, case.learning_rate) {
        (OptimiserName::Gd, _) => (steps[0], None),
        (OptimiserName::Adam, _) => (steps[2], NonZeroUsize::new(sizes.n)),
        (_, 0.1) => (steps[1].div_ceil(per_epoch), NonZeroUsize::new(*batch)),
        _ => (settings.epochs, NonZeroUsize::new(*batch)),
    };
    let doubled = std::iter::successors(Some(1), |epoch| Some(2 * epoch)).take_while(|&epoch| epoch <= epochs);
    let training = TrainingSpec {
        epochs: NonZeroUsize::new(epochs).ok_or("at least one epoch is needed")?,
        batch,
        optimiser: case.optimiser,
        learning_rate: Some(case.learning_rate),
        stop_loss: Some(STOP),
        checkpoint_at: std::iter::once(0).chain(doubled).collect(),
        seed: *seed,
        ..TrainingSpec::default()
    };
    let job = TrainJob { training, ..TrainJob::new(&kept.arch, kept.data.clone()) };
    let trained = work.run(&case.name.replace(' ', "-"), &job)?;
    let last = history(&trained)?.0;
    let kept_epochs: Vec<usize> = files::checkpoints(&trained.folder)?
        .into_iter()
        .map(|(epoch, _)| epoch)
        .filter(|&epoch| epoch < last)
        .collect();
    let chosen = spread(&kept_epochs, settings.spectra.saturating_sub(1));
    let checkpoints = chosen.iter().map(|&epoch| trained.folder.join(files::checkpoint(epoch)));
    let spectrum = SpectrumJob {
        checkpoints: checkpoints.chain([trained.folder.join(files::TENSORS)]).collect(),
        layers: vec!["layer1*".to_owned()],
        data: Some(kept.data.clone()),
        direction: Some(kept.directions.clone()),
        seed: *seed,
        ..SpectrumJob::new(trained.model())
    };
    let found = work.run(&format!("{}-spectra", case.name.replace(' ', "-")), &spectrum)?.found;
    let epochs = chosen.into_iter().chain([last]).collect();
    Ok((trained, Spectra { name: case.name, found, epochs }))
}

/// So many of a list, evenly spread, with both ends.
fn spread(list: &[usize], count: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = match (list.len(), count) {
        (0, _) => Vec::new(),
        (_, 0 | 1) => vec![list[0]],
        (all, count) => (0..count).map(|at| list[at * (all - 1) / (count - 1)]).collect(),
    };
    chosen.dedup();
    chosen
}

/// The last epoch and its loss.
pub(super) fn history(trained: &Done) -> Fallible<(usize, f64)> {
    let epochs = trained.found["history"].as_array().map_or(0, Vec::len);
    Ok((epochs, trained.number(&format!("/history/{}/loss", epochs.saturating_sub(1)))?))
}

fn predictions(network: &Network, x: &Array2<f32>) -> Fallible<Array1<f64>> {
    let data = Dataset::from_array("samples", x.view().into_dyn())?;
    Ok(predict_on::<f32>(network, &[data], None)?.iter().map(|&value| f64::from(value)).collect())
}

fn measure(model: &Path, problem: &Problem) -> Fallible<Outcome> {
    let (x, y) = &problem.test;
    Ok(score(&predictions(&Network::from_onnx(model)?, x)?, y))
}

/// The mean square error, and one minus its share of the variance.
fn score(found: &Array1<f64>, wanted: &Array1<f64>) -> Outcome {
    let square = |values: Array1<f64>| values.mapv(|x| x * x).mean().unwrap_or(f64::NAN);
    let error = square(found - wanted);
    let variance = square(wanted - wanted.mean().unwrap_or(0.0));
    Outcome { r2: 1.0 - error / variance, error }
}

fn details() -> Table {
    let mut table = Table::new("Spectra of W (W·Wᵀ/d) and alignments, before and after training.")
        .column("training", Format::Plain)
        .column("when", Format::Plain);
    for (name, format) in [
        ("largest eigenvalue", Format::Fixed(2)),
        ("edge of the bulk", Format::Fixed(2)),
        ("spikes", Format::Plain),
        ("α", Format::Fixed(1)),
        ("distance of quantiles", Format::Fixed(3)),
        ("|cos(u₁, β)|", Format::Fixed(3)),
        ("KTA of CK", Format::Fixed(3)),
        ("KTA of NTK", Format::Fixed(3)),
        ("largest eigenvalue of CK", Format::Fixed(2)),
        ("‖ΔNTK‖_F/‖NTK‖_F", Format::Fixed(3)),
    ] {
        table = table.column(name, format);
    }
    table
}

fn detail(name: &str, when: &str, one: &serde_json::Value) -> Vec<Cell> {
    let number = |pointer: &str| Cell::from(one.pointer(pointer).and_then(serde_json::Value::as_f64));
    let numbers = [
        "/weights/0/largest",
        "/weights/0/edge",
        "/weights/0/n_spikes",
        "/weights/0/alpha",
        "/weights/0/quantile_distance",
        "/weights/0/direction/cosines/0",
        "/kta/ck/plain",
        "/kta/ntk/plain",
        "/ck/largest",
        "/ntk/drift/relative",
    ]
    .map(number);
    row![name, when].into_iter().chain(numbers).collect()
}
