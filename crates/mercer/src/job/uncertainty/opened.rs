//! The job with its network and samples opened.

use super::conformal::{Divided, INTERVALS, INTERVALS_ARRAY, SETS, SETS_ARRAY};
use super::labels::{labels_setting, same_classes};
use super::work::Work;
use super::{PosteriorMethod, PriorChoice, UncertaintyFindings, UncertaintyJob, UncertaintyPlan};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::{Destination, Opened, Outcome, Stopwatch};
use crate::spec::{DataRef, Opening, Precision, Samples, saved_network};
use crate::text::{bytes, grouped, suggested};
use mercer_data::Labels;
use mercer_kernel::{KernelError, Real};
use mercer_learn::LearnError;
use mercer_learn::laplace::{KIND, LaplaceSettings, Likelihood, PosteriorNeeds};
use mercer_net::Network;
use mercer_net::network::SavedNetwork;
use mercer_run::{Context, resident_memory};
use mercer_spectral::{Landmarks, Nystrom};

/// The files written beside the findings and the posterior.
const FILES: [&str; 17] = [
    "probabilities.npy",
    "map_probabilities.npy",
    "scaled_probabilities.npy",
    "laplace_probabilities.npy",
    "ood_probabilities.npy",
    "ood_map_probabilities.npy",
    "ood_scaled_probabilities.npy",
    "ood_laplace_probabilities.npy",
    "mean.npy",
    "variance.npy",
    "reliability.svg",
    "entropy.svg",
    "deviation.svg",
    SETS,
    SETS_ARRAY,
    INTERVALS,
    INTERVALS_ARRAY,
];

/// The numbers per predicted sample and output that are in memory at once.
const PREDICTED: usize = 10;

/// What saved functions take while they are evaluated: the block of a basis, and its network.
const FUNCTION_BYTES: usize = 128 << 20;

/// A job with everything opened.
#[derive(Debug)]
pub struct OpenedUncertainty {
    pub(super) job: UncertaintyJob,
    pub(super) network: Network,
    pub(super) saved: SavedNetwork,
    /// The fingerprint of the network and its graph.
    pub(super) fingerprint: String,
    pub(super) parts: Parts,
    pub(super) settings: LaplaceSettings,
    pub(super) folder: Option<ResultFolder>,
    pub(super) watch: Stopwatch,
    plan: UncertaintyPlan,
}

/// All samples, with labels in one numbering.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) train: Samples,
    pub(super) known: Labels,
    pub(super) test: Samples,
    pub(super) ood: Option<Samples>,
    pub(super) validation: Option<Samples>,
    /// What the validation samples are for.
    pub(super) divided: Divided,
}

impl OpenedUncertainty {
    /// The destination of the results, checked; none for a plan.
    pub(super) fn folder(destination: &Destination) -> Result<Option<ResultFolder>, Error> {
        if destination.dry_run {
            return Ok(None);
        }
        ResultFolder::create(destination, KIND, &FILES).map(Some)
    }

    pub(super) fn open(
        job: &UncertaintyJob,
        network: Network,
        folder: Option<ResultFolder>,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        match job.precision {
            Precision::F32 => Self::open_as::<f32>(job, network, folder, watch, opening),
            Precision::F64 => Self::open_as::<f64>(job, network, folder, watch, opening),
        }
    }

    fn open_as<T: Real>(
        job: &UncertaintyJob,
        network: Network,
        folder: Option<ResultFolder>,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let parts = Parts::open(job, &network, opening)?;
        let likelihood = match Likelihood::for_labels(&parts.known) {
            Likelihood::Gaussian { .. } => Likelihood::Gaussian { noise: job.noise.start() },
            classes => classes,
        };
        let (job, auto) = job.decided::<T>(&network, &parts, likelihood, opening.context)?;
        let settings = job.settings(likelihood, parts.train.n_samples)?;
        let failure = |error: LearnError| job.failure(error);
        settings.check_samples(parts.train.n_samples).map_err(failure)?;
        let needs = job.needs::<T>(&network, &parts, &settings)?;
        job.check_memory(&needs, opening.context)?;
        let plan = UncertaintyPlan {
            method: job.method.name(),
            precision: job.precision,
            n_train: parts.train.n_samples,
            train_size: job.train_size,
            n_test: parts.test.n_samples,
            needs,
            auto,
        };
        let shapes = parts.train.shapes();
        let fingerprint = |network: &Network| -> Result<String, Error> {
            let graph = network.graph(&shapes).map_err(|error| job.failure(error.into()))?;
            Ok(network.weights::<T>(&graph).fingerprint(&graph))
        };
        let own = fingerprint(&network)?;
        let saved = match &folder {
            Some(_) => saved_network(&job.net, &job.parameters, &network)?,
            None => SavedNetwork::default(),
        };
        // Reported now, not at prediction time.
        if folder.is_some() && fingerprint(&saved.open()?)? != own {
            let text = format!("{}: the network cannot be saved so that it opens as the same one", job.net.display());
            return Err(Error::with_code("other", text).hint("export it into one ONNX file, with these parameters"));
        }
        Ok(Self { job, network, saved, fingerprint: own, parts, settings, folder, watch, plan })
    }
}

impl Opened for OpenedUncertainty {
    type Plan = UncertaintyPlan;
    type Findings = UncertaintyFindings;

    fn plan(&self) -> &UncertaintyPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<UncertaintyFindings>, Error> {
        let again = || "nothing was written; the same command starts again".to_owned();
        let outcome = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        outcome.map_err(|error| error.when_interrupted(again))
    }
}

impl Parts {
    fn open(job: &UncertaintyJob, network: &Network, opening: Opening<'_>) -> Result<Self, Error> {
        let open = |setting: &str, data: &[DataRef], labels: Option<&DataRef>, train: Option<&Samples>| {
            let options = job.train.reading(data, labels);
            let options = train.map_or(options.clone(), |train| options.learnt_from(train));
            let like = train.map_or(&[][..], |train| &train.columns);
            let samples = Samples::given(setting, data, &options, network, like, opening)?;
            samples.in_order_of(&labels_setting(setting), network, job.node.as_deref(), &options)
        };
        let train = open("data", &job.train.data, job.train.labels.as_ref(), None)?;
        train.hint(Some(network), opening)?;
        let like = Some(&train);
        let mut test = open("test", &job.test, job.test_labels.as_ref(), like)?;
        let ood = match &job.ood[..] {
            [] => None,
            data => Some(open("ood", data, None, like)?),
        };
        let mut validation = match &job.validation[..] {
            [] => None,
            data => Some(open("validation", data, job.validation_labels.as_ref(), like)?),
        };
        let Some(known) = train.labels.clone() else {
            return Err(Error::new("‹labels›: there are no labels in it"));
        };
        let renamed = |setting: &str, samples: &mut Samples| -> Result<(), Error> {
            if let Some(labels) = &samples.labels {
                samples.labels = Some(same_classes(setting, labels, &known)?);
            }
            Ok(())
        };
        renamed("test-labels", &mut test)?;
        validation.as_mut().map_or(Ok(()), |samples| renamed("validation-labels", samples))?;
        let is_choice = matches!(known, Labels::Classes(_)) || job.prior == PriorChoice::Validation;
        let divided = Divided::new(validation.as_ref(), job.conformal, is_choice, job.seed)?;
        let parts = Self { train, known, test, ood, validation, divided };
        parts.check_shapes()?;
        Ok(parts)
    }

    fn check_shapes(&self) -> Result<(), Error> {
        let shapes = self.train.shapes();
        let others = [("test", Some(&self.test)), ("ood", self.ood.as_ref()), ("validation", self.validation.as_ref())];
        for (setting, samples) in others {
            if let Some(found) = samples.map(Samples::shapes).filter(|found| *found != shapes) {
                let text = format!("‹{setting}› has samples of shape {found:?}, ‹data› of {shapes:?}");
                return Err(Error::new(text).hint("all must fit the network in the same way"));
            }
        }
        Ok(())
    }

    /// The maximum number of samples whose predictions are in memory at the same time.
    fn n_predicted(&self) -> usize {
        let count = |samples: &Option<Samples>| samples.as_ref().map_or(0, |samples| samples.n_samples);
        (self.test.n_samples + count(&self.ood)).max(count(&self.validation))
    }
}

impl UncertaintyJob {
    /// The peak memory of the work: matrices of the posterior, eigenfunctions and their landmarks, covariances of
    /// predictions.
    pub(super) fn needs<T: Real>(
        &self,
        network: &Network,
        parts: &Parts,
        settings: &LaplaceSettings,
    ) -> Result<PosteriorNeeds, Error> {
        let failure = |error: LearnError| self.failure(error);
        let shapes = parts.train.shapes();
        let graph = network.graph(&shapes).map_err(|error| self.failure(error.into()))?;
        let n_outputs = settings.n_outputs(&graph).map_err(failure)?;
        let product = |numbers: &[usize]| numbers.iter().copied().fold(1, usize::saturating_mul);
        let (features, functions, kept) = match self.method {
            PosteriorMethod::Eigen { components, .. } if !self.from.is_empty() => {
                let sizes = (n_outputs, components);
                (Some(self.saved_features::<T>(network, &parts.train, sizes)?), 0, FUNCTION_BYTES)
            }
            PosteriorMethod::Eigen { components, landmarks, .. } => {
                let count = landmarks.clamp(1, parts.train.n_samples);
                let sizes = (parts.train.n_samples, n_outputs, components);
                let sample: usize = shapes.iter().map(|shape| product(shape)).sum();
                let kept = product(&[count, sample + n_outputs * components, size_of::<T>()]);
                (Some(product(&[components, n_outputs])), eigenfunctions(count, self.seed).needs(sizes).bytes, kept)
            }
            _ => (None, 0, 0),
        };
        let needs = PosteriorNeeds::estimate::<T>(network, &shapes, settings, features).map_err(failure)?;
        // Means, variances and the probabilities of every row, with copies while they are computed.
        let predictions = product(&[parts.n_predicted(), n_outputs, PREDICTED, size_of::<f64>()]);
        let own_bytes = needs.own_bytes.saturating_add(kept).saturating_add(predictions).max(functions);
        Ok(PosteriorNeeds { bytes: own_bytes.saturating_add(resident_memory()), own_bytes, ..needs })
    }

    fn check_memory(&self, needs: &PosteriorNeeds, context: &Context) -> Result<(), Error> {
        let allowed = context.memory();
        if needs.bytes <= allowed {
            return Ok(());
        }
        let side = grouped(needs.side);
        let matrix = if needs.side > 0 { format!(" with a matrix of side {side}") } else { String::new() };
        let (method, needed, allowed) = (self.method.name(), bytes(needs.bytes), bytes(allowed));
        let text = format!("‹method› {method}{matrix} takes {needed} in all, but {allowed} are allowed");
        let enough = suggested(needs.bytes);
        Err(Error::with_code("memory", text).hint(format!("{}; or ‹memory› {enough}", self.method.smaller())))
    }

    /// Library errors; those about the network name its file.
    pub(super) fn failure(&self, error: LearnError) -> Error {
        match error {
            LearnError::Network(error) => Error::of_network(&self.net, *error),
            LearnError::Kernel(error) => self.of_kernel(*error),
            other => other.into(),
        }
    }

    pub(super) fn of_kernel(&self, error: KernelError) -> Error {
        match error {
            KernelError::Network(error) => Error::of_network(&self.net, *error),
            KernelError::Data(_) | KernelError::Store(_) | KernelError::Cancelled | KernelError::Memory { .. } => {
                error.into()
            }
            other => {
                let text = format!("{}: {other}", self.net.display());
                Error::from(other).with_message(text)
            }
        }
    }
}

/// The solver for eigenfunctions, with this number of landmarks among the training samples.
pub(super) fn eigenfunctions(landmarks: usize, seed: u64) -> Nystrom {
    Nystrom::new(Landmarks::Uniform(landmarks)).seed(seed)
}
