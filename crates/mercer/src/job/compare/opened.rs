//! A comparison with everything opened.

use super::findings::CompareFindings;
use super::labels::{self, Known};
use super::memory::{self, Held};
use super::networks::{Course, Family, Member, Time};
use super::rows::NamedKernel;
use super::work::Work;
use super::{CompareJob, ComparePlan};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::{Destination, Opened, Outcome, Stopwatch};
use crate::spec::{KernelSpec, NetworkLogits, NetworkSource, Opening, Precision, Samples};
use mercer_data::folder::FolderKind;
use mercer_data::{Dataset, Source};
use mercer_kernel::Real;
use mercer_kernel::gram::KeptGram;
use mercer_run::Context;

/// The kind of folder that comparisons write.
pub(crate) const KIND: FolderKind = FolderKind { name: "compare", version: 1 };

/// The fewest samples of an alignment.
const FEWEST: usize = 4;

/// A comparison with everything opened.
#[derive(Debug)]
pub struct OpenedCompare {
    pub(super) job: CompareJob,
    pub(super) folder: Option<ResultFolder>,
    pub(super) files: Vec<KeptGram>,
    pub(super) kernels: Vec<NamedKernel>,
    pub(super) family: Family,
    pub(super) members: Vec<Member>,
    /// Samples of kernels, if there are kernels.
    pub(super) samples: Option<Samples>,
    pub(super) logits: Option<NetworkLogits>,
    pub(super) known: Option<Known>,
    plan: ComparePlan,
    pub(super) watch: Stopwatch,
}

/// A matrix to be compared.
struct Sized {
    name: String,
    rows: usize,
    per_sample: usize,
    held: Held,
}

impl OpenedCompare {
    pub(super) fn open(
        job: &CompareJob,
        destination: &Destination,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let folder = match (&destination.path, destination.dry_run) {
            (None, _) | (_, true) => None,
            (Some(_), false) => Some(ResultFolder::create(destination, KIND, &super::figures::NAMES)?),
        };
        let open = |name: &String| Ok(KeptGram::open(&name.parse::<Source>()?)?);
        let files = job.grams.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let family = Family::open(job)?;
        let members = family.members(job);
        let kernel = |text: &String| {
            let spec = KernelSpec {
                kernel: Some(text.clone()),
                net: job.net.clone(),
                arch: job.arch.clone(),
                ..KernelSpec::default()
            };
            NamedKernel::new(KernelSpec { parameters: job.parameters.clone(), seed: job.seed, ..spec })
        };
        let kernels = job.kernels.iter().map(kernel).collect::<Result<Vec<_>, Error>>()?;
        let mut own = Self {
            job: job.clone(),
            folder,
            files,
            kernels,
            family,
            members,
            samples: None,
            logits: None,
            known: None,
            plan: ComparePlan { n_samples: 0, n_test: 0, kernels: Vec::new(), n_networks: 0, bytes: 0 },
            watch,
        };
        let bytes = match job.precision {
            Precision::F32 => own.prepare::<f32>(opening)?,
            Precision::F64 => own.prepare::<f64>(opening)?,
        };
        own.plan.bytes = bytes;
        own.plan.n_networks = own.members.iter().map(|member| member.times.len()).sum();
        Ok(own)
    }

    /// Opens samples and networks, and counts memory.
    fn prepare<T: Real>(&mut self, opening: Opening<'_>) -> Result<usize, Error> {
        let mut sized = Vec::new();
        for kept in &self.files {
            let (rows, per_sample) = kept.square()?;
            let held = Held { rows, test_rows: 0, element: 0 };
            sized.push(Sized { name: kept.place().to_owned(), rows, per_sample, held });
        }
        let mut training = 0;
        let mut built = Vec::new();
        if !self.kernels.is_empty() {
            // The widest network takes the most memory.
            let widest =
                self.members.iter().max_by(|a, b| a.width.partial_cmp(&b.width).unwrap_or(std::cmp::Ordering::Equal));
            let widest = widest.ok_or_else(|| Error::new("there is no network"))?.clone();
            let source = self.family.network(&self.job, &widest, None)?;
            self.open_samples(&source, opening)?;
            self.check_checkpoints()?;
            let samples = self.samples.as_ref().ok_or_else(|| Error::new("‹data›: the samples are missing"))?;
            let n_outputs = self.logits.as_ref().map_or(1, NetworkLogits::n_outputs);
            for kernel in &self.kernels {
                let one = kernel.build::<T>(&source, &samples.shapes(), n_outputs)?;
                kernel.tell(&source, &samples.shapes(), opening.context)?;
                let per_sample = one.per_sample();
                let predicts = self.known.as_ref().is_some_and(|known| known.test.is_some());
                if predicts && per_sample > 1 && per_sample != n_outputs {
                    let text = format!(
                        "‹kernel› {}: it is of {per_sample} outputs, but the network has {n_outputs}",
                        kernel.name()
                    );
                    return Err(Error::new(text).hint("predictions need the kernel of all outputs: full"));
                }
                let rows = samples.n_samples.saturating_mul(per_sample);
                let held =
                    Held { rows, test_rows: self.plan.n_test.saturating_mul(per_sample), element: size_of::<T>() };
                sized.push(Sized { name: kernel.name(), rows, per_sample, held });
                built.push(one);
            }
            if self.job.trains()
                && let Some(labels) = &samples.labels
            {
                let course = Course::<T>::new(&self.job, (&source, self.job.seed), (&samples.inputs, labels))?;
                training = course.bytes()?;
            }
        }
        check_sizes(&sized)?;
        let held: Vec<Held> = sized.iter().map(|one| one.held).collect();
        let (bytes, left) = memory::check(&held, training, opening.context)?;
        if let Some(samples) = &self.samples {
            for one in &built {
                one.check(&samples.inputs, None, &left)?;
                if let Some(test) = self.test_inputs() {
                    one.check(test, Some(&samples.inputs), &left)?;
                }
            }
        }
        self.plan.n_samples = sized.first().map_or(0, |one| one.rows / one.per_sample.max(1));
        self.plan.kernels = sized.into_iter().map(|one| (one.name, one.rows)).collect();
        Ok(bytes)
    }

    fn open_samples(&mut self, source: &NetworkSource, opening: Opening<'_>) -> Result<(), Error> {
        let samples = labels::samples(&self.job, source, opening)?;
        if samples.n_samples < FEWEST {
            let text =
                format!("‹data› {}: {} samples are too few to compare kernels", samples.places(), samples.n_samples);
            return Err(Error::with_code("sample-count", text).hint(format!("at least {FEWEST} samples")));
        }
        if let (Some(network), Some(path)) = (source.network(), self.family.path()) {
            source.check_shapes(&samples.shapes(), path)?;
            let logits = NetworkLogits::find(network, &samples.shapes(), None, path, opening.context)?;
            self.known = Known::open(&self.job, &samples, (network, &logits), opening)?;
            self.logits = Some(logits);
        }
        self.plan.n_test =
            self.known.as_ref().and_then(|known| known.test.as_ref()).map_or(0, |test| test.samples.n_samples);
        self.samples = Some(samples);
        Ok(())
    }

    /// Opens every checkpoint once, so that one of another network is known before the work.
    fn check_checkpoints(&self) -> Result<(), Error> {
        for member in &self.members {
            for time in &member.times {
                if let Time::File(path) = time {
                    self.family.network(&self.job, member, Some(path))?;
                }
            }
        }
        Ok(())
    }

    /// The samples of predictions.
    pub(super) fn test_inputs(&self) -> Option<&[Dataset]> {
        self.known.as_ref()?.test.as_ref().map(|test| &test.samples.inputs[..])
    }
}

/// All matrices are of the same samples, and have one row per sample or as many as the others.
fn check_sizes(all: &[Sized]) -> Result<(), Error> {
    let Some(first) = all.first() else { return Ok(()) };
    let samples = |one: &Sized| one.rows / one.per_sample.max(1);
    for other in all {
        if samples(other) != samples(first) {
            let text =
                format!("{} is of {} samples, but {} is of {}", other.name, samples(other), first.name, samples(first));
            return Err(
                Error::with_code("sample-count", text).hint("all must be of the same samples, in the same order")
            );
        }
    }
    let valued = |one: &&Sized| one.per_sample > 1;
    if let Some(known) = all.iter().find(valued)
        && let Some(other) = all.iter().filter(valued).find(|other| other.per_sample != known.per_sample)
    {
        let text = format!(
            "{} has {} outputs per sample, but {} has {}",
            other.name, other.per_sample, known.name, known.per_sample
        );
        return Err(Error::new(text).hint("compare kernels of the same outputs"));
    }
    Ok(())
}

impl Opened for OpenedCompare {
    type Plan = ComparePlan;
    type Findings = CompareFindings;

    fn plan(&self) -> &ComparePlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<CompareFindings>, Error> {
        let run = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        run.map_err(Error::before_writing)
    }
}
