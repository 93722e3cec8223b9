//! `mercer fit`: a machine on a kernel, learnt from samples and written to a folder.

mod report;
mod rows;
mod settings;

pub(crate) use rows::read_rows;

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{ClassOptions, DataOptions, KernelOptions, ParameterOptions, PreprocessOptions, Samples};
use mercer::data::folder::{FolderWriter, SavedSamples};
use mercer::data::{Classes, Existing, Labels, Source};
use mercer::kernel::classic::{ClassicError, Expression};
use mercer::kernel::gram::Gram;
use mercer::kernel::{Recipe, SavedKernel};
use mercer::learn::process::tune;
use mercer::learn::{self, KernelMachine};
use ndarray::Array2;
use report::FitReport;
use settings::{Known, MachineName, Settings};
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  mercer fit ridge --gram gram.npy --labels targets.npy --alpha 0.1 -o machine
  mercer fit ridge --gram gram.zarr --labels targets.npy --alpha 0.01,0.1,1,10 -o machine     the best, by leave-one-out
  mercer fit process --kernel '1*rbf(lengthscale=2)' --tune --data x.npy --labels y.npy -o machine
  mercer fit svm --net model.onnx --kind trace --data train.npz:x --labels train.npz:y -o machine
  mercer fit glm --net model.onnx --kind ck --normalise --data train.npz:x --labels train.npz:y -o machine
  mercer fit glm --features phi.npy --labels y.npy --penalty 0.5 -o probe                     a linear probe
  mercer fit neighbours --features eigenfunctions.npy --labels y.npy --neighbours 10 -o machine
  mercer predict --machine machine --data test.npz:x --labels test.npz:y -o scores.npy

A machine is fitted on a Gram matrix (--gram), on features (--features: eigenfunctions, sketches, a network's own), or on
a kernel of samples (--kernel, --net, --arch), which is then computed in double precision. Regressions: ridge, least-squares, flow (gradient flow,
stopped at --time) and process (a Gaussian process). Classifiers: glm (multinomial logistic in the rows; with features a
linear probe), sgd (the same, one class against the others, as in the surrogates' paper), logistic (two classes, Newton), svm
(one against the others), process-classifier, neighbours and centres.

The folder holds all that the machine needs: its arrays and, with a kernel, the network and the training samples. It may be
moved, and predicts from new samples alone; whatever is damaged in it is found.";

/// Fit a machine on a kernel: ridge, Gaussian process, logistic, support vectors, neighbours
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Machine")]
pub(crate) struct FitArguments {
    /// Which machine
    machine: MachineName,

    #[command(flatten)]
    settings: Settings,

    /// The Gram matrix of the training samples, a .npy file or a .zarr store
    #[arg(long, value_name = "FILE", help_heading = "Samples", conflicts_with_all = ["features", "data"])]
    gram: Option<String>,

    /// The features of the training samples, a row each
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Samples", conflicts_with = "data")]
    features: Option<String>,

    /// The training samples, for a kernel
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", help_heading = "Samples")]
    data: Vec<String>,

    /// What is known of them: a class each, or numbers for a regression. A column of the samples that is given here is no input
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Samples", required = true)]
    labels: String,

    #[command(flatten)]
    classes: ClassOptions,

    #[command(flatten)]
    preprocess: PreprocessOptions,

    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    /// Write the machine to this folder
    #[arg(short = 'o', long = "out", value_name = "DIR", help_heading = "Output")]
    out: PathBuf,

    /// Replace a machine that is there already
    #[arg(long, help_heading = "Output")]
    force: bool,
}

/// What a machine is fitted on.
struct Training {
    matrix: Array2<f64>,
    is_gram: bool,
    /// How rows are made, if not by the user.
    kernel: Option<SavedKernel>,
    /// Inputs are there with a kernel alone.
    samples: SavedSamples,
    place: String,
    tuned: Option<Tuning>,
}

/// What marginal likelihood has found.
struct Tuning {
    noise: f64,
    note: String,
}

impl FitArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        self.settings.check(self.machine)?;
        if self.out.is_file() {
            return Err(Failure::new(format!("-o {}: this is a file", self.out.display())).hint("name a folder"));
        }
        let existing = if self.force { Existing::Replace } else { Existing::Refuse };
        let writer = FolderWriter::create(&self.out, KernelMachine::KIND, existing)?;
        let training = self.training(console)?;
        let known = self.known(training.matrix.nrows())?;
        let samples = match training.is_gram {
            true => learn::Samples::Gram(training.matrix.view()),
            false => learn::Samples::Features(training.matrix.view()),
        };
        let start = Instant::now();
        let settings = match &training.tuned {
            Some(tuned) => self.settings.with_noise(tuned.noise),
            None => self.settings.clone(),
        };
        let mut fitted = settings.fit(self.machine, &samples, &known, self.kernel.seed())?;
        fitted.notes.extend(training.tuned.iter().map(|tuned| tuned.note.clone()));
        let seconds = start.elapsed().as_secs_f64();
        let report = FitReport::new(self.machine, &fitted, &samples, &known, &training.place, &self.out, seconds)?;
        let labels = Some(match known {
            Known::Classes(classes) => Labels::Classes(classes),
            Known::Numbers(numbers) => Labels::Targets(numbers),
        });
        let samples = SavedSamples { labels, ..training.samples };
        KernelMachine { machine: fitted.machine, kernel: training.kernel, samples }.commit(writer)?;
        console.result(&report, || report.text())
    }

    fn training(&self, console: &Console) -> Result<Training, Failure> {
        let given = [
            ("--gram", self.gram.is_some()),
            ("--features", self.features.is_some()),
            ("--data", !self.data.is_empty()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Err(Failure::new("there is nothing to fit on").hint(
                "--gram FILE, --features FILE, or --data FILE with --kernel FORMULA or --net MODEL.onnx --kind KIND",
            )),
            Some(("--data", _)) => self.compute(console),
            Some((flag, _)) => {
                if self.settings.tune {
                    return Err(Failure::new(format!(
                        "--tune: {flag} has no parameters; it takes --kernel and --data"
                    )));
                }
                if self.kernel.is_given() {
                    return Err(Failure::new(format!("{flag}: a kernel is computed for --data, not for matrices")));
                }
                let place = self.gram.as_ref().or(self.features.as_ref()).cloned().unwrap_or_default();
                let options = DataOptions { used: vec![self.labels.clone()], ..DataOptions::default() };
                let (matrix, columns) = read_rows(flag, &place, &options, &[], console)?;
                if self.gram.is_some() && matrix.nrows() != matrix.ncols() {
                    let (rows, columns) = matrix.dim();
                    return Err(Failure::new(format!("--gram {place}: {rows} rows but {columns} columns"))
                        .hint("a machine is fitted on the kernel of the training samples with themselves"));
                }
                let samples = SavedSamples { columns, ..SavedSamples::default() };
                Ok(Training { matrix, is_gram: self.gram.is_some(), kernel: None, samples, place, tuned: None })
            }
        }
    }

    /// The Gram matrix of a network's kernel.
    fn compute(&self, console: &Console) -> Result<Training, Failure> {
        if !self.kernel.is_given() {
            return Err(Failure::new("--data: which kernel?")
                .hint("--kernel 'rbf(lengthscale=1)' or --net MODEL.onnx --kind trace; or --features FILE for rows that are features themselves"));
        }
        self.kernel.check()?;
        let source = self.kernel.open(&self.parameters)?;
        let (used, preprocess) = (vec![self.labels.clone()], self.preprocess.clone());
        let options = DataOptions { used, preprocess, ..DataOptions::default() };
        let samples = source.samples("--data", &self.data, &options, &[], console)?;
        samples.hint(source.network(), console)?;
        let shapes = samples.shapes();
        source.check_shapes(&shapes, self.kernel.path())?;
        let mut recipe = self.kernel.recipe(&source, false)?;
        self.kernel.tell(&recipe, &source, &shapes, console);
        let mut tuned = None;
        if self.settings.tune {
            let (found, tuning) = self.tune(&recipe, &samples)?;
            (recipe, tuned) = (found, Some(tuning));
        }
        let failed = |error| self.kernel.failure(error);
        let built = recipe.build::<f64>(source.network(), &shapes).map_err(failed)?;
        if built.kernel.per_sample() != 1 {
            return Err(Failure::new("--kind full has a matrix per pair of samples; machines take one number")
                .hint("--kind trace or pseudo"));
        }
        let gram = Gram::new(&*built.kernel, &samples.inputs);
        let bar = console.context();
        let matrix = gram.to_kernel(&bar).map_err(failed)?;
        let matrix = rows::flat("the kernel", matrix)?;
        let network = source.saved(self.kernel.path(), &self.parameters)?;
        let kernel = Some(SavedKernel::new(recipe, network).with_identity(built.kernel.identity()));
        let place = samples.places();
        let samples = SavedSamples { inputs: samples.inputs, columns: samples.columns, ..SavedSamples::default() };
        Ok(Training { matrix, is_gram: true, kernel, samples, place, tuned })
    }

    /// The formula with the parameters, and the noise, of largest marginal likelihood.
    fn tune(&self, recipe: &Recipe, samples: &Samples) -> Result<(Recipe, Tuning), Failure> {
        let (Recipe::Classic(formula), [input]) = (recipe, &samples.inputs[..]) else {
            return Err(
                Failure::new("--tune: this kernel has no parameters to tune").hint("--kernel 'rbf(lengthscale=1)'")
            );
        };
        let wrong = |error: String| Failure::new(format!("--kernel {formula}: {error}"));
        let expression: Expression = formula.parse().map_err(|error: ClassicError| wrong(error.to_string()))?;
        let (n_samples, size) = (samples.n_samples, input.sample_shape().iter().product::<usize>());
        let rows = input.read::<f64>()?.into_shape_with_order((n_samples, size));
        let rows = rows.map_err(|error| wrong(error.to_string()))?;
        let Known::Numbers(targets) = self.known(n_samples)? else {
            return Err(Failure::new("--tune: --labels must be numbers"));
        };
        let (noise, centred) = (self.settings.noise(), self.settings.centred);
        let found = tune(&expression, noise, rows.view(), targets.view(), centred, 2, self.kernel.seed())?;
        let formula = found.kernel.to_string();
        let note = format!("tuned: {formula}, noise {:.6} in {} evaluations", found.noise, found.evaluations);
        Ok((Recipe::Classic(formula), Tuning { noise: found.noise, note }))
    }

    /// Classes for classifiers, numbers for regressions.
    fn known(&self, n_samples: usize) -> Result<Known, Failure> {
        let dataset = self.labels.parse::<Source>()?.open()?;
        let known = match self.machine.is_classifier() {
            true => {
                let classes = Classes::read(&dataset)?;
                Known::Classes(match self.classes.order()? {
                    Some(order) => classes.ordered(dataset.place(), &order)?,
                    None => classes,
                })
            }
            false => match Labels::targets(&dataset)? {
                Labels::Targets(targets) => Known::Numbers(targets),
                Labels::Classes(_) => return Err(Failure::new("--labels: numbers are needed")),
            },
        };
        let found = known.n_samples();
        if found != n_samples {
            let text = format!("--labels {}: {found} labels for {n_samples} samples", self.labels);
            return Err(Failure::new(text).hint("samples and labels must be in the same order"));
        }
        Ok(known)
    }
}
