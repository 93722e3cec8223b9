//! A comparison of two sets with everything opened.

use super::findings::ShiftFindings;
use super::needs::{Reading, Sizes};
use super::saved::{KIND, Reference};
use super::work::Work;
use super::{ShiftJob, ShiftPlan, views};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::{Ids, classes_of};
use crate::job::{Destination, Opened, Outcome, Stopwatch};
use crate::spec::{Layers, NetworkLogits, NetworkSource, Opening, Precision, Samples, open_network, saved_network};
use mercer_data::{Classes, Dataset, Labels};
use mercer_kernel::Real;
use mercer_net::network::SavedNetwork;
use mercer_run::Context;
use std::path::PathBuf;

/// A comparison of two sets with everything opened.
#[derive(Debug)]
pub struct OpenedShift {
    /// The job; with a saved reference, its layers and kernels.
    pub(super) job: ShiftJob,
    /// The job as it was given.
    pub(super) given: ShiftJob,
    pub(super) folder: Option<ResultFolder>,
    pub(super) source: NetworkSource,
    pub(super) saved_network: Option<SavedNetwork>,
    /// The fingerprint of a saved reference.
    pub(super) from: Option<String>,
    pub(super) reference: Samples,
    pub(super) test: Option<Samples>,
    /// What the old samples are called, and the new ones.
    pub(super) ids: [Ids; 2],
    /// The classes of the old samples, and of the new ones if they are known.
    pub(super) classes: Option<Classes>,
    pub(super) test_classes: Option<Vec<usize>>,
    pub(super) logits: Option<NetworkLogits>,
    /// The layers, and behind them the logits.
    pub(super) layers: Option<Layers>,
    /// How many of them are looked at.
    pub(super) n_layers: usize,
    /// The position of the logits.
    pub(super) logits_at: Option<usize>,
    pub(super) reading: Reading,
    plan: ShiftPlan,
    pub(super) watch: Stopwatch,
}

/// Network and old samples.
struct Old {
    job: ShiftJob,
    source: NetworkSource,
    saved_network: Option<SavedNetwork>,
    samples: Samples,
    ids: Ids,
    from: Option<String>,
}

impl OpenedShift {
    pub(super) fn open(
        given: &ShiftJob,
        destination: &Destination,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let folder = match (&destination.path, destination.dry_run) {
            (None, _) | (_, true) => None,
            (Some(_), false) => Some(ResultFolder::create(destination, KIND, &super::files::NAMES)?),
        };
        let Old { job, source, saved_network, samples: reference, ids, from } = Old::open(given, opening)?;
        let shapes = reference.shapes();
        let test = match job.test.is_empty() {
            true => None,
            false => Some(test_samples(given, &job, &source, &reference, from.is_some(), opening)?),
        };
        let test_ids = match &test {
            Some(test) => Ids::of_samples("test-ids", given.test_ids.as_ref(), test, opening)?,
            None => Ids::default(),
        };
        let path: PathBuf = job.net.clone().or_else(|| job.from.clone()).unwrap_or_default();
        let node = job.node.as_deref();
        let (mut layers, mut logits, mut classes, mut test_classes) = (None, None, None, None);
        let (mut n_layers, mut logits_at) = (0, None);
        if let Some(network) = source.network() {
            let mut chosen = Layers::choose(network, &shapes, &job.layers, &path)?;
            n_layers = chosen.count();
            if reference.labels.is_some() {
                let found = NetworkLogits::find(network, &shapes, node, &path, opening.context)?;
                let own = classes_of("labels", &reference, found.n_classes())?;
                test_classes = test.as_ref().map(|test| classes_of_test(test, &own)).transpose()?.flatten();
                logits_at = Some(chosen.include(found.value()));
                (logits, classes) = (Some(found), Some(own));
            } else if job.test_labels.is_some() {
                return Err(Error::new("‹test-labels›: the classes of the old samples are missing")
                    .hint("‹labels› FILE[:KEY], one per sample of ‹data›"));
            }
            layers = Some(chosen);
        } else if reference.labels.is_some() {
            opening.context.note("‹labels› are not used: without ‹net› there are no decisions to compare them with");
        }
        let sizes = match job.precision {
            Precision::F32 => sizes::<f32>(&job, (&source, &shapes), layers.as_ref(), n_layers)?,
            Precision::F64 => sizes::<f64>(&job, (&source, &shapes), layers.as_ref(), n_layers)?,
        };
        let n_test = test.as_ref().map_or(0, |test| test.n_samples);
        let n_rows = reference.n_samples + n_test;
        let scores = classes.as_ref().map_or(0, |_| n_rows.saturating_mul(24));
        let reading =
            Sizes { n_rows, fixed: sizes.1.fixed.saturating_add(scores), ..sizes.1 }.reading(opening.context)?;
        let plan = ShiftPlan {
            views: sizes.0,
            n_samples: reference.n_samples,
            n_test,
            block: reading.block,
            n_passes: if reading.held { 1 } else { 2 },
            bytes: reading.bytes,
        };
        Ok(Self {
            job,
            given: given.clone(),
            folder,
            source,
            saved_network,
            from,
            reference,
            test,
            ids: [ids, test_ids],
            classes,
            test_classes,
            logits,
            layers,
            n_layers,
            logits_at,
            reading,
            plan,
            watch,
        })
    }
}

impl Old {
    fn open(given: &ShiftJob, opening: Opening<'_>) -> Result<Self, Error> {
        if let Some(path) = &given.from {
            let Reference { network, saved_network, samples, ids, job, fingerprint } = Reference::open(path)?;
            let job = ShiftJob {
                net: None,
                from: given.from.clone(),
                test: given.test.clone(),
                test_labels: given.test_labels.clone(),
                test_ids: given.test_ids.clone(),
                permutations: given.permutations,
                level: given.level,
                keep: given.keep,
                ..job
            };
            let source = network.map_or(NetworkSource::Absent, NetworkSource::Trained);
            return Ok(Self { job, source, saved_network, samples, ids, from: Some(fingerprint) });
        }
        let (job, node) = (given.clone(), given.node.as_deref());
        let source = match &job.net {
            Some(path) => NetworkSource::Trained(open_network(path, &job.parameters)?),
            None => NetworkSource::Absent,
        };
        let used = job.ids.iter().chain(&job.reference.used).cloned().collect();
        let reading = crate::spec::DataSpec { used, ..job.reference.clone() };
        let mut samples = source.samples("data", &job.reference.data, &reading, &[], opening)?;
        let mut saved = None;
        if let (Some(network), Some(path)) = (source.network(), &job.net) {
            samples = samples.in_order_of("labels", network, node, &job.reference)?;
            samples.hint(Some(network), opening)?;
            saved = Some(saved_network(path, &job.parameters, network)?);
        }
        check_count("data", samples.n_samples)?;
        let ids = Ids::of_samples("ids", job.ids.as_ref(), &samples, opening)?;
        Ok(Self { job, source, saved_network: saved, samples, ids, from: None })
    }
}

/// A set needs two samples for an estimate without bias.
fn check_count(setting: &str, n_samples: usize) -> Result<(), Error> {
    if n_samples >= 2 {
        return Ok(());
    }
    let text = format!("‹{setting}›: {} cannot be compared with others", crate::text::count(n_samples, "sample"));
    Err(Error::with_code("sample-count", text).hint("at least two samples in each set, better a hundred"))
}

/// Opens the new samples.
fn test_samples(
    given: &ShiftJob,
    job: &ShiftJob,
    source: &NetworkSource,
    reference: &Samples,
    saved: bool,
    opening: Opening<'_>,
) -> Result<Samples, Error> {
    let asked = &given.reference;
    let classes = asked.classes.clone().or_else(|| job.reference.classes.clone());
    let options = asked.reading(&job.test, job.test_labels.as_ref());
    let used = job.test_ids.iter().cloned().collect();
    let options = crate::spec::DataSpec { classes, used, ..options };
    let options = if saved { options } else { options.learnt_from(reference) };
    let found = source.samples("test", &job.test, &options, &reference.columns, opening)?;
    let mut found = match saved {
        true => found.preprocessed_as(&asked.preprocess, Some(&reference.preprocess_note()?), opening)?,
        false => found,
    };
    if let Some(network) = source.network() {
        found = found.in_order_of("test-labels", network, job.node.as_deref(), &options)?;
    }
    check_count("test", found.n_samples)?;
    if found.shapes() != reference.shapes() {
        let text = format!(
            "‹test› {}: samples of shape {:?}, but those of ‹data› have {:?}",
            found.places(),
            found.shapes(),
            reference.shapes()
        );
        return Err(Error::new(text).hint("both sets need the same columns and the same preprocessing"));
    }
    Ok(found)
}

/// The classes of the new samples, in the order of the old ones.
fn classes_of_test(test: &Samples, own: &Classes) -> Result<Option<Vec<usize>>, Error> {
    let found = match &test.labels {
        None => return Ok(None),
        Some(Labels::Classes(found)) => found,
        Some(Labels::Targets(_)) => return Err(Error::new("‹test-labels›: one class per sample is needed")),
    };
    let found = found.with_names(own.names()).map_err(|error| Error::new(format!("‹test-labels›: {error}")))?;
    if found.indices().len() != test.n_samples {
        let text = format!("‹test-labels›: {} labels for {} samples", found.indices().len(), test.n_samples);
        return Err(Error::with_code("sample-count", text));
    }
    Ok(Some(found.indices().to_vec()))
}

/// The names and widths of all views, and the sizes that memory depends on.
#[allow(clippy::type_complexity, reason = "a list and sizes, used once")]
fn sizes<T: Real>(
    job: &ShiftJob,
    (source, shapes): (&NetworkSource, &[Vec<usize>]),
    layers: Option<&Layers>,
    n_layers: usize,
) -> Result<(Vec<(String, usize)>, Sizes), Error> {
    let mut names: Vec<(String, usize)> = match layers {
        Some(layers) => layers.names().into_iter().zip(layers.widths()).take(n_layers).collect(),
        None => vec![("data".to_owned(), shapes.iter().flatten().product())],
    };
    let mut raw = layers.map_or(names[0].1, |layers| layers.widths().into_iter().fold(0, usize::saturating_add));
    let mut fixed = layers.map_or(0, Layers::pass_bytes::<T>);
    for text in &job.kernels {
        let rows = views::kernel::<T>(text, (source, shapes), job)?;
        let width = rows.n_features().unwrap_or(job.landmarks);
        raw = raw.saturating_add(width);
        if rows.n_features().is_none() {
            // The matrix of the landmarks with its decomposition, and values of the kernel in double precision.
            fixed = fixed.saturating_add(width.saturating_mul(width).saturating_mul(10 * size_of::<f64>()));
            raw = raw.saturating_add(width.saturating_mul(2 * size_of::<f64>() / size_of::<T>()));
        }
        names.push((text.clone(), width));
    }
    let sizes = Sizes {
        n_rows: 0,
        widths: names.iter().map(|(_, width)| (*width).min(job.reduce_to)).collect(),
        raw,
        element: size_of::<T>(),
        permutations: job.permutations,
        frequencies: job.frequencies,
        grain: layers.map_or(1, Layers::grain),
        fixed,
    };
    Ok((names, sizes))
}

impl OpenedShift {
    /// The two sets.
    pub(super) fn sets(&self) -> Vec<&[Dataset]> {
        let test = self.test.as_ref().map(|test| &test.inputs[..]);
        std::iter::once(&self.reference.inputs[..]).chain(test).collect()
    }

    /// The network's file, or the folder that holds it.
    pub(super) fn network_name(&self) -> Option<String> {
        self.source.network()?;
        self.job.net.as_ref().or(self.job.from.as_ref()).map(|path| path.display().to_string())
    }
}

impl Opened for OpenedShift {
    type Plan = ShiftPlan;
    type Findings = ShiftFindings;

    fn plan(&self) -> &ShiftPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<ShiftFindings>, Error> {
        let run = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        run.map_err(Error::before_writing)
    }
}
