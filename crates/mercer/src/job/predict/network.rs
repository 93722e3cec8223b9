//! The outputs of a network, block by block.

use super::{PredictFindings, PredictJob, PredictPlan, Predicted, Score, Work, inputs};
use crate::Error;
use crate::error::AboutNetwork;
use crate::job::Destination;
use crate::spec::{Opening, Precision, Samples, blocks, open_network};
use crate::text::{bytes, count, suggested};
use mercer_data::{Labels, NpyWriter, RowBlock};
use mercer_kernel::Real;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::network::{Prediction, Shards, find, threshold};
use mercer_net::run::{Keep, Workspace};
use mercer_net::{NetError, Network};
use mercer_run::{Context, resident_memory};
use ndarray::{ArrayViewD, IxDyn};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The findings for the outputs of a network.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkFindings {
    /// The file, or the folder it was saved in.
    pub network: String,
    /// The node.
    pub at: String,
    /// The precision to compute in.
    pub precision: Precision,
    /// The samples.
    pub n_samples: usize,
    /// Of the values of one sample.
    pub shape: Vec<usize>,
    /// The array that was written.
    pub output: Option<String>,
    /// The accuracy, if there are labels.
    #[serde(flatten)]
    pub score: Option<Score>,
}

/// The number of copies of a block in memory: as stored, as read, its results, and the copy being written.
const COPIES: usize = 4;

/// Program pages that are touched for the first time, and stacks.
const CODE: usize = 4 << 20;

/// A network with its samples.
#[derive(Debug)]
pub(super) struct NetworkRun {
    /// The setting that named it.
    setting: &'static str,
    path: PathBuf,
    network: Network,
    graph: Arc<Graph>,
    samples: Samples,
    at: Option<String>,
}

impl NetworkRun {
    pub(super) fn of_file(job: &PredictJob, file: &Path, opening: Opening<'_>) -> Result<Self, Error> {
        let network = open_network(file, &job.parameters)?;
        let samples = Samples::open(&job.data, &network, opening)?;
        Self::new(job, "net", file, network, samples, opening)
    }

    pub(super) fn new(
        job: &PredictJob,
        setting: &'static str,
        path: &Path,
        network: Network,
        samples: Samples,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let samples = samples.in_order_of("labels", &network, job.at.as_deref(), &job.data)?;
        samples.hint(Some(&network), opening)?;
        let graph = network.graph(&samples.shapes()).about(path)?;
        let run = Self { setting, path: path.to_owned(), network, graph, samples, at: job.at.clone() };
        run.check_classes(job)?;
        let (fixed, element) = match job.precision {
            Precision::F32 => (run.fixed_bytes::<f32>(), size_of::<f32>()),
            Precision::F64 => (run.fixed_bytes::<f64>(), size_of::<f64>()),
        };
        let rows = blocks::round(&run.graph).min(run.samples.n_samples);
        let sample = blocks::sample_bytes(&run.graph, run.at.as_deref(), element);
        let needed = fixed.saturating_add(rows.saturating_mul(sample).saturating_mul(COPIES));
        if needed > opening.context.memory() {
            let text = format!("‹memory› {} is too little to run the network", bytes(opening.context.memory()));
            return Err(Error::with_code("memory", text)
                .hint(format!("‹memory› {}, the smallest that would do", suggested(needed))));
        }
        Ok(run)
    }

    /// The memory that does not depend on the block size: held by the process already, and by the passes of every
    /// thread.
    fn fixed_bytes<T: Real>(&self) -> usize {
        let passes = Workspace::<T>::new(Arc::clone(&self.graph), &Keep::Only(Vec::new()));
        let shard = passes.bytes(Shards::for_graph(&self.graph).grain);
        let weights = self.network.n_params().saturating_mul(size_of::<T>());
        let passes = shard.saturating_mul(rayon::current_num_threads()).saturating_add(weights);
        resident_memory().saturating_add(passes).saturating_add(CODE)
    }

    /// Names of classes say nothing about a single output, unless their order is known.
    fn check_classes(&self, job: &PredictJob) -> Result<(), Error> {
        let Some(Labels::Classes(classes)) = &self.samples.labels else { return Ok(()) };
        let is_single = self.value().is_some_and(|id| self.graph.value(id).meta.numel() == 1);
        let is_known = job.data.class_names()?.is_some() || self.network.trained_on().classes.is_some();
        let are_numbers = classes.names().iter().all(|name| name.parse::<i64>().is_ok());
        if !is_single || is_known || are_numbers {
            return Ok(());
        }
        let names = classes.names().join(", ");
        let text = format!("‹labels›: the labels are {names}, and nothing says which class a high output stands for");
        Err(Error::new(text).hint("‹classes› LOW,HIGH names the class of low outputs, then that of high ones"))
    }

    /// The value to compute.
    fn value(&self) -> Option<ValueId> {
        let named = self.at.as_deref().and_then(|name| find(&self.graph, name).ok());
        named.or_else(|| self.graph.outputs().first().map(|&(_, id)| id))
    }

    /// Returns it with its plan.
    pub(super) fn planned(self) -> (Work, PredictPlan) {
        let target = self.value();
        let n_samples = self.samples.n_samples;
        let plan = PredictPlan {
            kind: "network".to_owned(),
            n_samples,
            numbers: target.map(|id| self.graph.value(id).meta.numel()),
            gflop: Some(self.graph.flops() as f64 * n_samples as f64 / 1e9),
        };
        (Work::Network(Box::new(self)), plan)
    }

    pub(super) fn run(
        &self,
        job: &PredictJob,
        destination: &Destination,
        context: &Context,
    ) -> Result<Predicted, Error> {
        match job.precision {
            Precision::F32 => self.predict::<f32>(job, destination, context),
            Precision::F64 => self.predict::<f64>(job, destination, context),
        }
    }

    fn predict<T: Real>(
        &self,
        job: &PredictJob,
        destination: &Destination,
        context: &Context,
    ) -> Result<Predicted, Error> {
        let _phase = context.phase("evaluating");
        let n_samples = self.samples.n_samples;
        let sample = blocks::sample_bytes(&self.graph, self.at.as_deref(), size_of::<T>());
        let room = context.memory().saturating_sub(self.fixed_bytes::<T>()) / COPIES;
        let blocks = blocks::split(&self.graph, n_samples, job.batch.map(NonZeroUsize::get), (sample, room));
        let threshold = self.value().map_or(0.0, |id| threshold(&self.graph, id));
        let start = |labels| Score::start(labels, threshold);
        let mut score = self.samples.labels.as_ref().map(start).transpose()?;
        let mut writer: Option<NpyWriter<T>> = None;
        let mut sample_shape = Vec::new();
        for rows in blocks {
            if context.cancelled() {
                let done = count(rows.start, "sample");
                return Err(Error::interrupted(format!("interrupted after {done}; nothing was written")));
            }
            let first = rows.start;
            let inputs = RowBlock::<T>::read(&self.samples.inputs, rows.clone())?;
            let prediction = self.block(&inputs, rows.len()).map_err(|error| self.at_row(error, first))?;
            let values = view(&prediction, rows.len())?;
            if let Some(score) = &mut score {
                score.add(values.view(), first)?;
            }
            if let Some(path) = &destination.path {
                let _phase = context.phase("writing");
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => writer.insert(NpyWriter::create(path, &prediction.shape, destination.existing())?),
                };
                writer.append(values)?;
            }
            sample_shape = prediction.shape;
            context.report(rows.end, n_samples, "samples");
        }
        if let Some(writer) = writer {
            let _phase = context.phase("writing");
            writer.finish()?;
        }
        let first = || self.network.output_names().into_iter().next().unwrap_or_default();
        let shape = std::iter::once(n_samples).chain(sample_shape.iter().copied()).collect();
        let findings = NetworkFindings {
            network: self.path.display().to_string(),
            at: self.at.clone().unwrap_or_else(first),
            precision: job.precision,
            n_samples,
            shape: sample_shape,
            output: destination.path.as_ref().map(|path| path.display().to_string()),
            score,
        };
        Ok(Predicted {
            beside: Vec::new(),
            findings: PredictFindings::Network(findings),
            shape,
            precision: job.precision,
            inputs: inputs(self.setting, &self.path.display().to_string(), self.fingerprint::<T>(), &self.samples)?,
        })
    }

    /// The fingerprint of the network and its parameters.
    fn fingerprint<T: Real>(&self) -> String {
        let wide = self.network.wide_fingerprint::<T>(&self.graph);
        wide.unwrap_or_else(|| self.network.weights::<T>(&self.graph).fingerprint(&self.graph))
    }

    fn block<T: Real>(&self, inputs: &RowBlock<T>, n_rows: usize) -> Result<Prediction<T>, NetError> {
        let shapes = self.samples.inputs.iter().map(|dataset| dataset.sample_shape());
        let slices: Vec<(&[T], &[usize])> = inputs.slices().into_iter().zip(shapes).collect();
        self.network.predict(&slices, n_rows, self.at.as_deref(), None)
    }

    /// The library counts samples within a block; the user counts those of the file.
    fn at_row(&self, error: NetError, start: usize) -> Error {
        match error {
            NetError::NotFinite { place, sample } => {
                let error = Error::of_network(&self.path, NetError::NotFinite { place, sample: start + sample });
                error.hint(crate::error::OVERFLOW)
            }
            NetError::Input { input, reason } if start > 0 => {
                let reason = format!("{reason} (samples counted from row {start} of the data)");
                Error::of_network(&self.path, NetError::Input { input, reason })
            }
            other => Error::of_network(&self.path, other),
        }
    }
}

fn view<T: Real>(prediction: &Prediction<T>, n_rows: usize) -> Result<ArrayViewD<'_, T>, Error> {
    let whole: Vec<usize> = std::iter::once(n_rows).chain(prediction.shape.iter().copied()).collect();
    ArrayViewD::from_shape(IxDyn(&whole), &prediction.values)
        .map_err(|error| Error::new(format!("values of shape {whole:?}: {error}")))
}
