//! Networks retrained on parts of their data, by the recipe of their own training.
//!
//! `mercer train` leaves a record beside the network. It says how the network was made, so that it can be made again on
//! other rows of the data.

use crate::Error;
use crate::door::train_on;
use crate::job::record::{AnyJob, Record};
use crate::job::surrogate::Classified;
use crate::job::train::TrainingSpec;
use crate::spec::{NetworkLogits, ParameterSpec, Precision, open_architecture};
use mercer_data::folder::digest;
use mercer_data::{Dataset, Existing, Labels, Source, write_npy};
use mercer_lens::log_odds;
use mercer_run::Context;
use ndarray::{Array1, Ix1};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// How a network was trained.
#[derive(Clone, Debug)]
pub(super) struct Retraining {
    arch: PathBuf,
    training: TrainingSpec,
    precision: Precision,
    import_limit: Option<usize>,
}

/// One network to train: its rows of the data, and what is added to the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) rows: Vec<usize>,
    pub(super) repeat: u64,
}

impl Retraining {
    /// Reads the record beside a network.
    ///
    /// # Errors
    /// If there is none, or the network was not made by `mercer train`.
    pub(super) fn of_network(net: &Path) -> Result<Self, Error> {
        let hint = "‹validate› retrains the network: ‹net› must be the model.onnx in a folder of `mercer train`";
        let folder = net.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let record = Record::read(folder).map_err(|error| error.hint(hint))?;
        let AnyJob::Train(job) = record.job else {
            return Err(Error::new(format!("{}: it was not trained by mercer", net.display())).hint(hint));
        };
        let (arch, training, precision) = (job.arch.clone(), job.training.clone(), job.precision);
        if job.tuning.is_some() {
            let text = format!("{}: networks trained from an ONNX file cannot be trained again here", net.display());
            return Err(Error::new(text).hint("leave out ‹validate›"));
        }
        if !arch.exists() {
            let text = format!("{}: the description of {} is missing", arch.display(), net.display());
            return Err(Error::new(text).hint("run the command where the network was trained"));
        }
        let training = TrainingSpec { checkpoint_every: None, checkpoint_at: Vec::new(), ..training };
        Ok(Self { arch, training, precision, import_limit: job.import_limit })
    }

    /// The log-odds of the given classes of the test samples, by a network trained on some rows.
    fn outputs(
        &self,
        trial: &Trial,
        known: &Classified,
        test: &[Dataset],
        classes: &[usize],
        context: &Context,
    ) -> Result<Vec<f64>, Error> {
        let mut training = self.training.clone();
        training.seed = training.seed.wrapping_add(trial.repeat);
        let parameters = ParameterSpec { import_limit: self.import_limit, ..ParameterSpec::default() };
        let (_, mut network) = open_architecture(&self.arch, training.seed, &parameters)?;
        let inputs = known.samples.inputs.iter().map(|input| input.subset(&trial.rows));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let labels = Labels::Classes(known.classes.clone()).select(&trial.rows)?;
        let quiet = context.quiet();
        match self.precision {
            Precision::F32 => train_on::<f32>(&mut network, (&inputs, &labels), &training, &quiet)?,
            Precision::F64 => train_on::<f64>(&mut network, (&inputs, &labels), &training, &quiet)?,
        };
        let shapes: Vec<Vec<usize>> = test.iter().map(|input| input.sample_shape().to_vec()).collect();
        let logits = NetworkLogits::find(&network, &shapes, None, &self.arch, &quiet)?;
        let scores = match self.precision {
            Precision::F32 => logits.scores::<f32>(&network, test, &quiet)?,
            Precision::F64 => logits.scores::<f64>(&network, test, &quiet)?,
        };
        Ok(log_odds(scores.view(), classes)?)
    }

    /// The outputs of all trials. Those that are done are kept in `folder`, so that an interrupted run goes on where it
    /// stopped; `what` says what the outputs depend on besides the trials.
    pub(super) fn run(
        &self,
        trials: &[Trial],
        known: &Classified,
        (test, classes): (&[Dataset], &[usize]),
        (folder, what): (&Path, &str),
        context: &Context,
    ) -> Result<Vec<Vec<f64>>, Error> {
        std::fs::create_dir_all(folder).map_err(|error| crate::error::cannot_write(folder.display(), &error))?;
        let done = std::sync::atomic::AtomicUsize::new(0);
        let one = |trial: &Trial| {
            context.check()?;
            let key = digest(format!("{what} {:?} {} {:?}", self.training, trial.repeat, trial.rows).as_bytes());
            let path = folder.join(format!("{}.npy", &key[..32]));
            let kept = kept(&path, classes.len());
            let outputs = match kept {
                Some(outputs) => outputs,
                None => {
                    let outputs = self.outputs(trial, known, test, classes, context)?;
                    write_npy(&path, &Array1::from_vec(outputs.clone()), Existing::Replace)?;
                    outputs
                }
            };
            let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            context.report(done, trials.len(), "networks");
            Ok(outputs)
        };
        trials.par_iter().map(one).collect()
    }
}

/// Outputs of an earlier run.
fn kept(path: &Path, length: usize) -> Option<Vec<f64>> {
    let source: Source = Source::new(path, None);
    let array = source.open().ok()?.read::<f64>().ok()?.into_dimensionality::<Ix1>().ok()?;
    (array.len() == length).then(|| array.to_vec())
}

/// What outputs depend on besides the trials: the data and the samples that are looked at.
pub(super) fn dependence(known: &Classified, test: &str, classes: &[usize]) -> Result<String, Error> {
    let labels = known.samples.labels_fingerprint().unwrap_or_default();
    Ok(format!("{} {labels} {test} {classes:?}", known.samples.fingerprint()?))
}
