//! Poisoned training images: are test images with the same square traced back to them, and is the poison found unasked?

use crate::experiment::{Experiment, Needs};
use crate::images::{Images, Part};
use crate::options::Options;
use crate::report::{Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::data::{Dataset, shuffled};
use mercer::door::predict_on;
use mercer::job::explain::SurrogateSpec;
use mercer::job::train::TrainingSpec;
use mercer::job::{AuditJob, TrainJob};
use mercer::learn::surrogate::PenaltyNorm;
use mercer::lens::decisions;
use mercer::net::Network;
use mercer::spec::{DataRef, DataSpec};
use ndarray::{Axis, Ix2, concatenate, s};
use serde_json::Value;
use std::num::NonZeroUsize;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "poisoned",
    group: "Explanations",
    title: "Poisoned training images",
    paper: "Engel et al. 2023, arXiv 2305.14585",
    claim: "Test images with a yellow square are told from clean ones by their five most similar training images: with the \
        cosine-normalised trace-NTK and its projections, precision and recall are at least 99 % (table 3).",
    published: "the report's other columns cannot be targets: the code behind its τ and TAD indexes one-hot labels, and two columns are \
        swapped. The precision and recall of its CK row seem to be transposed: a precision of 1.65 % at a recall of 50.61 % would take \
        300,000 false alarms.",
    setting: "BadNets on the first 10,000 training images of CIFAR-10: a tenth of them, drawn from all other classes, gets a yellow square of \
        4 × 4 pixels near the lower right corner and the label airplane. A small CNN (the report: 21 layers on all 50,000), Adam, \
        without crops and flips. Tested on the first 2000 test images as they are and with the square. An image is flagged if three of its \
        five largest kernel values are with poisoned images. Sketches have 4096 features. The exact kernel is computed for the first \
        2000 training images. The report's CK and embedding kernel are not normalised; CK is shown both ways. Unknown poison is \
        looked for with a tenth, three hundredths and a hundredth of the images poisoned; in the first case half of the target class is poison.",
    cost: 1800,
    needs: &[Needs::Cifar10],
    options: &["samples", "test", "epochs", "exact", "poisoned"],
    threads: 0,
    run,
};

const ARCH: &str = include_str!("nets/audit_cifar.toml");

/// Airplanes.
const TARGET: usize = 0;

/// A kernel, its name in the report, and the report's precision and recall.
struct Row {
    kernel: &'static str,
    name: &'static str,
    published: Option<[f64; 2]>,
    /// Whether it is computed for a part of the training images only.
    exact: bool,
    /// Whether the claim is about it.
    claimed: bool,
}

const fn line(kernel: &'static str, name: &'static str, published: Option<[f64; 2]>) -> Row {
    Row { kernel, name, published, exact: false, claimed: false }
}

const TRACE: &str = "normalised(trace(sketch=sjlt:4096, total=true))";

const ROWS: [Row; 8] = [
    Row { exact: true, claimed: true, ..line("normalised(trace)", "trNTK", Some([0.9999, 0.9998])) },
    Row { claimed: true, ..line(TRACE, "proj-trNTK", Some([0.9999, 0.9997])) },
    Row { claimed: true, ..line("normalised(pseudo(sketch=sjlt:4096))", "proj-pNTK", Some([0.9999, 1.0])) },
    line("trace(sketch=sjlt:4096, total=true)", "trNTK⁰, projected", Some([0.9999, 0.9999])),
    line("pseudo(sketch=sjlt:4096)", "", None),
    line("embedding(nodes=[\"layer4\", \"layer6\", \"layer7/relu\"])", "Embedding", Some([0.9971, 1.0])),
    line("ck", "CK", Some([0.0165, 0.5061])),
    line("normalised(ck)", "", None),
];

/// Test images as they are, and the same with the square.
struct Tested {
    both: DataRef,
    marks: DataRef,
    clean: DataSpec,
    /// Those whose class is not the target, as they are and with the square.
    others: [Dataset; 2],
}

fn run(options: &Options) -> Fallible<Report> {
    let (samples, n_test) = (options.number("samples", 10_000, 300)?, options.number("test", 2000, 30)?);
    let (exact, epochs) = (options.number("exact", 2000, 100)?, options.number("epochs", 12, 1)?);
    let counts = options.list("poisoned", &[1000, 300, 100], &[40, 20])?;
    let (work, folder) = (Work::new(options)?, options.set(Needs::Cifar10)?);
    let first =
        |part, count: usize| Images::chosen((Needs::Cifar10, &folder), part, |all| (0..count.min(all.len())).collect());
    let (train, test) = (first(Part::Train, samples)?, tested(&work, &first(Part::Test, n_test)?)?);
    let mut known = Table::new("Known poison: test images flagged by their nearest training images.")
        .column("kernel", Format::Plain)
        .column("in the report", Format::Plain)
        .column("training images", Format::Plain)
        .column("precision", Format::Percent(2))
        .column("recall", Format::Percent(2))
        .published("precision", Format::Percent(2))
        .published("recall", Format::Percent(2))
        .column("s", Format::Fixed(0));
    let mut unknown = Table::new("Unknown poison: spectral signatures and clusters within classes, together.")
        .column("poisoned", Format::Plain)
        .column("of the target class", Format::Percent(1))
        .column("space", Format::Plain)
        .column("AUROC", Format::Fixed(4))
        .column("AUPR", Format::Fixed(4))
        .column("suspicious classes", Format::Plain);
    let (mut holds, mut notes) = (true, Vec::new());
    for (at, &count) in counts.iter().enumerate() {
        let (images, marks) = poison(&train, count, options.seed)?;
        let name = format!("poisoned-{count}");
        let data = work.images(&name, &images)?;
        let training = TrainingSpec {
            epochs: NonZeroUsize::new(epochs).ok_or("--epochs 0")?,
            seed: options.seed,
            ..TrainingSpec::default()
        };
        let job = TrainJob { training, ..TrainJob::new(work.architecture("cnn", ARCH)?, data.clone()) };
        let (eval_data, eval_labels) = (Some(test.clean.data[0].clone()), test.clean.labels.clone());
        let trained = work.run(&name, &TrainJob { eval_data, eval_labels, ..job })?;
        notes.push(format!(
            "With {count} poisoned images the network is right on {:.1} % of the clean test images. It takes {:.1} % of those of other \
             classes for airplanes with the square, {:.1} % without it.",
            100.0 * trained.number(&format!("/history/{}/evaluation_accuracy", epochs - 1))?,
            100.0 * taken_for_target(&trained, &test.others[1])?,
            100.0 * taken_for_target(&trained, &test.others[0])?,
        ));
        // Known poison at the report's rate.
        for row in ROWS.iter().filter(|row| at == 0 || row.kernel == TRACE) {
            let used = if row.exact { exact.min(samples) } else { samples };
            let (data, marks) = match used == samples {
                true => (data.clone(), marks.clone()),
                false => (work.images(&format!("{name}-{used}"), &part(&images, used)?)?, marks[..used].to_vec()),
            };
            let marks = work.numbers(&format!("{name}-{used}-marks"), &marks)?;
            let found =
                work.run(&format!("{name}-audit"), &audit(&trained, data, row.kernel, &marks, &test, options))?;
            if at == 0 {
                let measure =
                    |name: &str| found.found.pointer(&format!("/forensics/detection/{name}")).and_then(Value::as_f64);
                let (precision, recall) = (measure("precision"), measure("recall"));
                holds &= !row.claimed || (precision >= Some(0.99) && recall >= Some(0.99));
                let [own, other] = [0, 1].map(|at| row.published.map(|published| published[at]));
                known.push(row![row.kernel, row.name, used, precision, recall, own, other, found.seconds]);
            }
            if row.kernel == TRACE {
                let of_target = images.classes.iter().filter(|&&class| class == TARGET).count();
                spaces(&mut unknown, &found, (count, count as f64 / of_target as f64));
            }
        }
    }
    let earlier = work.earlier();
    Ok(Report { tables: vec![known, unknown], notes, holds: Some(holds), earlier, ..Report::default() })
}

/// The signs of unknown poison in both spaces.
fn spaces(table: &mut Table, found: &Done, (count, share): (usize, f64)) {
    for (space, words) in [("poison_kernel", "trace-NTK"), ("poison_last_layer", "last layer")] {
        let rows = |pointer: &str| found.found[pointer].as_array().map_or(&[][..], Vec::as_slice).to_vec();
        let measures = rows("measures").into_iter().find(|own| own["name"] == space).unwrap_or_default();
        let suspicious: Vec<String> = rows("poison")
            .iter()
            .filter(|own| own["space"] == space && own["suspicious"] == true)
            .map(|own| own["class"].as_str().unwrap_or_default().to_owned())
            .collect();
        let suspicious = if suspicious.is_empty() { "none".to_owned() } else { suspicious.join(", ") };
        table.push(row![count, share, words, measures["auroc"].as_f64(), measures["aupr"].as_f64(), suspicious]);
    }
}

fn audit(trained: &Done, data: DataSpec, kernel: &str, marks: &DataRef, test: &Tested, options: &Options) -> AuditJob {
    // The machine is not looked at here: one penalty, in the norm that is quicker to fit.
    let surrogate =
        SurrogateSpec { penalty: vec![1.0], norm: PenaltyNorm::Function, folds: 2, ..SurrogateSpec::default() };
    AuditJob {
        kernel: kernel.to_owned(),
        surrogate,
        truth: Some(marks.clone()),
        poisoned: Some(marks.clone()),
        test: vec![test.both.clone()],
        test_poisoned: Some(test.marks.clone()),
        seed: options.seed,
        ..AuditJob::new(trained.model(), data)
    }
}

/// Puts the square into some images of other classes than the target and calls them that.
fn poison(images: &Images, count: usize, seed: u64) -> Fallible<(Images, Vec<usize>)> {
    let mut marks = vec![0; images.samples()];
    let others = shuffled(images.samples(), seed, 0).into_iter().filter(|&row| images.classes[row] != TARGET);
    others.take(count).for_each(|row| marks[row] = 1);
    let mut pixels = images.data[0].read::<f32>()?;
    let mut classes = images.classes.clone();
    for (row, mut image) in pixels.outer_iter_mut().enumerate().filter(|(row, _)| marks[*row] == 1) {
        paint(&mut image);
        classes[row] = TARGET;
    }
    Ok((Images { data: [Dataset::from_array("images", pixels.view())?], classes }.centred()?, marks))
}

/// A yellow square.
fn paint(image: &mut ndarray::ArrayViewMutD<'_, f32>) {
    for (channel, value) in [1.0, 1.0, 0.0].into_iter().enumerate() {
        image.slice_mut(s![channel, 27..31, 27..31]).fill(value);
    }
}

/// The first of some images.
fn part(images: &Images, count: usize) -> Fallible<Images> {
    let pixels = images.data[0].rows::<f32>(0..count)?;
    Ok(Images { data: [Dataset::from_array("images", pixels.view())?], classes: images.classes[..count].to_vec() })
}

fn tested(work: &Work, images: &Images) -> Fallible<Tested> {
    let mut painted = images.data[0].read::<f32>()?;
    painted.outer_iter_mut().for_each(|mut image| paint(&mut image));
    let painted = Images { data: [Dataset::from_array("images", painted.view())?], classes: images.classes.clone() };
    let (clean, painted) = (images.centred()?, painted.centred()?);
    let (n, pixels) = (images.samples(), painted.data[0].read::<f32>()?);
    let both = concatenate(Axis(0), &[clean.data[0].read::<f32>()?.view(), pixels.view()])?;
    let marks: Vec<usize> = (0..2 * n).map(|row| usize::from(row >= n)).collect();
    let others: Vec<usize> = (0..n).filter(|&row| images.classes[row] != TARGET).collect();
    let others = |images: &Images| -> Fallible<_> {
        Ok(Dataset::from_array("images", images.data[0].select::<f32>(&others)?.view())?)
    };
    let others = [others(&clean)?, others(&painted)?];
    let (both, marks) = (work.array("test", &both)?, work.numbers("test-marks", &marks)?);
    Ok(Tested { both, marks, clean: work.images("clean", &clean)?, others })
}

/// The share of images that the network takes for the target.
fn taken_for_target(trained: &Done, images: &Dataset) -> Fallible<f64> {
    let network = Network::from_onnx(trained.model())?;
    let scores = predict_on::<f32>(&network, std::slice::from_ref(images), None)?.mapv(f64::from);
    let decided = decisions(scores.into_dimensionality::<Ix2>()?.view());
    Ok(decided.iter().filter(|&&class| class == TARGET).count() as f64 / decided.len() as f64)
}
