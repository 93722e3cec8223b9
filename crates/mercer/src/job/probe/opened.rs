//! Probes with everything opened.

use super::findings::ProbeFindings;
use super::needs::{Groups, Sizes};
use super::work::Work;
use super::{ProbeJob, ProbePlan};
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::Classified;
use crate::job::{Destination, Opened, Outcome, Stopwatch};
use crate::spec::{Layers, Opening, ParameterSpec, Precision, open_network};
use mercer_data::Dataset;
use mercer_data::folder::FolderKind;
use mercer_data::random::stream;
use mercer_net::Network;
use mercer_run::Context;
use rand::seq::SliceRandom;
use std::path::Path;

/// The kind of folder that probes write.
pub(crate) const KIND: FolderKind = FolderKind { name: "probe", version: 1 };

/// One in this many training samples is held out, if there are no test samples.
const HELD_OUT: usize = 5;

/// Probes with everything opened.
#[derive(Debug)]
pub struct OpenedProbe {
    pub(super) job: ProbeJob,
    pub(super) folder: Option<ResultFolder>,
    pub(super) known: Classified,
    pub(super) sets: Sets,
    pub(super) layers: Layers,
    pub(super) groups: Groups,
    plan: ProbePlan,
    pub(super) watch: Stopwatch,
}

/// The samples of the probes.
#[derive(Debug)]
pub(super) struct Sets {
    pub(super) train: Vec<Dataset>,
    pub(super) labels: Vec<usize>,
    pub(super) test: Vec<Dataset>,
    pub(super) test_labels: Vec<usize>,
    /// Whether the test samples are some of the training samples.
    pub(super) held_out: bool,
    /// The training samples that are compared in pairs.
    pub(super) pairs: Vec<usize>,
}

impl OpenedProbe {
    pub(super) fn open(
        job: &ProbeJob,
        destination: &Destination,
        watch: Stopwatch,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let folder = match (&destination.path, destination.dry_run) {
            (None, _) | (_, true) => None,
            (Some(_), false) => Some(ResultFolder::create(destination, KIND, &super::figures::NAMES)?),
        };
        let node = job.node.as_deref();
        let known = Classified::open((&job.net, &job.parameters), node, &job.train, None, opening)?;
        let sets = Sets::open(job, &known, opening)?;
        let shapes = known.samples.shapes();
        let layers = Layers::choose(known.network()?, &shapes, &job.layers, &job.net)?;
        // Checkpoints and other networks are opened once before the work, so that a wrong one is known at once.
        for path in &job.checkpoints {
            checkpoint(job, Some(path))?;
        }
        let mut n_views = layers.count() * job.checkpoints.len().max(1);
        for path in &job.against {
            let other = open_network(path, &ParameterSpec::default())?;
            n_views += Layers::choose(&other, &shapes, &[], path)?.count();
        }
        n_views += job.kernels.len() * job.checkpoints.len().max(1);
        let (element, passes) = match job.precision {
            Precision::F32 => (size_of::<f32>(), layers.pass_bytes::<f32>()),
            Precision::F64 => (size_of::<f64>(), layers.pass_bytes::<f64>()),
        };
        let matrix = sets.pairs.len().saturating_mul(sets.pairs.len()).saturating_mul(size_of::<f64>());
        let (n_train, n_test) = (sets.labels.len(), sets.test_labels.len());
        let threads = rayon::current_num_threads();
        // Two more matrices per thread while pairs are compared.
        let fixed = matrix.saturating_mul(n_views + 2 * threads).saturating_add(passes);
        let sizes = Sizes { n_train, n_test, element, fixed, threads };
        let (names, widths) = (layers.names(), layers.widths());
        let groups = sizes.groups(&names, &widths, opening.context)?;
        let plan = ProbePlan {
            layers: names.into_iter().zip(widths).collect(),
            n_samples: n_train,
            n_test,
            n_networks: job.checkpoints.len().max(1),
            n_passes: groups.passes.len(),
            bytes: groups.bytes,
        };
        Ok(Self { job: job.clone(), folder, known, sets, layers, groups, plan, watch })
    }
}

/// The network with the values of a checkpoint, or of its own file.
pub(super) fn checkpoint(job: &ProbeJob, weights: Option<&Path>) -> Result<Network, Error> {
    let parameters = ParameterSpec { weights: weights.map(Path::to_owned), ..job.parameters.clone() };
    open_network(&job.net, &parameters)
}

impl Sets {
    fn open(job: &ProbeJob, known: &Classified, opening: Opening<'_>) -> Result<Self, Error> {
        let (all, classes) = (&known.samples.inputs, known.classes.indices());
        let (train, labels, test, test_labels, held_out) = match job.test.is_empty() {
            false => {
                let node = job.node.as_deref();
                let test = known.other("test", &job.test, job.test_labels.as_ref(), &job.train, node, opening)?;
                let labels = test.classes.ok_or_else(|| Error::new("‹test-labels›: the classes are missing"))?;
                (all.clone(), classes.to_vec(), test.samples.inputs, labels, false)
            }
            true => {
                let (train, test) = held_out(classes, known.classes.n_classes(), job.seed);
                let part = |rows: &[usize]| -> Result<(Vec<Dataset>, Vec<usize>), Error> {
                    let sets = all.iter().map(|set| set.subset(rows)).collect::<Result<_, _>>()?;
                    Ok((sets, rows.iter().map(|&row| classes[row]).collect()))
                };
                let ((train, labels), (test, test_labels)) = (part(&train)?, part(&test)?);
                opening.context.note(&format!(
                    "there is no ‹test›: {} of the {} samples were held out to test the probes",
                    test_labels.len(),
                    classes.len()
                ));
                (train, labels, test, test_labels, true)
            }
        };
        if labels.len() < 4 || test_labels.is_empty() {
            let text = format!("{} training and {} test samples are too few to probe", labels.len(), test_labels.len());
            return Err(
                Error::with_code("sample-count", text).hint("at least four training samples and one test sample")
            );
        }
        if job.neighbours > labels.len() {
            let text = format!("‹neighbours› {}: there are {} training samples", job.neighbours, labels.len());
            return Err(Error::new(text));
        }
        let (n, wanted) = (labels.len(), job.pairs.min(labels.len()));
        let pairs = (0..wanted).map(|at| at * n / wanted).collect();
        Ok(Self { train, labels, test, test_labels, held_out, pairs })
    }
}

/// A fifth of every class, at random; a class with one sample keeps it.
fn held_out(labels: &[usize], n_classes: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut random = stream(seed, "probe/held out");
    let mut is_test = vec![false; labels.len()];
    for class in 0..n_classes {
        let mut rows: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == class).collect();
        rows.shuffle(&mut random);
        let count = if rows.len() > 1 { rows.len().div_ceil(HELD_OUT) } else { 0 };
        rows[..count].iter().for_each(|&row| is_test[row] = true);
    }
    (0..labels.len()).partition(|&row| !is_test[row])
}

impl Opened for OpenedProbe {
    type Plan = ProbePlan;
    type Findings = ProbeFindings;

    fn plan(&self) -> &ProbePlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<ProbeFindings>, Error> {
        let run = match self.job.precision {
            Precision::F32 => Work::<f32>::run(self, context),
            Precision::F64 => Work::<f64>::run(self, context),
        };
        run.map_err(Error::before_writing)
    }
}
