//! The networks whose kernels are compared: one, or several widths, seeds and checkpoints.

use super::CompareJob;
use crate::Error;
use crate::spec::{NetworkSource, ParameterSpec, load_weights, open_network, read_architecture};
use mercer_data::{Dataset, Labels};
use mercer_kernel::Real;
use mercer_net::arch::Architecture;
use mercer_net::train::{Trainer, TrainingSettings};
use mercer_net::train::{TrainingLoop, TrainingSamples, files};
use mercer_run::Context;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Where networks come from.
#[derive(Debug)]
pub(super) enum Family {
    /// Kernels without a network.
    None,
    /// A file, at some checkpoints.
    File(PathBuf),
    /// A description, at some widths.
    Described(PathBuf, Box<Architecture>),
}

/// A network of the family.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) width: Option<f64>,
    pub(super) seed: Option<u64>,
    /// Checkpoints of the user, or epochs of training, to look at; or the network as it is.
    pub(super) times: Vec<Time>,
}

/// A state of a network.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Time {
    /// As it is.
    Now,
    /// With the weights of a file.
    File(PathBuf),
    /// After so many epochs.
    Epoch(usize),
}

impl Family {
    pub(super) fn open(job: &CompareJob) -> Result<Self, Error> {
        Ok(match (&job.net, &job.arch) {
            (Some(path), _) => Self::File(path.clone()),
            (None, Some(path)) => Self::Described(path.clone(), Box::new(read_architecture(path)?)),
            (None, None) => Self::None,
        })
    }

    /// The file of the network or its description.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::File(path) | Self::Described(path, _) => Some(path),
        }
    }

    /// The networks, by width and seed.
    pub(super) fn members(&self, job: &CompareJob) -> Vec<Member> {
        let mut times: Vec<Time> = job.checkpoints.iter().cloned().map(Time::File).collect();
        let mut epochs = job.training.checkpoint_at.clone();
        epochs.sort_unstable();
        epochs.dedup();
        times.extend(epochs.into_iter().map(Time::Epoch));
        if times.is_empty() {
            times.push(Time::Now);
        }
        let Self::Described(..) = self else {
            return vec![Member { name: String::new(), width: None, seed: None, times }];
        };
        let widths = if job.widths.is_empty() { vec![1.0] } else { job.widths.clone() };
        let seeds = job.seeds.unwrap_or(1);
        let member = |width: f64, at: usize| {
            let seed = job.seed.wrapping_add(at as u64);
            let mut names = Vec::new();
            if !job.widths.is_empty() {
                names.push(format!("width × {width}"));
            }
            if seeds > 1 {
                names.push(format!("seed {seed}"));
            }
            Member { name: names.join(", "), width: Some(width), seed: Some(seed), times: times.clone() }
        };
        widths.iter().flat_map(|&width| (0..seeds).map(move |at| (width, at))).map(|(w, at)| member(w, at)).collect()
    }

    /// A network, with the weights of a file if there is one.
    pub(super) fn network(
        &self,
        job: &CompareJob,
        member: &Member,
        weights: Option<&Path>,
    ) -> Result<NetworkSource, Error> {
        let parameters = ParameterSpec { weights: weights.map(Path::to_owned), ..job.parameters.clone() };
        match self {
            Self::None => Ok(NetworkSource::Absent),
            Self::File(path) => Ok(NetworkSource::Trained(open_network(path, &parameters)?)),
            Self::Described(path, architecture) => {
                let about = |error| Error::of_network(path, error);
                let wide = match job.widths.is_empty() {
                    true => (**architecture).clone(),
                    false => architecture
                        .widened(member.width.unwrap_or(1.0))
                        .map_err(|error| Error::new(format!("‹widths›: {}: {error}", path.display())))?,
                };
                let seed = member.seed.unwrap_or(job.seed);
                let mut network = wide.build_within(seed, parameters.import_limit).map_err(about)?;
                load_weights(&parameters, &mut network)?;
                Ok(NetworkSource::Described(network, wide.initialisation()))
            }
        }
    }
}

/// The training of a member.
pub(super) struct Course<'a, T> {
    settings: TrainingSettings,
    trainer: Trainer<T>,
    samples: TrainingSamples<'a>,
}

impl<'a, T: Real> Course<'a, T> {
    /// Prepares the training, and checks its settings.
    pub(super) fn new(
        job: &CompareJob,
        (source, seed): (&NetworkSource, u64),
        (inputs, labels): (&'a [Dataset], &'a Labels),
    ) -> Result<Self, Error> {
        let network = source.network().ok_or_else(|| Error::new("there is no network to train"))?;
        let last = job.training.checkpoint_at.iter().copied().max().and_then(NonZeroUsize::new);
        let epochs = last.ok_or_else(|| Error::new("‹checkpoint-at›: there is no epoch to train for"))?;
        let how = job.training.completed(matches!(labels, Labels::Classes(_)));
        let how = crate::job::train::TrainingSpec { epochs, seed, checkpoint_every: None, stop_loss: None, ..how };
        let settings: TrainingSettings = how.settings();
        let graph = network.declared_graph()?;
        let weights = network.weights::<T>(&graph);
        let trainer = Trainer::new(graph, weights, how.loss(), how.optimiser())?;
        let course = Self { settings, trainer, samples: TrainingSamples { inputs, labels } };
        course.bytes()?;
        Ok(course)
    }

    /// Peak memory; an error for settings that do not suit the samples.
    pub(super) fn bytes(&self) -> Result<usize, Error> {
        // The folder of the checkpoints is made when they are written.
        let settings = TrainingSettings { checkpoints: Vec::new(), ..self.settings.clone() };
        let batch = TrainingLoop::new(settings).check(&self.trainer, self.samples)?;
        Ok(self.trainer.bytes(batch))
    }

    /// Trains, and writes the weights after the epochs of the job into a folder.
    pub(super) fn run(mut self, folder: &Path, context: &'a Context) -> Result<(), Error> {
        let training = TrainingLoop::new(self.settings.clone()).folder(folder).context(context);
        training.run(&mut self.trainer, self.samples)?;
        Ok(())
    }
}

/// The weights after an epoch.
pub(super) fn checkpoint(folder: &Path, epoch: usize) -> PathBuf {
    folder.join(files::checkpoint(epoch))
}
