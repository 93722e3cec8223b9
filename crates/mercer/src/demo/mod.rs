//! The demo: trains a small network on the embedded digits, and shows what can be found out about it.
//!
//! There are two networks. One learns from the correct labels, for the reader's own tries. The other learns from labels of
//! which twenty are wrong; the tour (`tour.rs`) looks at it with every lens and writes the report.
//!
//! Everything consists of jobs, and their records are stored beside the results, so all of it can be reproduced.
//!
//! ```no_run
//! use mercer::demo::Demo;
//! use mercer::job::Destination;
//! use mercer::prelude::Context;
//!
//! # fn main() -> Result<(), mercer::Error> {
//! let outcome = Demo { seed: 0 }.run(&Destination::new("mercer-demo"), &Context::new(), |_| {})?;
//! println!("{} unseen digits", outcome.findings.similarity.n_test);
//! # Ok(())
//! # }
//! ```

mod tour;

pub use tour::TourFindings;

use crate::Error;
use crate::job::kernel::KernelJob;
use crate::job::train::{EpochFindings, ScheduleName, TrainFindings, TrainJob, TrainingSpec};
use crate::job::{Artefact, Destination, Job, Opened, Outcome, Stopwatch};
use crate::spec::{DataRef, DataSpec, Inputs, KernelSpec, Opening, Precision};
use crate::text::count;
use mercer_data::digits::{self, Digits};
use mercer_data::folder::sweep;
use mercer_data::{Existing, Source, write_atomic, write_npy};
use mercer_net::Network;
use mercer_net::network::largest;
use mercer_net::train::files;
use mercer_run::Context;
use ndarray::{Array1, ArrayD, Axis};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::Path;

/// The network description, as a user would write it.
const NETWORK: &str = r#"# A small convolutional network for images of 8 × 8 pixels; see `mercer train --help`.
[cnn]
inputs = [1, 8, 8]
outputs = 10
activation = "relu"
layers = [
    { conv = { channels = 16, kernel = 3 } },
    { max-pool = { size = 2 } },
    { conv = { channels = 32, kernel = 3 } },
    { max-pool = { size = 2 } },
    { dense = { width = 64 } },
]
"#;

/// Its file.
const NETWORK_FILE: &str = "cnn.toml";

/// The width of its last hidden layer.
const N_FEATURES: usize = 64;

/// The number of digits to show.
const SHOWN: usize = 6;

/// The number of training digits to list for each.
const NEAREST: usize = 5;

/// The tour.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo {
    /// Initial weights and the order of the samples depend on this.
    pub seed: u64,
}

/// The findings of the demo.
#[derive(Clone, Debug, Serialize)]
pub struct DemoFindings {
    /// Of the training.
    #[serde(flatten)]
    pub training: TrainFindings,
    /// The network as a kernel.
    pub similarity: SimilarityFindings,
    /// The last layer before the outputs: the features that the network has learnt.
    pub hidden_node: Option<String>,
    /// The tour: the network with wrong labels, and the report on it.
    pub tour: TourFindings,
}

/// The training digits closest to unseen digits.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarityFindings {
    /// Unseen digits.
    pub n_test: usize,
    /// The share of them whose nearest training digit has the same class.
    pub nearest_right: f64,
    /// The mean similarity of digits in the same class.
    pub same: f64,
    /// The mean similarity of digits in different classes.
    pub other: f64,
    /// Some of them.
    pub examples: Vec<Example>,
}

/// An unseen digit.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// Its number.
    pub place: usize,
    /// What it is.
    pub class: usize,
    /// The most similar training digits, in decreasing order of similarity.
    pub nearest: Vec<Neighbour>,
}

/// A training digit.
#[derive(Clone, Debug, Serialize)]
pub struct Neighbour {
    /// Its number.
    pub place: usize,
    /// What it is.
    pub class: usize,
    /// Its similarity; 1 means identical.
    pub similarity: f32,
}

impl Demo {
    /// Writes the digits, trains networks on them, and looks at them with every lens.
    ///
    /// # Errors
    /// If the folder holds something else or cannot be written to.
    pub fn run(
        self,
        destination: &Destination,
        context: &Context,
        on_epoch: impl Fn(&EpochFindings) + Clone + 'static,
    ) -> Result<Outcome<DemoFindings>, Error> {
        let watch = Stopwatch::start();
        let folder = destination.folder()?;
        check(folder, destination.force)?;
        std::fs::create_dir_all(folder).map_err(|error| crate::error::cannot_write(folder.display(), &error))?;
        let (train, test) = digits::split()?;
        let mut artefacts = write_part(folder, "train", &train)?;
        artefacts.extend(write_part(folder, "test", &test)?);
        let arch = folder.join(NETWORK_FILE);
        write_atomic(&arch, Existing::Replace, |writer| writer.write_all(NETWORK.as_bytes()))?;
        artefacts.push(Artefact::file(NETWORK_FILE, arch.display().to_string()));
        let digits = count(train.classes.indices().len(), "handwritten digit");
        context.note(&format!("training a small convolutional network on {digits} of 8 × 8 pixels"));
        let inputs = Inputs::none();
        let opening = Opening { inputs: &inputs, context };
        let training = self.training(folder);
        let opened = training.open(destination, opening)?.on_epoch(on_epoch.clone());
        let again = || "`mercer demo ‹force›` starts again".to_owned();
        let trained = opened.run(context).map_err(|error| error.when_interrupted(again))?;
        let place = folder.join("ntk-test-train.npy");
        let replace = Destination { force: true, ..Destination::new(&place) };
        let kernel = kernel(folder).open(&replace, opening)?.run(context);
        let kernel = kernel.map_err(|error| error.when_interrupted(again))?;
        let matrix = Source::new(place, None).open()?.read::<f32>()?;
        tour::write(folder, &train, &test, self.seed)?;
        let tour = tour::Tour { folder, seed: self.seed, context };
        let tour = tour.go(&training, on_epoch).map_err(|error| error.when_interrupted(again))?;
        artefacts.push(Artefact::file("report.html", tour.report.report.clone()));
        let findings = DemoFindings {
            tour,
            training: trained.findings,
            similarity: similarity(&matrix, test.classes.indices(), train.classes.indices()),
            hidden_node: hidden_node(&folder.join(files::MODEL)),
        };
        artefacts.extend(trained.artefacts.into_iter().chain(kernel.artefacts));
        Ok(watch.outcome(findings, artefacts, context))
    }

    fn training(self, folder: &Path) -> TrainJob {
        let data = DataSpec { labels: Some(file(folder, "train-labels.npy")), ..one(file(folder, "train-images.npy")) };
        TrainJob {
            eval_data: Some(file(folder, "test-images.npy")),
            eval_labels: Some(file(folder, "test-labels.npy")),
            training: TrainingSpec {
                epochs: const { NonZeroUsize::new(30).unwrap() },
                batch: NonZeroUsize::new(32),
                learning_rate: Some(0.003),
                schedule: ScheduleName::Cosine,
                warm_up: 0.5,
                seed: self.seed,
                ..TrainingSpec::default()
            },
            // The digits are written in the form that the network takes.
            annotate: false,
            ..TrainJob::new(folder.join(NETWORK_FILE), data)
        }
    }
}

/// Rejects a folder that holds another network.
fn check(folder: &Path, force: bool) -> Result<(), Error> {
    sweep(folder)?;
    let results = files::results(folder)?;
    if results.any() && !force {
        let (place, model) = (folder.display(), folder.join(files::MODEL));
        let hint = format!("‹force› trains again; `mercer info {}` shows the network that is there", model.display());
        let text = format!("‹out› {place}: this folder already holds results");
        return Err(Error::with_code("exists", text).hint(hint));
    }
    Ok(results.check()?)
}

/// The kernel of the network between unseen digits and training digits.
fn kernel(folder: &Path) -> KernelJob {
    KernelJob {
        kernel: KernelSpec::new("normalised(trace)").with_net(folder.join(files::MODEL)),
        data: one(file(folder, "test-images.npy")),
        against: vec![file(folder, "train-images.npy")],
        by_layer: false,
        features: false,
        precision: Precision::F32,
        tiles: None,
        part: None,
    }
}

fn file(folder: &Path, name: &str) -> DataRef {
    DataRef::File(folder.join(name).display().to_string())
}

fn one(data: DataRef) -> DataSpec {
    DataSpec { data: vec![data], ..DataSpec::default() }
}

/// Writes images (pixels from 0 to 1) and labels.
fn write_part(folder: &Path, name: &str, digits: &Digits) -> Result<Vec<Artefact>, Error> {
    let images = digits.pixels()?.insert_axis(Axis(1));
    let classes: Array1<i64> = digits.classes.indices().iter().map(|&class| class as i64).collect();
    let artefact = |name: &str, shape: &[usize], dtype| {
        Artefact::array(name, folder.join(name).display().to_string(), shape, dtype)
    };
    let artefacts = vec![
        artefact(&format!("{name}-images.npy"), images.shape(), "f32"),
        artefact(&format!("{name}-labels.npy"), classes.shape(), "i64"),
    ];
    write_npy(Path::new(&artefacts[0].path), &images, Existing::Replace)?;
    write_npy(Path::new(&artefacts[1].path), &classes, Existing::Replace)?;
    Ok(artefacts)
}

fn similarity(matrix: &ArrayD<f32>, test: &[usize], train: &[usize]) -> SimilarityFindings {
    let (mut right, mut examples) = (0, Vec::new());
    let mut sums = [(0.0, 0usize); 2];
    for (at, (row, &class)) in matrix.axis_iter(Axis(0)).zip(test).enumerate() {
        let row: Vec<f32> = row.iter().copied().collect();
        right += usize::from(train[largest(&row)] == class);
        for (&similarity, &other) in row.iter().zip(train) {
            let sum = &mut sums[usize::from(other != class)];
            *sum = (sum.0 + f64::from(similarity), sum.1 + 1);
        }
        if at < SHOWN {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let neighbour = |&place: &usize| Neighbour { place, class: train[place], similarity: row[place] };
            examples.push(Example { place: at, class, nearest: order.iter().take(NEAREST).map(neighbour).collect() });
        }
    }
    let mean = |(sum, count): (f64, usize)| sum / count.max(1) as f64;
    let n_test = test.len();
    let nearest_right = right as f64 / n_test.max(1) as f64;
    SimilarityFindings { n_test, nearest_right, same: mean(sums[0]), other: mean(sums[1]), examples }
}

/// The last layer before the outputs.
fn hidden_node(model: &Path) -> Option<String> {
    let network = Network::from_onnx(model).ok()?;
    let graph = network.declared_graph().ok()?;
    let mut hidden = graph.nodes().iter().rev().map(|node| graph.value(node.output));
    let found =
        hidden.find(|value| value.meta.is_batched() && value.meta.numel() == N_FEATURES && !value.name.is_empty());
    found.map(|value| value.name.clone())
}
