//! Spectra with everything opened.

use super::findings::SpectrumFindings;
use super::work::Work;
use super::{SpectrumJob, SpectrumPlan};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::{Destination, Opened, Outcome, Stopwatch};
use crate::spec::{
    DataSpec, KernelSpec, Opening, ParameterSpec, Precision, Samples, WeightMatrix, open_network, weight_matrices,
};
use crate::text::{bytes as shown, suggested};
use mercer_data::Labels;
use mercer_data::folder::FolderKind;
use mercer_net::Network;
use mercer_run::{Context, resident_memory};
use ndarray::{Array2, Ix2};
use std::path::Path;

/// The kind of folder that spectra write.
pub(crate) const KIND: FolderKind = FolderKind { name: "spectrum", version: 1 };

/// Copies of a kernel's matrix: itself, that of the first checkpoint with its vectors, and the decomposition.
const COPIES: usize = 8;

/// Products with a kernel whose matrix does not fit, if the user names no number.
const PRODUCTS: usize = 300;

/// Code, stacks and small arrays that are touched for the first time.
const REST: usize = 32 << 20;

/// Spectra with everything opened.
#[derive(Debug)]
pub struct OpenedSpectrum {
    pub(super) job: SpectrumJob,
    pub(super) folder: Option<ResultFolder>,
    pub(super) network: Network,
    pub(super) weights: Vec<WeightMatrix>,
    pub(super) samples: Option<Samples>,
    /// Labels as columns: numbers, or one per class.
    pub(super) targets: Option<Array2<f64>>,
    /// Directions of the user, a row each.
    pub(super) directions: Option<Array2<f64>>,
    /// Products with kernels, if their matrices are not computed.
    pub(super) products: Option<usize>,
    plan: SpectrumPlan,
    pub(super) watch: Stopwatch,
}

impl OpenedSpectrum {
    pub(super) fn open(
        job: &SpectrumJob,
        destination: &Destination,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let folder = match (&destination.path, destination.dry_run) {
            (None, _) | (_, true) => None,
            (Some(_), false) => Some(ResultFolder::create(destination, KIND, &super::figures::NAMES)?),
        };
        let network = open_network(&job.net, &job.parameters)?;
        crate::job::remark(Some(&network), opening.context);
        for path in &job.checkpoints {
            checkpoint(job, Some(path))?;
        }
        let samples = match &job.data {
            Some(data) => Some(open_samples(data, &network, opening)?),
            None => None,
        };
        let graph = match &samples {
            Some(samples) => {
                Some(network.graph(&samples.shapes()).map_err(|error| Error::of_network(&job.net, error))?)
            }
            None => network.declared_graph().ok(),
        };
        if graph.is_none() {
            opening
                .context
                .note("the sizes of the inputs are not known without ‹data›: weights are first axis × all others");
        }
        let weights = weight_matrices(&network, graph.as_deref(), &job.layers);
        if weights.is_empty() && !job.layers.is_empty() {
            let names: Vec<&str> = network.parameters().iter().map(|own| own.name()).collect();
            let text = format!("‹layer› {}: no weight of {} has this name", job.layers.join(" "), job.net.display());
            let near = mercer_run::names::near(&job.layers[0], &names);
            let meant = near.first().map_or(String::new(), |meant| format!("did you mean {meant}? "));
            return Err(Error::new(text).hint(format!("{meant}`mercer info {} -v` lists all", job.net.display())));
        }
        let directions = match &job.direction {
            Some(reference) => Some(directions(reference, &weights, opening)?),
            None => None,
        };
        if let Some(samples) = &samples {
            KernelSpec { kernel: Some(job.kernel.clone()), net: Some(job.net.clone()), ..KernelSpec::default() }
                .check()?;
            if samples.n_samples < 2 {
                return Err(Error::with_code("sample-count", "‹data›: kernels need at least two samples"));
            }
        }
        let targets = match samples.as_ref().and_then(|samples| samples.labels.as_ref()) {
            Some(labels) => targets(labels)?,
            None => None,
        };
        let n_samples = samples.as_ref().map_or(0, |samples| samples.n_samples);
        let (products, bytes) = memory(job, n_samples, &weights, opening.context)?;
        let plan = SpectrumPlan {
            weights: weights.iter().map(|own| (own.name.clone(), [own.dim().0, own.dim().1])).collect(),
            n_checkpoints: job.checkpoints.len().max(1),
            n_samples,
            matrix_free: products.is_some(),
            bytes,
        };
        let job = job.clone();
        Ok(Self { job, folder, network, weights, samples, targets, directions, products, plan, watch })
    }
}

/// The network with the values of a checkpoint, or of its own file.
pub(super) fn checkpoint(job: &SpectrumJob, weights: Option<&Path>) -> Result<Network, Error> {
    let parameters = ParameterSpec { weights: weights.map(Path::to_owned), ..job.parameters.clone() };
    open_network(&job.net, &parameters)
}

fn open_samples(data: &DataSpec, network: &Network, opening: Opening<'_>) -> Result<Samples, Error> {
    let samples = Samples::open(data, network, opening)?;
    samples.hint(Some(network), opening)?;
    let n_labels = match &samples.labels {
        Some(Labels::Classes(classes)) => classes.indices().len(),
        Some(Labels::Targets(targets)) => targets.nrows(),
        None => samples.n_samples,
    };
    if n_labels != samples.n_samples {
        let text = format!("‹labels›: {n_labels} labels for {} samples", samples.n_samples);
        return Err(Error::with_code("sample-count", text).hint("samples and labels must be in the same order"));
    }
    Ok(samples)
}

/// Labels as columns.
fn targets(labels: &Labels) -> Result<Option<Array2<f64>>, Error> {
    match labels {
        Labels::Targets(targets) => Ok(Some(targets.clone())),
        // A single class says nothing.
        Labels::Classes(classes) if classes.n_classes() < 2 => Ok(None),
        Labels::Classes(classes) => Ok(Some(classes.one_hot()?)),
    }
}

/// Directions, a row each; some weight must have as many columns.
fn directions(
    reference: &crate::spec::DataRef,
    weights: &[WeightMatrix],
    opening: Opening<'_>,
) -> Result<Array2<f64>, Error> {
    let array = reference.open(opening.inputs)?.read::<f64>()?;
    let wrong = |shape: &[usize]| {
        Error::new(format!("‹direction› {reference}: a row per direction is needed, this has shape {shape:?}"))
    };
    let shape = array.shape().to_vec();
    let rows = match array.ndim() {
        1 => array.into_shape_with_order((1, shape[0])).map_err(|_| wrong(&shape))?,
        _ => array.into_dimensionality::<Ix2>().map_err(|_| wrong(&shape))?,
    };
    if rows.iter().any(|x| !x.is_finite()) || rows.nrows() == 0 {
        return Err(Error::new(format!("‹direction› {reference}: there is no direction, or one that is not finite")));
    }
    if !weights.iter().any(|own| own.dim().1 == rows.ncols()) {
        let text = format!("‹direction› {reference}: {} numbers, but no weight has as many inputs", rows.ncols());
        let sizes: Vec<String> = weights.iter().take(8).map(|own| format!("{}: {}", own.name, own.dim().1)).collect();
        return Err(Error::new(text).hint(format!("inputs of the weights are {}", sizes.join(", "))));
    }
    Ok(rows)
}

/// Products instead of matrices, if the user wants them or matrices do not fit; and the peak memory.
fn memory(
    job: &SpectrumJob,
    n_samples: usize,
    weights: &[WeightMatrix],
    context: &Context,
) -> Result<(Option<usize>, usize), Error> {
    let allowed = context.promised_memory().unwrap_or_else(|| context.memory().saturating_add(resident_memory()));
    let numbers = |count: usize| count.saturating_mul(size_of::<f64>());
    // The weight, that of the first checkpoint, their decompositions.
    let each = |own: &WeightMatrix| numbers(own.dim().0.saturating_mul(own.dim().1).saturating_mul(COPIES));
    let threads = rayon::current_num_threads();
    let largest = weights.iter().map(each).max().unwrap_or(0).saturating_mul(threads);
    let base = resident_memory().saturating_add(REST).saturating_add(largest);
    let matrices = numbers(n_samples.saturating_mul(n_samples)).saturating_mul(2 * COPIES);
    let products = match job.products {
        Some(products) => Some(products),
        None if base.saturating_add(matrices) > allowed => Some(PRODUCTS),
        None => None,
    };
    let needed = match products {
        // Lanczos keeps its vectors.
        Some(products) if n_samples > 0 => base.saturating_add(numbers(n_samples.saturating_mul(products))),
        _ => base.saturating_add(matrices),
    };
    if needed > allowed {
        let text = format!("the spectra need about {}, but {} may be used", shown(needed), shown(allowed));
        return Err(Error::with_code("memory", text)
            .hint(format!("‹memory› {}; or fewer weights with ‹layer›; or fewer samples", suggested(needed))));
    }
    if let (None, Some(products)) = (job.products, products) {
        context.note(&format!(
            "matrices of {n_samples} samples do not fit: traces and densities are estimated from {products} products"
        ));
    }
    Ok((products.filter(|_| n_samples > 0), needed))
}

impl Opened for OpenedSpectrum {
    type Plan = SpectrumPlan;
    type Findings = SpectrumFindings;

    fn plan(&self) -> &SpectrumPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<SpectrumFindings>, Error> {
        let run = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        run.map_err(Error::before_writing)
    }
}
