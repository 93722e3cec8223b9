//! A machine, learnt from samples, in a folder that predicts.

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
    /// Which machine, with its settings.
    pub machine: MachineSpec,
    /// What it is fitted on.
    pub training: Training,
    /// What is known of the samples: a class each, or numbers for a regression.
    pub labels: DataRef,
    /// The names of the classes in the order of the scores: a file with a name per line, or a list as in `cat,dog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<String>,
    /// Of everything random in the fit.
    #[serde(default, with = "crate::job::seed")]
    pub seed: u64,
}

/// What a fit would do and take.
#[derive(Clone, Debug, Serialize)]
pub struct FitPlan {
    /// Which machine.
    pub machine: MachineName,
    /// The samples.
    pub n_samples: usize,
    /// Numbers per row: samples or features.
    pub width: usize,
    /// The memory that rows and solver take, all that the process holds included.
    pub bytes: usize,
}

impl FitJob {
    /// Classes for classifiers, numbers for regressions.
    fn known(&self, n_samples: usize, opening: Opening<'_>) -> Result<Known, Error> {
        let dataset = self.labels.open(opening.inputs)?;
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
        let bytes = needs::bytes(&self.machine, &training, &known);
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
                .hint("the same command begins again; a kernel that takes long can be computed before: `mercer kernel`, then ‹gram›"),
            false => error,
        })
    }
}

impl OpenedFit {
    fn learn(self, context: &Context) -> Result<Outcome<FitFindings>, Error> {
        let Self { job, folder, training, known, watch, .. } = self;
        let Some(folder) = folder else { return Err(Error::new("there is no place for the machine")) };
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

/// What is to say of a machine on the samples that it learnt from.
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
