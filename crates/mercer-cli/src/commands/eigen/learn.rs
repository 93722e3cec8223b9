//! Options of the methods that learn networks.

use super::MethodName;
use super::results::Found;
use crate::console::Console;
use crate::failure::Failure;
use crate::options::{ParameterOptions, open_network, read_architecture};
use mercer::data::Dataset;
use mercer::kernel::{Kernel, Real};
use mercer::net::arch::{Activation, Architecture, Cnn, Layer, Mlp};
use mercer::net::train::{Decay, Schedule};
use mercer::net::{NetError, Network};
use mercer::run::Context;
use mercer::spectral::learnt::{
    Batches, Coupling, Draws, Learn, Learnt, Matrices, Method, Nesting, PerBatch, Settings, side_by_side,
};
use mercer::spectral::{Eigenfunctions, SpectralError, gram_matrix};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a Gram matrix that is kept: 256 MiB in single precision.
const LARGEST_MATRIX: usize = 8192;

/// How networks learn the functions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Learning (spin, neuralef, shared, contrastive)")]
pub(super) struct LearnOptions {
    /// The networks, described in TOML: one output, or k for shared and contrastive, which also go on with a model of k
    /// outputs [default: two layers of 32, sine and cosine; contrastive: two convolutions for images]
    #[arg(long, value_name = "FILE.toml|MODEL.onnx")]
    functions: Option<PathBuf>,

    /// What they learn: game is NeuralEF's; sequential and joint are nested low-rank approximations, unordered is one that is not
    /// nested (not for spin) [default: game; contrastive: joint]
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<Objective>,

    /// So many more functions than K are learnt, and left out after the finish, which then finds the others better [default: 0]
    #[arg(long, value_name = "N")]
    extra: Option<usize>,

    /// Steps of training [default: 2000]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Samples per step, or pairs [default: 256]
    #[arg(long, value_name = "B")]
    batch: Option<usize>,

    /// The learning rate of Adam [default: 1e-3; contrastive: 2e-3, falling along a cosine]
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,

    /// The share of moving averages that is kept at every step: of Σ and its Jacobian in spin, of values and scales in the others
    /// [default: 0.01 for spin, 0.9 for the others]
    #[arg(long, value_name = "SHARE")]
    keep: Option<f64>,

    /// Steps after which the state is written down [default: 500]
    #[arg(long, value_name = "N")]
    checkpoint: Option<usize>,

    /// Go on with a run that was interrupted
    #[arg(long)]
    resume: bool,
}

/// What functions are trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Objective {
    Game,
    Sequential,
    Joint,
    Unordered,
}

/// What is learnt, and from what.
pub(super) struct Task<'a> {
    pub(super) method: MethodName,
    pub(super) k: usize,
    /// Rows of the kernel's matrix for a sample.
    pub(super) per_sample: usize,
    pub(super) data: &'a [Dataset],
    pub(super) seed: u64,
}

impl Task<'_> {
    /// The samples, which are one input's.
    fn samples(&self) -> Result<&Dataset, Failure> {
        match self.data {
            [data] => Ok(data),
            _ => Err(Failure::new("functions are learnt for one input").hint("--method nystrom takes several")),
        }
    }

    /// The networks that learn.
    pub(super) fn network(&self, options: &LearnOptions) -> Result<Network, Failure> {
        let samples = self.samples()?;
        let (rows, functions) = (samples.n_samples() * self.per_sample, self.k.saturating_add(options.extra()));
        if functions > rows {
            let text = format!("{functions} functions are to be learnt from {rows} rows, which tell no more apart");
            return Err(Failure::new(text).hint("a smaller -k or --extra"));
        }
        options.network(self.method, functions, self.per_sample, samples.sample_shape(), self.seed)
    }

    /// NeuralEF's functions are to be orthogonal on every batch, which no more of them can be than it has rows.
    pub(super) fn advise(&self, options: &LearnOptions, console: &Console) -> Result<(), Failure> {
        let rows = options.batch(self.samples()?.n_samples()) * self.per_sample;
        let functions = self.k.saturating_add(options.extra());
        if options.objective(self.method) == Method::NeuralEf && functions > rows {
            console.note(&format!(
                "note: batches of {rows} rows cannot tell {functions} functions apart; a larger --batch, or --objective joint"
            ));
        }
        Ok(())
    }
}

/// How a run goes.
pub(super) struct Course<'a> {
    /// Functions that are wanted of those that are learnt.
    pub(super) k: usize,
    pub(super) method: Method,
    /// Whether the learning rate falls to zero.
    pub(super) decays: bool,
    /// For the state of the run.
    pub(super) folder: &'a Path,
    pub(super) context: &'a Context,
}

/// What went wrong, in the words of the command line.
pub(super) fn failure(error: SpectralError) -> Failure {
    match error {
        SpectralError::Cancelled => {
            Failure::interrupted("interrupted").hint("the same command with --resume goes on where this stopped")
        }
        SpectralError::Network(error) => (*error).into(),
        other => super::solve::failure(other),
    }
}

impl LearnOptions {
    pub(super) fn resume(&self) -> bool {
        self.resume
    }

    /// Flags that mean nothing for a method are refused instead of ignored.
    pub(super) fn check(&self, method: MethodName) -> Result<(), Failure> {
        let learns = method.is_learnt();
        if method == MethodName::Spin && self.objective.is_some() {
            return Err(Failure::new("--objective: SpIN has its own").hint("--method neuralef or shared"));
        }
        if let Some(keep) = self.keep.filter(|keep| !(0.0..1.0).contains(keep)) {
            return Err(Failure::new(format!("--keep {keep}: accepted are shares from 0 to below 1")));
        }
        let flags = [
            ("--functions", self.functions.is_some()),
            ("--objective", self.objective.is_some()),
            ("--extra", self.extra.is_some()),
            ("--iterations", self.iterations.is_some()),
            ("--batch", self.batch.is_some()),
            ("--learning-rate", self.learning_rate.is_some()),
            ("--keep", self.keep.is_some()),
            ("--checkpoint", self.checkpoint.is_some()),
            ("--resume", self.resume),
        ];
        match flags.iter().find(|(_, given)| *given && !learns) {
            Some((flag, _)) => Err(Failure::new(format!("{flag} is for methods that learn"))
                .hint("--method neuralef, shared, spin or contrastive")),
            None => Ok(()),
        }
    }

    /// Functions that are learnt beside those that are wanted.
    fn extra(&self) -> usize {
        self.extra.unwrap_or(0)
    }

    /// What the user wants, or what suits the method.
    pub(super) fn objective(&self, method: MethodName) -> Method {
        match (self.objective, method) {
            (_, MethodName::Spin) => Method::Spin,
            (Some(Objective::Sequential), _) => Method::Nested(Nesting::Sequential),
            (Some(Objective::Unordered), _) => Method::Nested(Nesting::None),
            // The order of the codes is learnt with them: on MNIST, after the finish, codes of four numbers are right for
            // 59 % of the images, those of the game for 43 %.
            (Some(Objective::Joint), _) | (None, MethodName::Contrastive) => Method::Nested(Nesting::Joint),
            (Some(Objective::Game), _) | (None, _) => Method::NeuralEf,
        }
    }

    /// Samples of a step.
    pub(super) fn batch(&self, samples: usize) -> usize {
        self.batch.unwrap_or(256).min(samples)
    }

    fn architecture(&self, method: MethodName, shape: &[usize], outputs: usize) -> Result<Architecture, Failure> {
        match (&self.functions, shape) {
            (Some(path), _) => read_architecture(path),
            (None, &[_, height, width]) if method == MethodName::Contrastive && height.min(width) >= 4 => {
                let pool = || Layer::max_pool(2);
                let layers = [Layer::conv(16, 3), pool(), Layer::conv(32, 3), pool(), Layer::dense(128)];
                Ok(Architecture::Cnn(Cnn::new(shape, &layers, outputs)))
            }
            (None, _) => {
                let mlp = Mlp::new(1, &[32, 32], outputs).activation(Activation::SinCos);
                Ok(Architecture::Mlp(Mlp { inputs: shape.to_vec(), ..mlp }))
            }
        }
    }

    /// One network per function, or one for all.
    pub(super) fn network(
        &self,
        method: MethodName,
        k: usize,
        per_sample: usize,
        shape: &[usize],
        seed: u64,
    ) -> Result<Network, Failure> {
        let shared = method.shares();
        let each = if shared { k * per_sample } else { per_sample };
        let place = self.functions.as_ref().map_or("the default network".to_owned(), |path| path.display().to_string());
        let about = |error: NetError| Failure::new(format!("{place}: {error}"));
        let model = self.functions.as_ref().filter(|path| path.extension().is_some_and(|name| name == "onnx"));
        let networks = match model {
            Some(_) if !shared => {
                return Err(Failure::new(format!(
                    "{place}: {k} networks that begin alike would learn the same function"
                ))
                .hint("describe the network in TOML, or --method shared for a model with k outputs"));
            }
            Some(path) => vec![open_network(path, &ParameterOptions::default())?],
            None => {
                let architecture = self.architecture(method, shape, each)?;
                let build = |j: usize| architecture.build(seed.wrapping_add(j as u64));
                (0..if shared { 1 } else { k }).map(build).collect::<Result<Vec<_>, _>>().map_err(about)?
            }
        };
        let network = side_by_side(&networks).map_err(|error| Failure::new(format!("{place}: {error}")))?;
        let graph = network.graph(&[shape.to_vec()]).map_err(about)?;
        let found = graph.outputs().first().map_or(0, |(_, id)| graph.value(*id).meta.numel());
        if found != k * per_sample {
            return Err(Failure::new(format!("{place}: {found} outputs in all, but {} are needed", k * per_sample))
                .hint(format!("outputs = {each}")));
        }
        Ok(network)
    }

    /// Functions of a kernel.
    pub(super) fn of_kernel<T: Real>(
        &self,
        kernel: Arc<dyn Kernel<T>>,
        network: Network,
        task: &Task<'_>,
        course: &Course<'_>,
    ) -> Result<Found<T>, Failure> {
        // A matrix that fits is made once; else the kernel of every batch is.
        let coupling = || -> Result<Box<dyn Coupling<T>>, SpectralError> {
            Ok(if task.data[0].n_samples() * task.per_sample <= LARGEST_MATRIX {
                let gram = gram_matrix(&*kernel, task.data, course.context)?;
                Box::new(Matrices::new(gram, task.per_sample)?)
            } else {
                Box::new(PerBatch::new(kernel, task.data)?)
            })
        };
        self.of_coupling(network, &mut *coupling().map_err(failure)?, task, course)
    }

    /// Functions of a kernel that is given by what it is between samples.
    pub(super) fn of_coupling<T: Real>(
        &self,
        network: Network,
        coupling: &mut dyn Coupling<T>,
        task: &Task<'_>,
        course: &Course<'_>,
    ) -> Result<Found<T>, Failure> {
        let size = self.batch(task.samples()?.n_samples());
        let mut batches = Batches::new(task.data, coupling, size, task.seed, course.context).map_err(failure)?;
        self.learnt(network, &mut batches, course)
    }

    /// Trains a network.
    pub(super) fn learnt<T: Real>(
        &self,
        network: Network,
        draws: &mut dyn Draws<T>,
        course: &Course<'_>,
    ) -> Result<Found<T>, Failure> {
        let mut settings = Settings::new(course.method).components(course.k).steps(self.iterations.unwrap_or(2000));
        if course.decays {
            settings.schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(2e-3) };
        }
        if let Some(rate) = self.learning_rate {
            settings.schedule.learning_rate = rate;
        }
        settings.keep = self.keep.unwrap_or(settings.keep);
        settings.checkpoint = self.checkpoint.unwrap_or(settings.checkpoint);
        let learn = Learn::new(settings).folder(course.folder).resume(self.resume).context(course.context);
        let Learnt { before, after, .. } = learn.run(network, draws).map_err(failure)?;
        // There is one kernel.
        let first = |all: Vec<Eigenfunctions<T>>| all.into_iter().next();
        let functions = first(after).ok_or_else(|| Failure::new("no function was learnt"))?;
        let before = first(before).map(|before| before.truncated(course.k));
        Ok(Found { before, ..Found::plain(functions) })
    }
}
