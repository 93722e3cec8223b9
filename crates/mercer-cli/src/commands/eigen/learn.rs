//! Options of the methods that learn networks.

use super::MethodName;
use crate::failure::{Failure, cannot_open};
use mercer::data::Dataset;
use mercer::kernel::{Kernel, Real};
use mercer::net::arch::{Activation, Architecture, Mlp};
use mercer::net::progress::Progress;
use mercer::net::train::Schedule;
use mercer::net::{NetError, Network};
use mercer::spectral::learnt::{Batches, Coupling, Learn, Learnt, Matrices, Method, PerBatch, Settings, side_by_side};
use mercer::spectral::{SpectralError, gram_matrix};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a Gram matrix that is kept: 256 MiB in single precision.
const LARGEST_MATRIX: usize = 8192;

/// How networks learn the functions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Learning (spin, neuralef, shared)")]
pub(super) struct LearnOptions {
    /// The networks, described in TOML: one output, or k for --method shared [default: two layers of 32, sine and cosine]
    #[arg(long, value_name = "FILE.toml")]
    functions: Option<PathBuf>,

    /// Steps of training [default: 2000]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Samples per step [default: 256]
    #[arg(long, value_name = "B")]
    batch: Option<usize>,

    /// The learning rate of Adam [default: 1e-3]
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,

    /// Go on with a run that was interrupted
    #[arg(long)]
    resume: bool,
}

/// What is learnt, and from what.
pub(super) struct Task<'a, T: Real> {
    pub(super) method: MethodName,
    pub(super) k: usize,
    pub(super) kernel: Arc<dyn Kernel<T>>,
    pub(super) data: &'a [Dataset],
    pub(super) seed: u64,
    /// For the state of the run.
    pub(super) folder: &'a Path,
}

impl LearnOptions {
    pub(super) fn resume(&self) -> bool {
        self.resume
    }

    /// Flags that mean nothing for a method are refused instead of ignored.
    pub(super) fn check(&self, learns: bool) -> Result<(), Failure> {
        let flags = [
            ("--functions", self.functions.is_some()),
            ("--iterations", self.iterations.is_some()),
            ("--batch", self.batch.is_some()),
            ("--learning-rate", self.learning_rate.is_some()),
            ("--resume", self.resume),
        ];
        match flags.iter().find(|(_, given)| *given && !learns) {
            Some((flag, _)) => {
                Err(Failure::new(format!("{flag} is for methods that learn")).hint("--method neuralef, shared or spin"))
            }
            None => Ok(()),
        }
    }

    fn architecture(&self, shape: &[usize], outputs: usize) -> Result<Architecture, Failure> {
        let Some(path) = &self.functions else {
            let mlp = Mlp::new(1, &[32, 32], outputs).activation(Activation::SinCos);
            return Ok(Architecture::Mlp(Mlp { inputs: shape.to_vec(), ..mlp }));
        };
        let text = std::fs::read_to_string(path).map_err(|error| cannot_open(path.display(), &error))?;
        Architecture::from_toml(&text).map_err(|error| {
            Failure::new(format!("{}: {error}", path.display())).hint("`mercer train --help` shows an example")
        })
    }

    /// One network per function, or one for all.
    fn network(
        &self,
        method: MethodName,
        k: usize,
        per_sample: usize,
        shape: &[usize],
        seed: u64,
    ) -> Result<Network, Failure> {
        let shared = method == MethodName::Shared;
        let outputs = if shared { k * per_sample } else { per_sample };
        let architecture = self.architecture(shape, outputs)?;
        let place = self.functions.as_ref().map_or("the default network".to_owned(), |path| path.display().to_string());
        let about = |error: NetError| Failure::new(format!("{place}: {error}"));
        let network = if shared {
            architecture.build(seed).map_err(about)?
        } else {
            let build = |j: usize| architecture.build(seed.wrapping_add(j as u64));
            let networks = (0..k).map(build).collect::<Result<Vec<_>, _>>().map_err(about)?;
            side_by_side(&networks).map_err(|error| Failure::new(format!("{place}: {error}")))?
        };
        let found = network.declared_graph().map_err(about)?;
        let found = found.outputs().first().map_or(0, |(_, id)| found.value(*id).meta.numel());
        if found != k * per_sample {
            let each = if shared { outputs } else { per_sample };
            return Err(Failure::new(format!("{place}: {found} outputs in all, but {} are needed", k * per_sample))
                .hint(format!("outputs = {each}")));
        }
        Ok(network)
    }

    pub(super) fn run<T: Real>(&self, task: &Task<'_, T>, progress: &dyn Progress) -> Result<Learnt<T>, Failure> {
        let [data] = task.data else {
            return Err(Failure::new("functions are learnt for one input").hint("--method nystrom takes several"));
        };
        let network = self.network(task.method, task.k, task.kernel.per_sample(), data.sample_shape(), task.seed)?;
        let method = if task.method == MethodName::Spin { Method::Spin } else { Method::NeuralEf };
        let settings = Settings::new(method).steps(self.iterations.unwrap_or(2000));
        let settings = match self.learning_rate {
            Some(rate) => settings.schedule(Schedule::constant(rate)),
            None => settings,
        };
        let learn = || -> Result<Learnt<T>, SpectralError> {
            let rows = data.n_samples() * task.kernel.per_sample();
            // A matrix that fits is made once; else the kernel of every batch is.
            let mut coupling: Box<dyn Coupling<T>> = if rows <= LARGEST_MATRIX {
                let gram = gram_matrix(&*task.kernel, task.data, progress)?;
                Box::new(Matrices::new(gram, task.kernel.per_sample())?)
            } else {
                Box::new(PerBatch::new(Arc::clone(&task.kernel), task.data)?)
            };
            let size = self.batch.unwrap_or(256).min(data.n_samples());
            let mut batches = Batches::new(task.data, &mut *coupling, size, task.seed)?;
            Learn::new(settings).folder(task.folder).resume(self.resume).progress(progress).run(network, &mut batches)
        };
        learn().map_err(|error| match error {
            SpectralError::Cancelled => {
                Failure::interrupted("interrupted").hint("the same command with --resume goes on where this stopped")
            }
            other => super::solve::failure(other),
        })
    }
}
