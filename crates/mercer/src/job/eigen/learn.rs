//! Functions learnt by networks.

use super::results::Found;
use super::{EigenJob, EigenMethod, LearnSpec, Task};
use crate::Error;
use crate::spec::{ParameterSpec, open_network, read_architecture};
use mercer_data::Dataset;
use mercer_kernel::{Kernel, Real};
use mercer_net::arch::{Activation, Architecture, Cnn, CnnLayer, Mlp};
use mercer_net::train::{Decay, Schedule};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use mercer_spectral::learnt::{
    Batches, Coupling, Draws, Learn, LearningMethod, LearningSettings, Learnt, Matrices, PerBatch, side_by_side,
};
use mercer_spectral::{Eigenfunctions, gram_matrix};
use std::sync::Arc;

/// The rows of the largest Gram matrix to keep: 256 MiB in single precision.
const LARGEST_MATRIX: usize = 8192;

/// Networks that will learn functions of some samples.
pub(super) struct Learning {
    network: Network,
    spec: LearnSpec,
    samples: usize,
    /// Rows of the kernel's matrix for a sample.
    per_sample: usize,
}

impl Learning {
    /// The networks of a job. Rejects functions that cannot be learnt, and notes those that cannot be learnt well.
    pub(super) fn new(job: &EigenJob, data: &[Dataset], per_sample: usize, context: &Context) -> Result<Self, Error> {
        let Some(spec) = job.method.learning() else {
            return Err(Error::new(format!("the method {} does not learn", job.method.name())));
        };
        let [samples] = data else {
            return Err(
                Error::new("functions are learnt for one input").hint("the method nystrom takes several inputs")
            );
        };
        let (rows, functions) = (samples.n_samples() * per_sample, job.k.saturating_add(spec.extra));
        if functions > rows {
            let text = format!("cannot learn {functions} functions from {rows} rows: there are at most {rows}");
            return Err(Error::new(text).hint("a smaller ‹k› or ‹extra›"));
        }
        let sizes = Sizes { functions, per_sample, shape: samples.sample_shape() };
        let network = network(&job.method, spec, sizes, job.seed)?;
        // NeuralEF makes its functions orthogonal on every batch, so there can be at most as many functions as rows.
        let rows = spec.batch_of(samples.n_samples()) * per_sample;
        if job.method.objective() == LearningMethod::NeuralEf && functions > rows {
            context.note(&format!(
                "{functions} functions cannot be orthogonal on batches of {rows} rows; use a larger ‹batch›, or ‹objective› joint"
            ));
        }
        Ok(Self { network, spec: spec.clone(), samples: samples.n_samples(), per_sample })
    }

    /// Whether to compute the kernel's matrix once, or the kernel of every batch.
    pub(super) fn makes_matrix(&self) -> bool {
        self.samples * self.per_sample <= LARGEST_MATRIX
    }

    /// Samples of a step.
    pub(super) fn batch(&self) -> usize {
        self.spec.batch_of(self.samples)
    }

    /// Functions of a kernel.
    pub(super) fn of_kernel<T: Real>(
        self,
        kernel: Arc<dyn Kernel<T>>,
        data: &[Dataset],
        task: &Task<'_>,
    ) -> Result<Found<T>, Error> {
        let mut coupling: Box<dyn Coupling<T>> = match self.makes_matrix() {
            true => Box::new(Matrices::new(gram_matrix(&*kernel, data, task.context)?, self.per_sample)?),
            false => Box::new(PerBatch::new(kernel, data)?),
        };
        self.of_coupling(&mut *coupling, data, task)
    }

    /// Functions of a kernel given by its values between samples.
    pub(super) fn of_coupling<T: Real>(
        self,
        coupling: &mut dyn Coupling<T>,
        data: &[Dataset],
        task: &Task<'_>,
    ) -> Result<Found<T>, Error> {
        let mut batches = Batches::new(data, coupling, self.batch(), task.job.seed, task.context)?;
        self.learnt(&mut batches, task)
    }

    /// Trains the networks.
    pub(super) fn learnt<T: Real>(self, draws: &mut dyn Draws<T>, task: &Task<'_>) -> Result<Found<T>, Error> {
        let Task { job, place, context, .. } = task;
        let Self { network, spec, .. } = self;
        let mut settings = LearningSettings::new(job.method.objective()).components(job.k).steps(spec.iterations);
        if matches!(job.method, EigenMethod::Contrastive { .. }) {
            settings.schedule.decay = Decay::Cosine { floor: 0.0 };
        }
        settings.schedule = Schedule { learning_rate: spec.learning_rate, ..settings.schedule };
        settings.keep = spec.keep;
        settings.checkpoint = spec.checkpoint;
        let learn = Learn::new(settings).folder(place.path()).resume(place.resumes()).context(context);
        let Learnt { before, after, .. } = learn.run(network, draws)?;
        // There is one kernel.
        let first = |all: Vec<Eigenfunctions<T>>| all.into_iter().next();
        let functions = first(after).ok_or_else(|| Error::new("no function was learnt"))?;
        let before = first(before).map(|before| before.truncated(job.k));
        Ok(Found { before, ..Found::plain(functions) })
    }
}

/// The required size of the networks.
struct Sizes<'a> {
    functions: usize,
    per_sample: usize,
    shape: &'a [usize],
}

fn architecture(
    method: &EigenMethod,
    spec: &LearnSpec,
    shape: &[usize],
    outputs: usize,
) -> Result<Architecture, Error> {
    match (&spec.functions, shape) {
        (Some(path), _) => read_architecture(path),
        (None, &[_, height, width]) if method.views().is_some() && height.min(width) >= 4 => {
            let pool = || CnnLayer::max_pool(2);
            let layers = [CnnLayer::conv(16, 3), pool(), CnnLayer::conv(32, 3), pool(), CnnLayer::dense(128)];
            Ok(Architecture::Cnn(Cnn::new(shape, &layers, outputs)))
        }
        (None, _) => {
            let mlp = Mlp::new(1, &[32, 32], outputs).activation(Activation::SinCos);
            Ok(Architecture::Mlp(Mlp { inputs: shape.to_vec(), ..mlp }))
        }
    }
}

/// One network per function, or one for all.
fn network(method: &EigenMethod, spec: &LearnSpec, sizes: Sizes<'_>, seed: u64) -> Result<Network, Error> {
    let Sizes { functions: k, per_sample, shape } = sizes;
    let shared = method.shares();
    let each = if shared { k * per_sample } else { per_sample };
    let place = spec.functions.as_ref().map_or("the default network".to_owned(), |path| path.display().to_string());
    let about = |error: NetError| Error::new(format!("{place}: {error}"));
    let model = spec.functions.as_ref().filter(|path| path.extension().is_some_and(|name| name == "onnx"));
    let networks = match model {
        Some(_) if !shared => {
            return Err(Error::new(format!(
                "{place}: {k} networks with equal initial weights would learn the same function"
            ))
            .hint("describe the network in TOML, or use the method shared for a model with k outputs"));
        }
        Some(path) => vec![open_network(path, &ParameterSpec::default())?],
        None => {
            let architecture = architecture(method, spec, shape, each)?;
            let build = |j: usize| architecture.build(seed.wrapping_add(j as u64));
            (0..if shared { 1 } else { k }).map(build).collect::<Result<Vec<_>, _>>().map_err(about)?
        }
    };
    let network = side_by_side(&networks).map_err(|error| Error::new(format!("{place}: {error}")))?;
    let graph = network.graph(&[shape.to_vec()]).map_err(about)?;
    let found = graph.outputs().first().map_or(0, |(_, id)| graph.value(*id).meta.numel());
    if found != k * per_sample {
        return Err(Error::new(format!("{place}: the network has {found} outputs, but {} are needed", k * per_sample))
            .hint(format!("outputs = {each}")));
    }
    Ok(network)
}
