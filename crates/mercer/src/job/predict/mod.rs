//! Predictions of a network, or of any saved result, on data.
//!
//! ```
//! use mercer::job::PredictJob;
//! use mercer::spec::DataSpec;
//!
//! let data = DataSpec { data: vec!["test.npy".into()], ..DataSpec::default() };
//! let job = PredictJob::network("model.onnx", data.clone());
//! assert_ne!(job, PredictJob::saved("machine", data));
//! ```

mod functions;
mod machine;
mod network;
mod posterior;
mod quality;
mod regions;
mod saved;
mod score;
mod variance;

use super::record::{InputRecord, OutputRecord, Record, digest_of};
use super::{Artefact, Destination, Job, Opened, Outcome, Stopwatch};
use crate::Error;
use crate::spec::{DataSpec, Opening, ParameterSpec, Precision, Samples};
pub use functions::FunctionFindings;
use functions::SavedFunctions;
pub use machine::MachineFindings;
use machine::SavedMachine;
use mercer_run::Context;
use mercer_run::names::Named;
pub use network::NetworkFindings;
use network::NetworkRun;
pub use posterior::PosteriorFindings;
use posterior::PosteriorRun;
pub use quality::Quality;
pub use score::Score;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The source of the predictions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The network in a file.
    Net(PathBuf),
    /// The contents of a folder: a machine, eigenfunctions, a posterior, a network.
    From(PathBuf),
}

/// Predictions on data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictJob {
    /// Their source.
    pub subject: Subject,
    /// How the file of a network is read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parameters: ParameterSpec,
    /// The node or output of a network; by default its first output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Class probabilities instead of the scores of a machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub probabilities: bool,
    /// The precision of a network; saved results have their own.
    pub precision: Precision,
    /// The approximate number of samples to read at a time. Results do not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroUsize>,
    /// The samples and their labels.
    pub data: DataSpec,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The planned work.
#[derive(Clone, Debug, Serialize)]
pub struct PredictPlan {
    /// The source of the predictions: `network`, or the kind of folder.
    pub kind: String,
    /// The samples.
    pub n_samples: usize,
    /// Numbers per sample, if known in advance.
    pub numbers: Option<usize>,
    /// Operations, in 10⁹, if known in advance.
    pub gflop: Option<f64>,
}

/// The findings for predictions, by their source.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum PredictFindings {
    /// Of a network.
    Network(NetworkFindings),
    /// Of a machine.
    Machine(MachineFindings),
    /// Of eigenfunctions.
    Functions(FunctionFindings),
    /// Of a posterior.
    Posterior(PosteriorFindings),
}

impl PredictJob {
    /// The outputs of a network.
    pub fn network(file: impl Into<PathBuf>, data: DataSpec) -> Self {
        Self::with_subject(Subject::Net(file.into()), data)
    }

    /// What a folder gives.
    pub fn saved(folder: impl Into<PathBuf>, data: DataSpec) -> Self {
        Self::with_subject(Subject::From(folder.into()), data)
    }

    fn with_subject(subject: Subject, data: DataSpec) -> Self {
        let (parameters, at, batch) = (ParameterSpec::default(), None, None);
        Self { subject, parameters, at, probabilities: false, precision: Precision::F32, batch, data }
    }

    fn check(&self, destination: &Destination) -> Result<(), Error> {
        if destination.path.is_none() && self.data.labels.is_none() {
            return Err(Error::new("nothing to do: the predictions are neither written nor scored")
                .hint("‹out› OUT.npy writes them; ‹labels› FILE[:KEY] gives their accuracy"));
        }
        if self.probabilities && matches!(self.subject, Subject::Net(_)) {
            return Err(Error::new("‹probabilities› is for saved results; a network gives its outputs")
                .hint("‹from› DIR, or leave it out"));
        }
        self.data.preprocess.check_for_saved()?;
        destination.check_array()
    }
}

impl Job for PredictJob {
    const NAME: &'static str = "predict";

    type Opened = OpenedPredict;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedPredict, Error> {
        self.check(destination)?;
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        let (work, plan) = match &self.subject {
            Subject::Net(file) => NetworkRun::of_file(self, file, opening)?.planned(),
            Subject::From(folder) => saved::open(self, folder, destination, opening)?,
        };
        Ok(OpenedPredict { job: self.clone(), destination: destination.clone(), work, plan, watch })
    }
}

/// A job of predictions with everything opened.
#[derive(Debug)]
pub struct OpenedPredict {
    job: PredictJob,
    destination: Destination,
    work: Work,
    plan: PredictPlan,
    watch: Stopwatch,
}

/// An opened source of predictions.
#[derive(Debug)]
enum Work {
    Network(Box<NetworkRun>),
    Machine(Box<SavedMachine>),
    Functions(Box<SavedFunctions>),
    Posterior(Box<PosteriorRun>),
}

/// The result of a run, before it becomes an outcome.
struct Predicted {
    findings: PredictFindings,
    /// Of the whole array.
    shape: Vec<usize>,
    precision: Precision,
    inputs: Vec<InputRecord>,
    /// Arrays of the same shape, and tables (`.csv`), that were written, too.
    beside: Vec<PathBuf>,
}

impl Opened for OpenedPredict {
    type Plan = PredictPlan;
    type Findings = PredictFindings;

    fn plan(&self) -> &PredictPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<PredictFindings>, Error> {
        let predicted = match &self.work {
            Work::Network(work) => work.run(&self.job, &self.destination, context),
            Work::Machine(work) => work.run(&self.job, &self.destination, context),
            Work::Functions(work) => work.run(&self.destination, context),
            Work::Posterior(work) => work.run(&self.job, &self.destination, context),
        };
        let predicted =
            predicted.map_err(|error| match error.is_interrupted() && error.message() == "interrupted" {
                true => error.with_message("interrupted; nothing was written"),
                false => error,
            })?;
        let Predicted { findings, shape, precision, inputs, beside } = predicted;
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = |path: &PathBuf| match path.extension().is_some_and(|end| end == "csv") {
            true => Artefact::file(name(path), path.display().to_string()),
            false => Artefact::array(name(path), path.display().to_string(), &shape, precision.name()),
        };
        let written: Vec<PathBuf> = self.destination.path.iter().cloned().chain(beside).collect();
        let n_samples = self.plan.n_samples as f64;
        let mut outcome = self.watch.outcome(findings, written.iter().map(place).collect(), context);
        let seconds = outcome.measurements.phase("evaluating").max(1e-9);
        outcome.measurements.note("samples_per_second", &(n_samples / seconds));
        if let Some(path) = &self.destination.path {
            let output = |path: &PathBuf| Ok(OutputRecord { name: name(path), digest: digest_of(path)? });
            let outputs = written.iter().map(output).collect::<Result<Vec<_>, Error>>()?;
            Record::new(self.job, inputs, outputs, outcome.measurements.clone()).write(path)?;
        }
        Ok(outcome)
    }
}

/// The inputs that decide the predictions: their source and the samples.
fn inputs(setting: &str, place: &str, fingerprint: String, samples: &Samples) -> Result<Vec<InputRecord>, Error> {
    let data = InputRecord::new("data", &samples.places(), samples.fingerprint()?);
    Ok(vec![InputRecord::new(setting, place, fingerprint), data])
}
