//! Fitting a machine to samples. The result is a folder that predicts.
//!
//! ```
//! use mercer::data::Dataset;
//! use mercer::job::{Destination, FitJob, Job, Opened};
//! use mercer::prelude::Context;
//! use mercer::spec::{Inputs, Opening};
//!
//! let points = ndarray::Array2::from_shape_fn((20, 1), |(i, _)| i as f64 / 10.0);
//! let targets = points.mapv(f64::sin);
//! let array = |name, values: &ndarray::Array2<f64>| Dataset::from_array(name, values.view().into_dyn());
//! let inputs = Inputs::none().with("x", array("x", &points)?).with("y", array("y", &targets)?);
//! let job: FitJob = serde_json::from_value(serde_json::json!({
//!     "machine": { "name": "ridge", "penalty": [1e-3] },
//!     "training": { "kernel": { "kernel": { "kernel": "rbf()" }, "data": [{ "given": "x" }] } },
//!     "labels": { "given": "y" },
//! }))?;
//! let folder = tempfile::tempdir()?;
//! let context = Context::new();
//! let destination = Destination::new(folder.path().join("machine"));
//! let outcome = job.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
//! assert_eq!(outcome.findings.n_samples, 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod findings;
mod machine;
mod needs;
mod solve;
mod training;

use super::folder::ResultFolder;
use super::record::InputRecord;
use super::{Artefact, Destination, Job, Opened as OpenedJob, Outcome, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, Known, Opening};
pub use findings::{FitFindings, SelectionFindings, SolutionFindings, TunedParameter, Tuning};
pub use machine::{Link, MachineName, MachineSpec};
use mercer_data::ClassOrder;
use mercer_data::parse_classes;
use mercer_learn::metrics::{accuracy, r_squared};
use mercer_learn::{KernelMachine, Predict, SampleKind, SampleRows};
use mercer_run::Context;
use serde::{Deserialize, Serialize};
use solve::{Fitted, Lesson};
use training::Opened;
pub use training::Training;

/// A machine that learns from samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitJob {
    /// The machine and its settings.
    pub machine: MachineSpec,
    /// The training data.
    pub training: Training,
    /// The labels of the samples: a class each, or numbers for a regression.
    pub labels: DataRef,
    /// The names of the classes in the order of the scores: a file with a name per line, or a list as in `cat,dog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<String>,
    /// The seed of all random numbers of the fit.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
}

/// The planned fit and its cost.
#[derive(Clone, Debug, Serialize)]
pub struct FitPlan {
    /// The machine.
    pub machine: MachineName,
    /// The samples.
    pub n_samples: usize,
    /// Numbers per row: samples or features.
    pub width: usize,
    /// The memory of the rows, the solver and the rest of the process.
    pub bytes: usize,
}

impl FitJob {
    /// Classes for classifiers, numbers for regressions.
    fn known(&self, n_samples: usize, opening: Opening<'_>) -> Result<Known, Error> {
        let dataset = self.labels.open_labels(opening.inputs)?;
        let names = self.classes.as_deref().map(parse_classes).transpose();
        let order = names.map_err(|error| Error::new(format!("‹classes› {error}")))?.map(ClassOrder::Names);
        let known = Known::read(&dataset, self.machine.name().is_classifier(), order.as_ref())?;
        let found = known.n_samples();
        if found != n_samples {
            let text = format!("‹labels› {}: {found} labels for {n_samples} samples", self.labels);
            return Err(Error::new(text).hint("samples and labels must be in the same order"));
        }
        Ok(known)
    }
}

impl Job for FitJob {
    const NAME: &'static str = "fit";

    type Opened = OpenedFit;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedFit, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.machine.check()?;
        let folder = match destination.dry_run {
            true => None,
            false => Some(ResultFolder::create(destination, KernelMachine::KIND, &[])?),
        };
        let training = self.training.open(&self.machine, &self.labels, opening)?;
        let (n_samples, width) = training.dim();
        let known = self.known(n_samples, opening)?;
        let bytes = needs::bytes(&self.machine, &training, &known)?;
        needs::check(bytes, &self.machine, opening.context)?;
        let plan = FitPlan { machine: self.machine.name(), n_samples, width, bytes };
        Ok(OpenedFit { job: self.clone(), folder, training, known, plan, watch })
    }
}

/// A fit with everything opened.
#[derive(Debug)]
pub struct OpenedFit {
    job: FitJob,
    folder: Option<ResultFolder>,
    training: Opened,
    known: Known,
    plan: FitPlan,
    watch: Stopwatch,
}

impl OpenedJob for OpenedFit {
    type Plan = FitPlan;
    type Findings = FitFindings;

    fn plan(&self) -> &FitPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<FitFindings>, Error> {
        let run = self.learn(context);
        run.map_err(|error| match error.is_interrupted() {
            true => error
                .with_message("interrupted; nothing was written")
                .hint("run the same command to start again; to keep a slow kernel, compute it with `mercer kernel` and pass it as ‹gram›"),
            false => error,
        })
    }
}

impl OpenedFit {
    fn learn(self, context: &Context) -> Result<Outcome<FitFindings>, Error> {
        let Self { job, folder, training, known, watch, .. } = self;
        let Some(folder) = folder else { return Err(Error::new("the job has no destination for the machine")) };
        let data = training.places();
        let mut made = training.make(&job.machine, &known, job.seed, context)?;
        made.inputs.push(InputRecord::new("labels", &job.labels.to_string(), known.fingerprint()));
        let samples = match made.basis {
            SampleKind::Gram => SampleRows::Gram(made.matrix.view()),
            SampleKind::Features => SampleRows::Features(made.matrix.view()),
        };
        let lesson = Lesson { samples, known: &known, seed: job.seed };
        let mut fitted = {
            let _phase = context.phase("fitting");
            let mut machine = job.machine.clone();
            if let (MachineSpec::Process { noise_variance, .. }, Some((found, _))) = (&mut machine, &made.tuned) {
                *noise_variance = *found;
            }
            machine.fit(&lesson, context)?
        };
        fitted.solution.tuning = made.tuned.map(|(_, tuning)| tuning);
        context.check()?;
        let findings = {
            let _phase = context.phase("evaluating");
            findings(&job, data, &fitted, &lesson)?
        };
        context.check()?;
        let _phase = context.phase("writing");
        drop(made.matrix);
        let saved = KernelMachine { machine: fitted.machine, kernel: made.kernel, samples: made.samples };
        let content = saved.write(folder.writer())?;
        let place = Artefact::file("machine", folder.path().display().to_string());
        let mut outcome = folder.finish(job, made.inputs, findings, &content, (watch, context))?;
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

/// The findings on the training samples.
fn findings(job: &FitJob, data: String, fitted: &Fitted, lesson: &Lesson<'_>) -> Result<FitFindings, Error> {
    let predicted = fitted.machine.predict(&lesson.samples)?;
    let (mut training_accuracy, mut training_r_squared) = (None, None);
    match lesson.known {
        Known::Classes(classes) => {
            if let Some(classifier) = fitted.machine.as_classifier() {
                let decided = classifier.classes().decide(predicted.view());
                training_accuracy = Some(accuracy(&decided, classes.indices())?);
            }
        }
        Known::Numbers(targets) => {
            let each = predicted.columns().into_iter().zip(targets.columns());
            training_r_squared = Some(each.map(|(found, truth)| r_squared(found, truth).ok()).collect());
        }
    }
    Ok(FitFindings {
        machine: job.machine.name(),
        data,
        n_samples: lesson.samples.n_samples(),
        training_accuracy,
        training_r_squared,
        solution: fitted.solution.clone(),
        repairs: fitted.machine.repairs().iter().map(ToString::to_string).collect(),
    })
}
