//! Trains a described network, or the network of an ONNX file, on data.
//!
//! ```
//! use mercer::job::train::{TrainJob, TrainingSpec};
//! use mercer::spec::DataSpec;
//!
//! let data = DataSpec { data: vec!["x.npy".into()], labels: Some("y.npy".into()), ..DataSpec::default() };
//! let training = TrainingSpec { learning_rate: Some(1e-2), ..TrainingSpec::default() };
//! let job = TrainJob { training, ..TrainJob::new("cnn.toml", data) };
//! let read: TrainJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod findings;
mod place;
mod settings;
mod tuning;

use super::record::InputRecord;
use super::{Destination, Job, Opened, Outcome, Stopwatch};
use crate::Error;
use crate::error::AboutNetwork;
use crate::spec::open_architecture;
use crate::spec::{
    DataRef, DataSpec, Opening, ParameterSpec, Precision, Samples, fingerprint_of_inputs, fingerprint_of_labels,
};
use crate::text::{bytes, count, suggested};
pub use findings::{EpochFindings, TrainFindings, TrainPlan};
use mercer_data::folder::digest;
use mercer_data::{Dataset, Labels};
use mercer_kernel::Real;
use mercer_net::Network;
use mercer_net::train::{self, Epoch, Loss, Optimiser, Trainer, TrainingLoop, TrainingSettings, files};
use mercer_run::{Context, resident_memory};
use place::Place;
use serde::{Deserialize, Serialize};
pub use settings::{LossName, OptimiserName, ScheduleName, TrainingSpec};
use std::fmt;
use std::path::{Path, PathBuf};
pub use tuning::TuningSpec;

/// Trains a network on data. The result is a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainJob {
    /// The description of the network; empty if the network is from a file.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub arch: PathBuf,
    /// The file of the network, and what of it is trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<TuningSpec>,
    /// Memory limit for the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_limit: Option<usize>,
    /// The training samples, with labels.
    pub data: DataSpec,
    /// Samples to measure on after every epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_data: Option<DataRef>,
    /// Their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_labels: Option<DataRef>,
    /// The training settings.
    #[serde(default)]
    pub training: TrainingSpec,
    /// The precision to compute in.
    pub precision: Precision,
    /// Whether the network's file stores its classes, the columns of its tables and its preprocessing.
    #[serde(default = "yes")]
    pub annotate: bool,
}

fn yes() -> bool {
    true
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

impl TrainJob {
    /// Trains a described network on labelled samples with the default settings in single precision.
    pub fn new(arch: impl Into<PathBuf>, data: DataSpec) -> Self {
        let (training, precision) = (TrainingSpec::default(), Precision::F32);
        let (arch, tuning, annotate) = (arch.into(), None, true);
        let (import_limit, eval_data, eval_labels) = (None, None, None);
        Self { arch, tuning, import_limit, data, eval_data, eval_labels, training, precision, annotate }
    }

    /// Trains the network of a file.
    pub fn tuned(tuning: TuningSpec, data: DataSpec) -> Self {
        Self { tuning: Some(tuning), ..Self::new("", data) }
    }

    /// The description or the file.
    fn path(&self) -> &Path {
        self.tuning.as_ref().map_or(&self.arch, |tuning| &tuning.net)
    }

    /// Contradictory settings are rejected, not ignored.
    fn check(&self) -> Result<(), Error> {
        self.training.check()?;
        if is_empty(&self.arch) == self.tuning.is_none() {
            return Err(Error::new("training needs one network: ‹arch› or ‹net›"));
        }
        if self.data.labels.is_none() {
            return Err(Error::new("training needs ‹labels›").hint("‹labels› FILE[:KEY], one per sample"));
        }
        if self.eval_data.is_some() != self.eval_labels.is_some() {
            return Err(Error::new("‹test› and ‹test-labels› go together"));
        }
        Ok(())
    }

    /// Samples to measure on, with labels in the order of the training's.
    fn evaluation(&self, network: &Network, samples: &Samples, opening: Opening<'_>) -> Result<Option<Set>, Error> {
        let (Some(data), Some(labels)) = (&self.eval_data, &self.eval_labels) else { return Ok(None) };
        let texts = std::slice::from_ref(data);
        let options = self.data.reading(texts, Some(labels)).learnt_from(samples);
        let given = Samples::given("test", texts, &options, network, &samples.columns, opening)?;
        let mut set = Set::new(given)?;
        if let (Some(Labels::Classes(known)), Labels::Classes(own)) = (&samples.labels, &set.labels)
            && known.names() != own.names()
        {
            // Classes are numbered as in the training set.
            let text = |error| Error::new(format!("‹test-labels›: {error}"));
            set.labels = Labels::Classes(own.clone().with_names(known.names()).map_err(text)?);
        }
        Ok(Some(set))
    }
}

impl Job for TrainJob {
    const NAME: &'static str = "train";

    type Opened = OpenedTrain;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedTrain, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        self.check()?;
        let parameters = ParameterSpec { import_limit: self.import_limit, ..ParameterSpec::default() };
        let (described, file, mut network, samples) = match &self.tuning {
            Some(tuning) => {
                let (tuned, samples) = tuning.open(&self.data, &parameters, self.training.seed, opening)?;
                (tuned.described, Some(tuned.bytes), tuned.network, samples)
            }
            None => {
                let (architecture, network) = open_architecture(&self.arch, self.training.seed, &parameters)?;
                let described = serde_json::to_string(&architecture);
                let described = described.map_err(|error| Error::new(format!("{}: {error}", self.arch.display())))?;
                let samples = Samples::open(&self.data, &network, opening)?;
                (digest(described.as_bytes()), None, network, samples)
            }
        };
        samples.hint(Some(&network), opening)?;
        let evaluation = self.evaluation(&network, &samples, opening)?;
        let trained_on = samples.trained_on();
        let training = Set::new(samples)?;
        if self.annotate {
            network.set_trained_on(trained_on)?;
        }
        let mut job = self.clone();
        job.training = self.training.completed(matches!(training.labels, Labels::Classes(_)));
        let (settings, loss, optimiser) = (job.training.settings(), job.training.loss(), job.training.optimiser());
        for set in [Some(&training), evaluation.as_ref()].into_iter().flatten() {
            fits(self.path(), self.tuning.is_some(), &network, set, &loss)?;
        }
        let run = Run { job, described, file, network, training, evaluation, settings, loss, optimiser };
        let plan = match self.precision {
            Precision::F32 => run.plan::<f32>(opening.context)?,
            Precision::F64 => run.plan::<f64>(opening.context)?,
        };
        let place = if destination.dry_run { None } else { Some(Place::check(destination)?) };
        Ok(OpenedTrain { run, plan, place, watch, on_epoch: None })
    }
}

/// Samples with labels, in the form that the trainer takes.
#[derive(Debug)]
struct Set {
    /// One per input of the network.
    inputs: Vec<Dataset>,
    labels: Labels,
}

impl Set {
    fn new(samples: Samples) -> Result<Self, Error> {
        match samples.labels {
            Some(labels) => Ok(Self { inputs: samples.inputs, labels }),
            None => Err(Error::new("training needs labels")),
        }
    }

    fn n_samples(&self) -> usize {
        self.samples().n_samples()
    }

    /// The files.
    fn place(&self) -> String {
        // Several inputs may be parts of one text.
        let mut places: Vec<&str> = self.inputs.iter().map(Dataset::place).collect();
        places.dedup();
        places.join(", ")
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs.iter().map(|set| set.sample_shape().to_vec()).collect()
    }

    fn samples(&self) -> train::TrainingSamples<'_> {
        train::TrainingSamples { inputs: &self.inputs, labels: &self.labels }
    }
}

/// What to train, and on what.
#[derive(Debug)]
struct Run {
    job: TrainJob,
    /// A digest of the description or of the file.
    described: String,
    /// The file, with its new head, if the network is from one.
    file: Option<Vec<u8>>,
    network: Network,
    training: Set,
    evaluation: Option<Set>,
    settings: TrainingSettings,
    loss: Loss,
    optimiser: Optimiser,
}

/// The listener for epochs.
type OnEpoch = Box<dyn Fn(&EpochFindings)>;

/// A training with everything opened.
pub struct OpenedTrain {
    run: Run,
    plan: TrainPlan,
    place: Option<Place>,
    watch: Stopwatch,
    on_epoch: Option<OnEpoch>,
}

impl fmt::Debug for OpenedTrain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenedTrain").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl OpenedTrain {
    /// Calls this after every epoch.
    pub fn on_epoch(self, call: impl Fn(&EpochFindings) + 'static) -> Self {
        Self { on_epoch: Some(Box::new(call)), ..self }
    }
}

impl Opened for OpenedTrain {
    type Plan = TrainPlan;
    type Findings = TrainFindings;

    fn plan(&self) -> &TrainPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<TrainFindings>, Error> {
        let Self { run, place, watch, on_epoch, .. } = self;
        let place = place.ok_or_else(|| Error::new("there is no destination for the results").hint("‹out› DIR"))?;
        let outcome = match run.job.precision {
            Precision::F32 => run.run::<f32>(place, on_epoch, watch, context),
            Precision::F64 => run.run::<f64>(place, on_epoch, watch, context),
        };
        outcome.map_err(|error| error.when_interrupted(|| "‹resume› continues from the last complete epoch".to_owned()))
    }
}

/// The description of a trained network in the manifest.
#[derive(Serialize)]
struct Content<'a> {
    model: &'a str,
    weights: &'a str,
    precision: Precision,
    n_params: usize,
    checkpoints: Vec<usize>,
}

impl Run {
    fn trainer<T: Real>(&self) -> Result<Trainer<T>, Error> {
        let graph = self.network.graph(&self.training.shapes()).about(self.job.path())?;
        let weights = self.network.weights::<T>(&graph);
        Ok(Trainer::new(graph, weights, self.loss.clone(), self.optimiser.clone())?)
    }

    fn fit<'a>(&'a self, folder: &Path) -> TrainingLoop<'a> {
        let fit = TrainingLoop::new(self.settings.clone()).folder(folder);
        match &self.evaluation {
            Some(set) => fit.evaluation(set.samples()),
            None => fit,
        }
    }

    /// Rejects unsuitable settings and insufficient memory.
    fn plan<T: Real>(&self, context: &Context) -> Result<TrainPlan, Error> {
        let trainer = self.trainer::<T>()?;
        let batch = self.fit(Path::new("")).check(&trainer, self.training.samples())?;
        let (n_samples, epochs) = (self.training.n_samples(), self.settings.epochs);
        let n_evaluation_samples = self.evaluation.as_ref().map(Set::n_samples);
        let evaluated = n_evaluation_samples.unwrap_or(0).min(TrainingLoop::EVALUATION_ROWS);
        let step = trainer.bytes(batch).max(trainer.evaluation_bytes(evaluated));
        let needed = step.saturating_add(resident_memory());
        if needed > context.memory() {
            let text =
                format!("‹memory› {} is too little: training takes about {}", bytes(context.memory()), bytes(needed));
            let hint = format!("‹memory› {}, or a smaller ‹batch›", suggested(needed));
            return Err(Error::with_code("memory", text).hint(hint));
        }
        let flops = trainer.graph().flops() as f64 * epochs as f64;
        let measured = n_samples + n_evaluation_samples.unwrap_or(0);
        Ok(TrainPlan {
            network: self.job.path().display().to_string(),
            precision: self.job.precision,
            n_params: self.network.n_params(),
            n_samples,
            n_evaluation_samples,
            settings: self.settings.clone(),
            loss: self.loss.clone(),
            optimiser: self.optimiser.clone(),
            steps_per_epoch: n_samples.div_ceil(batch),
            forward_gflop: flops * measured as f64 / 1e9,
            bytes: step,
        })
    }

    fn run<T: Real>(
        mut self,
        place: Place,
        on_epoch: Option<OnEpoch>,
        watch: Stopwatch,
        context: &Context,
    ) -> Result<Outcome<TrainFindings>, Error> {
        let inputs = {
            let _phase = context.phase("reading");
            self.inputs()?
        };
        let history = {
            let _phase = context.phase("training");
            let mut trainer = self.trainer::<T>()?;
            place.clear()?;
            let report = |epoch: &Epoch| {
                if let Some(call) = &on_epoch {
                    call(&EpochFindings::new(epoch));
                }
            };
            let reopen = || place.reopen();
            let fit = self.fit(place.path()).resume(place.resume).context(context);
            let fit = fit.before_writing(&reopen).on_epoch(&report);
            let history = fit.run(&mut trainer, self.training.samples())?;
            self.network.set_weights(trainer.weights());
            history
        };
        let _phase = context.phase("writing");
        place.adopt()?;
        let Self { job, file, network, training, evaluation, settings, loss, optimiser, .. } = self;
        let (model, tensors) = match &file {
            Some(file) => tuning::written(&network, file, job.import_limit)?,
            None => (network.to_onnx_bytes()?, network.to_safetensors_bytes()?),
        };
        place.folder.file(files::MODEL, &model)?;
        place.folder.file(files::TENSORS, &tensors)?;
        let n_params = network.n_params();
        let precision = job.precision;
        let findings = TrainFindings {
            kind: files::KIND,
            files: files::files(&settings, history.len()),
            model: files::MODEL.to_owned(),
            weights: files::TENSORS.to_owned(),
            precision,
            n_params,
            n_samples: training.n_samples(),
            n_evaluation_samples: evaluation.as_ref().map(Set::n_samples),
            settings: settings.clone(),
            loss,
            optimiser,
            preprocess: training.inputs.first().map(|set| set.preprocess().clone()).unwrap_or_default(),
            class_names: match &training.labels {
                Labels::Classes(classes) => Some(classes.names().to_vec()),
                Labels::Targets(_) => None,
            },
            stopped_after: settings.stopped_after(&history),
            history: history.iter().map(EpochFindings::new).collect(),
        };
        if let (Some(loss), None) = (settings.stop_loss, findings.stopped_after) {
            let epochs = count(history.len(), "epoch");
            context.note(&format!("the loss was not below ‹stop-loss› {loss} after any of {epochs}"));
        }
        let (model, weights) = (files::MODEL, files::TENSORS);
        let checkpoints = settings.checkpoints.iter().copied().filter(|&epoch| epoch <= history.len()).collect();
        let content = Content { model, weights, precision, n_params, checkpoints };
        place.folder.finish(job, inputs, findings, &content, (watch, context))
    }

    /// The inputs that decide the numbers, besides the settings.
    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let record = |setting: &str, place: String, fingerprint: String| InputRecord {
            setting: setting.to_owned(),
            place,
            fingerprint,
        };
        let setting = if self.job.tuning.is_some() { "net" } else { "arch" };
        let mut inputs = vec![record(setting, self.job.path().display().to_string(), self.described.clone())];
        let sets = [
            (["data", "labels"], Some(&self.training), &self.job.data.labels),
            (["eval-data", "eval-labels"], self.evaluation.as_ref(), &self.job.eval_labels),
        ];
        for ([data, labels], set, named) in sets {
            let Some(set) = set else { continue };
            inputs.push(record(data, set.place(), fingerprint_of_inputs(&set.inputs)?));
            let place = named.as_ref().map(ToString::to_string).unwrap_or_default();
            inputs.push(record(labels, place, fingerprint_of_labels(&set.labels)));
        }
        Ok(inputs)
    }
}

/// Checks that the network fits the samples and labels.
fn fits(path: &Path, is_file: bool, network: &Network, set: &Set, loss: &Loss) -> Result<(), Error> {
    let (place, path) = (set.place(), path.display());
    let about = |error| {
        let error = Error::new(format!("{place} does not fit {path}: {error}"));
        if is_file { error } else { error.hint(format!("set `inputs` in {path}")) }
    };
    if network.parameters().is_empty() {
        let error = Error::new(format!("{path}: it has no parameters, so there is nothing to train"));
        return Err(if is_file {
            error.hint("‹head› N puts a layer behind it that can be trained")
        } else {
            error
        });
    }
    let graph = network.graph(&set.shapes()).map_err(about)?;
    let n_outputs = graph.outputs().first().map_or(0, |&(_, id)| graph.value(id).meta.numel());
    let needed = set.labels.n_outputs();
    // A single output distinguishes two classes under some losses.
    let n_classes = loss.n_classes(n_outputs);
    let fits = match &set.labels {
        // The class of each output must be known; numbers determine it themselves.
        Labels::Classes(classes) if !classes.are_numbered() => n_classes == needed,
        Labels::Classes(_) => n_classes >= needed,
        Labels::Targets(_) => n_outputs == needed,
    };
    if fits {
        return Ok(());
    }
    let what = if matches!(set.labels, Labels::Classes(_)) { "classes" } else { "numbers per sample" };
    let outputs = count(n_outputs, "output");
    if what == "classes" && needed < 2 {
        let text = format!("{place}: all samples are of one class");
        return Err(Error::new(text).hint("two classes or more, or names of all classes with ‹classes›"));
    }
    let error = Error::new(format!("{path}: the network has {outputs}, the labels of {place} have {needed} {what}"));
    let otherwise = if n_outputs > needed {
        ", or name all classes with ‹classes›"
    } else if n_outputs == 1 && needed == 2 && what == "classes" {
        ", or use ‹loss› cross-entropy or sigmoid-squared"
    } else {
        ""
    };
    Err(match is_file {
        true => error.hint(format!("‹head› {needed}{otherwise}")),
        false => error.hint(format!("set `outputs = {needed}` in {path}{otherwise}")),
    })
}
