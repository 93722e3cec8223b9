//! The loop over epochs: shuffle, step, measure, save.
//!
//! The order of the samples depends on seed and epoch, and the learning rate on the step. An epoch therefore needs only
//! the weights and the optimiser state of the one before. Both are in the state file, which is replaced atomically
//! after every epoch. A resumed run ends with the same bits as one that was never interrupted, also where it stops at a
//! loss.

use super::augment::Place;
use super::batch::Loaded;
use super::files;
use super::fingerprint::Fingerprint;
use super::state::{self, Saved};
use super::{Epoch, Metrics, Optimiser, Trainer, TrainingSamples, TrainingSettings};
use crate::element::Element;
use crate::error::{NetError, Result};
use mercer_data::{Labels, shuffled};
use mercer_run::Context;
use std::path::PathBuf;

/// A run of training.
///
/// ```
/// use mercer_data::{Dataset, Labels, synthetic};
/// use mercer_net::arch::Mlp;
/// use mercer_net::train::{TrainingLoop, TrainingSettings, Loss, Optimiser, TrainingSamples, Schedule, Trainer};
///
/// let (points, classes) = synthetic::two_moons(200, 0.1, 0)?;
/// let (inputs, labels) = (Dataset::from_array("moons", points.into_dyn().view())?, Labels::Classes(classes));
/// let network = Mlp::new(2, &[16], 2).build(0)?;
/// let graph = network.declared_graph()?;
/// let weights = network.weights::<f32>(&graph);
/// let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
/// let settings = TrainingSettings { batch_size: Some(32), ..TrainingSettings::new(20, Schedule::constant(0.01)) };
/// let history = TrainingLoop::new(settings).run(&mut trainer, TrainingSamples::one(&inputs, &labels))?;
/// assert!(history.last().unwrap().training.accuracy.unwrap() > 0.8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TrainingLoop<'a> {
    settings: TrainingSettings,
    evaluation: Option<TrainingSamples<'a>>,
    folder: Option<PathBuf>,
    resume: bool,
    context: Option<&'a Context>,
    before_writing: Option<&'a dyn Fn() -> Result<()>>,
    on_epoch: Option<&'a dyn Fn(&Epoch)>,
}

impl<'a> TrainingLoop<'a> {
    /// Samples per pass when a set is evaluated. Results do not depend on it.
    pub const EVALUATION_ROWS: usize = 1024;

    /// A run that keeps everything in memory.
    pub fn new(settings: TrainingSettings) -> Self {
        let (evaluation, folder, context, before_writing, on_epoch) = (None, None, None, None, None);
        Self { settings, evaluation, folder, resume: false, context, before_writing, on_epoch }
    }

    /// Evaluates these samples after every epoch.
    pub fn evaluation(self, samples: TrainingSamples<'a>) -> Self {
        Self { evaluation: Some(samples), ..self }
    }

    /// Writes the state after every epoch, and checkpoints, into this folder.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Continues from the state in the folder, if there is one. Without this, an existing state is an error.
    pub fn resume(self, resume: bool) -> Self {
        Self { resume, ..self }
    }

    /// Reports steps to this handle, and stops when it says so.
    pub fn context(self, context: &'a Context) -> Self {
        Self { context: Some(context), ..self }
    }

    /// Calls this once before anything is written to the folder, after a state to resume has been checked. If nothing
    /// is left to do, nothing is written.
    pub fn before_writing(self, call: &'a dyn Fn() -> Result<()>) -> Self {
        Self { before_writing: Some(call), ..self }
    }

    /// Calls this after every epoch that was trained.
    pub fn on_epoch(self, call: &'a dyn Fn(&Epoch)) -> Self {
        Self { on_epoch: Some(call), ..self }
    }

    /// Trains. The history has one entry per epoch, including those before a resumption.
    pub fn run<T>(&self, trainer: &mut Trainer<T>, samples: TrainingSamples<'_>) -> Result<Vec<Epoch>>
    where
        T: Element + mercer_data::DataScalar,
    {
        T::train(self, trainer, samples)
    }

    pub(crate) fn epochs<T>(&self, trainer: &mut Trainer<T>, samples: TrainingSamples<'_>) -> Result<Vec<Epoch>>
    where
        T: Element + mercer_data::DataScalar,
    {
        let n_samples = samples.n_samples();
        let batch = self.check(trainer, samples)?;
        let steps_per_epoch = n_samples.div_ceil(batch);
        let mut history = Vec::new();
        let mut fingerprint = None;
        if let Some(folder) = &self.folder {
            std::fs::create_dir_all(folder).map_err(|source| NetError::Io { path: folder.clone(), source })?;
            let made = Fingerprint::compute(trainer, &self.settings, batch, samples)?;
            let path = folder.join(files::STATE);
            if path.exists() {
                if !self.resume {
                    let text = format!("{} exists; resume from it or remove it", path.display());
                    return Err(NetError::Setting(text));
                }
                history = state::load(&path, trainer, &made, steps_per_epoch)?;
                self.check_end(&history)?;
            }
            if let Some(call) = self.before_writing.filter(|_| !self.settings.is_complete(&history)) {
                call()?;
            }
            if history.is_empty() {
                self.checkpoint(trainer, 0)?;
            }
            fingerprint = Some(made);
        }
        let silent = Context::new();
        let context = self.context.unwrap_or(&silent);
        let total = self.settings.epochs * steps_per_epoch;
        let TrainingSettings { seed, augmentation, .. } = self.settings;
        let (mut whole, mut changed) = (None, Vec::new());
        while !self.settings.is_complete(&history) {
            let epoch = history.len() + 1;
            // A single batch needs no shuffling and is read once.
            let order =
                if steps_per_epoch > 1 { shuffled(n_samples, seed, epoch as u64) } else { (0..n_samples).collect() };
            let (mut loss, mut correct, mut learning_rate) = (0.0, 0, 0.0);
            for step in 0..steps_per_epoch {
                if context.cancelled() {
                    return Err(NetError::Cancelled);
                }
                let rows = step * batch..((step + 1) * batch).min(n_samples);
                let (count, rows) = (rows.len(), &order[rows]);
                let loaded = match &whole {
                    Some(loaded) => loaded,
                    None if steps_per_epoch == 1 => whole.insert(Loaded::<T>::range(samples, 0..n_samples)?),
                    None => &Loaded::select(samples, rows)?,
                };
                let mut inputs = loaded.slices();
                if let ([images], [set], false) = (&loaded.inputs[..], samples.inputs, augmentation.is_none()) {
                    let place = Place { seed, epoch, rows, shape: set.sample_shape() };
                    augmentation.apply(place, images, &mut changed);
                    inputs = vec![&changed];
                }
                let done = (epoch - 1) * steps_per_epoch + step;
                learning_rate = self.settings.schedule.rate(done, steps_per_epoch, self.settings.epochs);
                let mean = trainer.step(&inputs, &loaded.targets(), count, learning_rate).map_err(|error| {
                    if let NetError::Diverged { loss, .. } = error {
                        return NetError::Diverged { epoch: Some(epoch), step: step + 1, loss };
                    }
                    error
                })?;
                loss += mean * count as f64;
                correct += trainer.correct();
                context.report(done + 1, total, &format!("steps (epoch {epoch}, loss {mean:.4})"));
            }
            let classes = matches!(samples.labels, Labels::Classes(_));
            let training = Metrics {
                loss: loss / n_samples as f64,
                accuracy: classes.then_some(correct as f64 / n_samples as f64),
            };
            let evaluation = self.evaluation.map(|samples| evaluate(trainer, samples)).transpose()?;
            // A state that is no longer finite must not replace the last good one.
            let statistics = trainer.weights().statistics(trainer.graph()).flatten();
            let mut numbers = trainer.weights().parameters.iter().flatten().chain(statistics);
            let finite = numbers.all(|x| mercer_linalg::Scalar::wide(*x).is_finite());
            let loss = evaluation.map_or(training.loss, |metrics| metrics.loss);
            if !finite || !loss.is_finite() {
                let loss = if loss.is_finite() { f64::NAN } else { loss };
                return Err(NetError::Diverged { epoch: Some(epoch), step: steps_per_epoch, loss });
            }
            history.push(Epoch { epoch, learning_rate, training, evaluation });
            self.checkpoint(trainer, epoch)?;
            if let (Some(folder), Some(fingerprint)) = (&self.folder, &fingerprint) {
                let saved = Saved { trainer, history: &history, fingerprint };
                state::save(&folder.join(files::STATE), &saved)?;
            }
            if let (Some(call), Some(epoch)) = (self.on_epoch, history.last()) {
                call(epoch);
            }
        }
        Ok(history)
    }

    /// Checks the settings and the data; returns the batch size.
    ///
    /// # Errors
    /// [`NetError::Setting`] names the invalid setting.
    pub fn check<T: Element>(&self, trainer: &Trainer<T>, samples: TrainingSamples<'_>) -> Result<usize> {
        self.settings.check()?;
        self.settings.augmentation.check(samples.inputs)?;
        let n_samples = samples.n_samples();
        let refuse = |text: String| Err(NetError::Setting(text));
        if n_samples == 0 {
            return refuse(format!("{} has no samples", samples.place()));
        }
        let batch = self.settings.batch_size.unwrap_or(n_samples).min(n_samples);
        if matches!(trainer.optimiser(), Optimiser::Gd { .. }) && batch < n_samples {
            return refuse(format!("gd takes the whole set of {n_samples} samples at once; use sgd for batches"));
        }
        let last = n_samples - (n_samples - 1) / batch * batch;
        if last < trainer.fewest_samples() {
            return refuse(format!(
                "batch_size = {batch}: the last batch of {n_samples} samples has {last}, and batch normalisation needs at \
                 least {}; use another batch size",
                trainer.fewest_samples()
            ));
        }
        if !self.settings.checkpoints.is_empty() && self.folder.is_none() {
            return refuse("checkpoints need a folder".into());
        }
        for set in [Some(samples), self.evaluation].into_iter().flatten() {
            let (inputs, labels) = (set.n_samples(), set.labels.n_samples());
            if inputs != labels {
                return refuse(format!("{} has {inputs} samples and {labels} labels", set.place()));
            }
        }
        Ok(batch)
    }

    /// Refuses a state beyond the epoch where the run stops now.
    fn check_end(&self, history: &[Epoch]) -> Result<()> {
        match self.settings.stopped_after(history).filter(|&epoch| epoch < history.len()) {
            None => Ok(()),
            Some(epoch) => Err(NetError::Setting(format!(
                "stop_loss: the loss was below it after epoch {epoch}, but the saved state is that of epoch {}; use a \
                 smaller one, or start again",
                history.len()
            ))),
        }
    }

    fn checkpoint<T: Element>(&self, trainer: &Trainer<T>, epoch: usize) -> Result<()> {
        match &self.folder {
            Some(folder) if self.settings.checkpoints.contains(&epoch) => {
                let path = folder.join(files::checkpoint(epoch));
                state::save_weights(&path, trainer.graph(), trainer.weights())
            }
            _ => Ok(()),
        }
    }
}

/// Loss and accuracy on a set, a block at a time.
fn evaluate<T>(trainer: &mut Trainer<T>, samples: TrainingSamples<'_>) -> Result<Metrics>
where
    T: Element + mercer_data::DataScalar,
{
    let n_samples = samples.n_samples();
    let (mut loss, mut correct) = (0.0, 0);
    for start in (0..n_samples).step_by(TrainingLoop::EVALUATION_ROWS) {
        let rows = start..(start + TrainingLoop::EVALUATION_ROWS).min(n_samples);
        let loaded = Loaded::<T>::range(samples, rows.clone())?;
        let metrics = trainer.evaluate(&loaded.slices(), &loaded.targets(), rows.len())?;
        loss += metrics.loss * rows.len() as f64;
        correct += trainer.correct();
    }
    let accuracy = matches!(samples.labels, Labels::Classes(_)).then_some(correct as f64 / n_samples.max(1) as f64);
    Ok(Metrics { loss: loss / n_samples.max(1) as f64, accuracy })
}
