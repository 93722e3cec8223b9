//! The work: networks, kernels, pairs, files.

use super::findings::{CompareFindings, FitFindings, MatrixFindings, NetworkFindings, PairFindings};
use super::networks::{Course, Member, Time, checkpoint};
use super::opened::OpenedCompare;
use super::rows::BuiltKernel;
use super::{figures, labels, words};
use crate::Error;
use crate::error::cannot_open;
use crate::job::record::InputRecord;
use crate::job::{Artefact, Outcome};
use crate::spec::{NetworkLogits, NetworkSource};
use mercer_data::folder::digest;
use mercer_data::{Dataset, read_regular};
use mercer_kernel::Real;
use mercer_kernel::gram::KeptGram;
use mercer_lens::{Linearised, Valued, block_mass, extent, kernel_likeness, relative_difference};
use mercer_run::Context;
use ndarray::{Array2, ArrayView2};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

/// Points are on a circle if their distances from the origin agree to this.
const ROUND: f64 = 1e-5;

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

/// A kernel on the samples, and its predictions.
#[derive(Clone)]
struct Computed {
    gram: Arc<Array2<f64>>,
    /// With the samples as columns.
    test: Option<Arc<Array2<f64>>>,
}

/// A matrix with everything that is known of it by itself.
struct Looked<'a> {
    matrix: Matrix<'a>,
    found: MatrixFindings,
    predictions: Option<Array2<f64>>,
}

/// A matrix in memory, or in a file that is read when it is needed.
enum Matrix<'a> {
    Held(Arc<Array2<f64>>),
    Kept(&'a KeptGram),
}

/// What linearised networks start from: the outputs of a network on the samples and on the test samples.
struct Start {
    rest: Array2<f64>,
    test: Array2<f64>,
}

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedCompare, context: &Context) -> Result<Outcome<CompareFindings>, Error> {
        let folder = opened.folder.take();
        let mut findings = CompareFindings {
            network: opened.family.path().map(|path| path.display().to_string()),
            n_samples: crate::job::Opened::plan(&opened).n_samples,
            n_test: crate::job::Opened::plan(&opened).n_test,
            angles: opened.angles()?,
            ..CompareFindings::default()
        };
        let networks = opened.networks::<T>(findings.angles.is_some(), context)?;
        if let Some(last) = networks.last() {
            (findings.matrices, findings.pairs) = (last.matrices.clone(), last.pairs.clone());
        }
        if networks.len() > 1 {
            findings.networks = networks;
        }
        findings.sentences = words::sentences(&findings);
        let Some(folder) = folder else { return Ok(opened.watch.outcome(findings, Vec::new(), context)) };
        let _phase = context.phase("writing");
        figures::write(&folder, &findings)?;
        let inputs = opened.inputs()?;
        let place = Artefact::file("compare", folder.path().display().to_string());
        let content = serde_json::json!({ "kernels": opened.job.kernels, "grams": opened.job.grams });
        let mut outcome = folder.finish(opened.job, inputs, findings, &content, (opened.watch, context))?;
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

impl OpenedCompare {
    /// All networks, one after the other.
    fn networks<T: Real>(&self, on_circle: bool, context: &Context) -> Result<Vec<NetworkFindings>, Error> {
        let total: usize = self.members.iter().map(|member| member.times.len()).sum();
        let mut found = Vec::with_capacity(total);
        // Kernels that do not depend on the weights, with their identities.
        let mut fixed: Vec<Option<(String, Computed)>> = vec![None; self.kernels.len()];
        for member in &self.members {
            let trained = self.trained::<T>(member, context)?;
            for time in &member.times {
                context.check()?;
                let weights = match (time, &trained) {
                    (Time::File(path), _) => Some(path.clone()),
                    (Time::Epoch(epoch), Some(folder)) => Some(checkpoint(folder.path(), *epoch)),
                    _ => None,
                };
                let source = self.family.network(&self.job, member, weights.as_deref())?;
                found.push(self.network::<T>((member, time), &source, on_circle, &mut fixed, context)?);
                context.report(found.len(), total, if total > 1 { "networks" } else { "comparisons" });
            }
        }
        Ok(found)
    }

    /// A folder with the checkpoints of a network that is trained.
    fn trained<T: Real>(&self, member: &Member, context: &Context) -> Result<Option<tempfile::TempDir>, Error> {
        let labels = self.samples.as_ref().and_then(|samples| Some((samples, samples.labels.as_ref()?)));
        let (true, Some((samples, labels))) = (self.job.trains(), labels) else { return Ok(None) };
        let _phase = context.phase("training");
        let source = self.family.network(&self.job, member, None)?;
        let seed = member.seed.unwrap_or(self.job.seed);
        let folder = tempfile::tempdir().map_err(|error| Error::new(format!("a temporary folder: {error}")))?;
        Course::<T>::new(&self.job, (&source, seed), (&samples.inputs, labels))?.run(folder.path(), context)?;
        Ok(Some(folder))
    }

    /// One network.
    fn network<T: Real>(
        &self,
        (member, time): (&Member, &Time),
        source: &NetworkSource,
        on_circle: bool,
        fixed: &mut [Option<(String, Computed)>],
        context: &Context,
    ) -> Result<NetworkFindings, Error> {
        let start = self.start::<T>(source, context)?;
        let mut looked = Vec::with_capacity(self.files.len() + self.kernels.len());
        for kept in &self.files {
            let gram = read(kept, context)?;
            let (_, n_outputs) = kept.square()?;
            let valued = Valued { matrix: gram.view(), n_outputs };
            let found = alone(kept.place(), valued, 1.0, f64::EPSILON, context)?;
            looked.push(Looked { matrix: Matrix::Kept(kept), found, predictions: None });
        }
        for (kernel, fixed) in self.kernels.iter().zip(fixed) {
            let shapes = self.samples.as_ref().map(|samples| samples.shapes()).unwrap_or_default();
            let n_outputs = self.logits.as_ref().map_or(1, NetworkLogits::n_outputs);
            let built = kernel.build::<T>(source, &shapes, n_outputs)?;
            let computed = self.computed(&built, fixed, context)?;
            let valued = Valued { matrix: computed.gram.view(), n_outputs: built.per_sample() };
            let mut found = alone(&kernel.name(), valued, built.factor, T::epsilon().wide(), context)?;
            found.row = on_circle.then(|| first_row(valued));
            let predictions = match (&start, &computed.test) {
                (Some((start, _)), Some(test)) => {
                    Some(self.predicted(valued, start, test.view(), &mut found, context)?)
                }
                _ => None,
            };
            looked.push(Looked { matrix: Matrix::Held(computed.gram), found, predictions });
        }
        let pairs = pairs(&looked, context)?;
        let (accuracy, test_accuracy) = start.map_or((None, None), |(_, right)| right);
        Ok(NetworkFindings {
            name: name(member, time),
            width: member.width.filter(|_| !self.job.widths.is_empty()),
            seed: member.seed,
            epoch: match time {
                Time::Epoch(epoch) => Some(*epoch),
                _ => None,
            },
            checkpoint: match time {
                Time::File(path) => Some(stem(path)),
                _ => None,
            },
            n_params: source.network().map_or(0, mercer_net::Network::n_params),
            accuracy,
            test_accuracy,
            matrices: looked.into_iter().map(|one| one.found).collect(),
            pairs,
        })
    }

    /// The outputs of the network, and the shares of the samples on which it is right.
    #[allow(clippy::type_complexity, reason = "two optional accuracies beside the outputs")]
    fn start<T: Real>(
        &self,
        source: &NetworkSource,
        context: &Context,
    ) -> Result<Option<(Start, (Option<f64>, Option<f64>))>, Error> {
        let (Some(known), Some(samples), Some(network), Some(path)) =
            (&self.known, &self.samples, source.network(), self.family.path())
        else {
            return Ok(None);
        };
        let _phase = context.phase("outputs");
        let quiet = context.quiet();
        let logits = NetworkLogits::find(network, &samples.shapes(), None, path, &quiet)?;
        let run = |inputs: &[Dataset]| -> Result<Array2<f64>, Error> {
            Ok(labels::outputs(&logits, logits.scores::<T>(network, inputs, &quiet)?))
        };
        let own = run(&samples.inputs)?;
        let test = match self.test_inputs() {
            Some(inputs) => run(inputs)?,
            None => Array2::zeros((0, own.ncols())),
        };
        let test_classes = known.test.as_ref().and_then(|test| test.classes.as_deref());
        let right =
            (labels::accuracy(own.view(), known.classes.as_deref()), labels::accuracy(test.view(), test_classes));
        Ok(Some((Start { rest: &known.targets - &own, test }, right)))
    }

    /// The matrices of a kernel, computed or known from an earlier network.
    fn computed<T: Real>(
        &self,
        built: &BuiltKernel<T>,
        fixed: &mut Option<(String, Computed)>,
        context: &Context,
    ) -> Result<Computed, Error> {
        let samples = self.samples.as_ref().ok_or_else(|| Error::new("‹data›: the samples are missing"))?;
        let identity = built.is_fixed.then(|| built.identity());
        if let (Some(identity), Some((known, computed))) = (&identity, &*fixed)
            && identity == known
        {
            return Ok(computed.clone());
        }
        let _phase = context.phase("kernels");
        let gram = Arc::new(built.matrix(&samples.inputs, None, context)?);
        let test = match self.test_inputs() {
            Some(test) => Some(Arc::new(built.matrix(test, Some(&samples.inputs), context)?)),
            None => None,
        };
        let computed = Computed { gram, test };
        *fixed = identity.map(|identity| (identity, computed.clone()));
        Ok(computed)
    }

    /// The predictions of a linearised network.
    fn predicted(
        &self,
        kernel: Valued<'_>,
        start: &Start,
        rows: ArrayView2<'_, f64>,
        found: &mut MatrixFindings,
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let _phase = context.phase("predictions");
        context.check()?;
        let about = |error| Error::from(error).with_place(&format!("kernel {}", found.name));
        let fit = Linearised::fit(kernel, start.rest.view(), self.job.ridge).map_err(about)?;
        let outputs = &start.test + &fit.predict(rows).map_err(about)?;
        let classes = self.known.as_ref().and_then(|known| known.test.as_ref()?.classes.as_deref());
        let accuracy = labels::accuracy(outputs.view(), classes);
        found.fit = Some(FitFindings { ridge: fit.ridge, residual: fit.residual, accuracy });
        Ok(outputs)
    }

    /// The angles of samples that are points on a circle around the origin.
    fn angles(&self) -> Result<Option<Vec<f64>>, Error> {
        let Some([input]) = self.samples.as_ref().map(|samples| &samples.inputs[..]) else { return Ok(None) };
        if input.sample_shape() != [2] {
            return Ok(None);
        }
        let points = input.read::<f64>()?;
        let points: Vec<&[f64]> = points.as_slice().unwrap_or_default().chunks_exact(2).collect();
        let radii = points.iter().map(|point| point[0].hypot(point[1]));
        let (least, most) = radii.fold((f64::INFINITY, 0.0_f64), |(least, most), r| (least.min(r), most.max(r)));
        let is_round = most > 0.0 && most - least <= ROUND * most;
        Ok(is_round.then(|| points.iter().map(|point| point[1].atan2(point[0]).to_degrees()).collect()))
    }

    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let file = |setting: &str, path: &std::path::Path| -> Result<InputRecord, Error> {
            let bytes = read_regular(path, u64::MAX).map_err(|error| cannot_open(path.display(), &error))?;
            Ok(InputRecord::new(setting, &path.display().to_string(), digest(&bytes)))
        };
        let mut inputs = Vec::new();
        for name in &self.job.grams {
            let path = name.parse::<mercer_data::Source>()?.path().to_owned();
            inputs.push(InputRecord::new("gram", name, crate::job::record::digest_of(&path)?));
        }
        for (setting, path) in [("net", &self.job.net), ("arch", &self.job.arch)] {
            if let Some(path) = path {
                inputs.push(file(setting, path)?);
            }
        }
        for path in &self.job.checkpoints {
            inputs.push(file("weights", path)?);
        }
        if let Some(samples) = &self.samples {
            inputs.push(InputRecord::new("data", &samples.places(), samples.fingerprint()?));
            if let (Some(labels), Some(print)) = (&self.job.data.labels, samples.labels_fingerprint()) {
                inputs.push(InputRecord::new("labels", &labels.to_string(), print));
            }
        }
        if let Some(test) = self.known.as_ref().and_then(|known| known.test.as_ref()) {
            inputs.push(InputRecord::new("test", &test.samples.places(), test.samples.fingerprint()?));
            if let (Some(labels), Some(print)) = (&self.job.test_labels, test.samples.labels_fingerprint()) {
                inputs.push(InputRecord::new("test-labels", &labels.to_string(), print));
            }
        }
        Ok(inputs)
    }
}

/// What is known of a matrix by itself.
fn alone(
    name: &str,
    kernel: Valued<'_>,
    factor: f64,
    epsilon: f64,
    context: &Context,
) -> Result<MatrixFindings, Error> {
    let _phase = context.phase("decomposing");
    context.check()?;
    let about = |error| Error::from(error).with_place(name);
    let extent = extent(kernel.matrix, epsilon).map_err(about)?;
    let mass = if kernel.n_outputs > 1 { Some(block_mass(kernel).map_err(about)?) } else { None };
    let (name, n_outputs) = (name.to_owned(), kernel.n_outputs);
    Ok(MatrixFindings { name, n_outputs, factor, extent, mass, fit: None, row: None })
}

/// `κ(x₀, x)` of all samples.
fn first_row(kernel: Valued<'_>) -> Vec<f64> {
    let (c, n) = (kernel.n_outputs, kernel.n_samples());
    let value = |j: usize| (0..c).map(|output| kernel.matrix[(output, j * c + output)]).sum::<f64>() / c as f64;
    (0..n).map(value).collect()
}

/// All pairs.
fn pairs(looked: &[Looked<'_>], context: &Context) -> Result<Vec<PairFindings>, Error> {
    let mut pairs = Vec::new();
    for (at, a) in looked.iter().enumerate() {
        if at + 1 == looked.len() {
            break;
        }
        let own = a.matrix.read(context)?;
        for b in &looked[at + 1..] {
            let other = b.matrix.read(context)?;
            let _phase = context.phase("comparing");
            context.check()?;
            let about = |error| Error::from(error).with_place(&a.found.name);
            let likeness = kernel_likeness(
                Valued { matrix: own.view(), n_outputs: a.found.n_outputs },
                Valued { matrix: other.view(), n_outputs: b.found.n_outputs },
            );
            let predictions = match (&a.predictions, &b.predictions) {
                (Some(a), Some(b)) => relative_difference(a.view(), b.view()).map_err(about)?,
                _ => None,
            };
            pairs.push(PairFindings::new(&a.found, &b.found, likeness.map_err(about)?, predictions));
        }
    }
    Ok(pairs)
}

impl Matrix<'_> {
    fn read(&self, context: &Context) -> Result<Cow<'_, Array2<f64>>, Error> {
        match self {
            Self::Held(gram) => Ok(Cow::Borrowed(gram)),
            Self::Kept(kept) => Ok(Cow::Owned(read(kept, context)?)),
        }
    }
}

/// Reads a stored matrix, with a row per sample and output.
fn read(kept: &KeptGram, context: &Context) -> Result<Array2<f64>, Error> {
    context.check()?;
    let _phase = context.phase("reading");
    let (rows, _) = kept.square()?;
    let array = kept.read::<f64>(context)?;
    let matrix = array.as_standard_layout().into_owned().into_shape_with_order((rows, rows));
    matrix.map_err(|error| Error::new(format!("{}: {error}", kept.place())))
}

/// A file without its folder and ending.
fn stem(path: &std::path::Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// What a network is called: its width and seed, and its checkpoint or epoch.
fn name(member: &Member, time: &Time) -> String {
    let time = match time {
        Time::Now => String::new(),
        Time::File(path) => stem(path),
        Time::Epoch(epoch) => format!("epoch {epoch}"),
    };
    match (member.name.is_empty(), time.is_empty()) {
        (true, _) => time,
        (false, true) => member.name.clone(),
        (false, false) => format!("{}, {time}", member.name),
    }
}
