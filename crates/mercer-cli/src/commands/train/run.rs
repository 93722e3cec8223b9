//! A run of training: the part that `train` and `demo` share.

use super::report::{EpochReport, TrainReport};
use crate::console::Console;
use crate::failure::Failure;
use crate::options::Real;
use mercer::data::{Existing, Labels, write_atomic};
use mercer::net::train::{Epoch, Fit, FitSettings, Loss, Optimiser, Samples, Trainer, files};
use mercer::net::{NetError, Network};
use std::path::Path;

/// What to train, and how.
pub(crate) struct Run<'a> {
    pub(crate) network: Network,
    pub(crate) training: Samples<'a>,
    pub(crate) evaluation: Option<Samples<'a>>,
    pub(crate) settings: FitSettings,
    pub(crate) loss: Loss,
    pub(crate) optimiser: Optimiser,
    /// Where state, checkpoints and results go.
    pub(crate) folder: &'a Path,
    pub(crate) resume: bool,
}

impl Run<'_> {
    /// Trains and writes `model.onnx`, `weights.safetensors` and `result.json`.
    pub(crate) fn run<T: Real>(mut self, console: &Console) -> Result<TrainReport, Failure> {
        let graph = self.network.declared_graph()?;
        let weights = self.network.weights::<T>(&graph);
        let mut trainer = Trainer::new(graph, weights, self.loss.clone(), self.optimiser.clone())?;
        let bar = console.context();
        let start = std::time::Instant::now();
        let report = |epoch: &Epoch| console.slow_line(&EpochReport::of(epoch).line());
        let mut fit = Fit::new(self.settings.clone()).folder(self.folder).resume(self.resume).context(bar);
        fit = fit.on_epoch(&report);
        if let Some(samples) = self.evaluation {
            fit = fit.evaluation(samples);
        }
        let history = fit.run(&mut trainer, self.training)?;
        let seconds = start.elapsed().as_secs_f64();
        self.network.set_weights(trainer.weights());
        let (model, tensors) = (self.folder.join(files::MODEL), self.folder.join(files::TENSORS));
        self.network.save_onnx(&model)?;
        self.network.save_safetensors(&tensors)?;
        let class_names = match self.training.labels {
            Labels::Classes(classes) => Some(classes.names().to_vec()),
            Labels::Targets(_) => None,
        };
        let report = TrainReport {
            kind: files::KIND,
            files: files::files(&self.settings),
            model: model.display().to_string(),
            weights: tensors.display().to_string(),
            precision: <T as mercer::linalg::Scalar>::NAME,
            n_params: self.network.n_params(),
            n_samples: self.training.inputs.n_samples(),
            n_evaluation_samples: self.evaluation.map(|samples| samples.inputs.n_samples()),
            seconds,
            settings: self.settings,
            loss: self.loss,
            optimiser: self.optimiser,
            preprocess: self.training.inputs.preprocess().clone(),
            class_names,
            history: history.iter().map(EpochReport::of).collect(),
        };
        let json = serde_json::to_string_pretty(&report);
        let json = json.map_err(|error| Failure::new(format!("the result cannot be written as JSON: {error}")))?;
        write_atomic(&self.folder.join("result.json"), Existing::Replace, |writer| {
            writer.write_all(json.as_bytes())?;
            writer.write_all(b"\n")
        })?;
        Ok(report)
    }
}

/// Errors of training name what they speak of themselves.
impl From<NetError> for Failure {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Cancelled => Self::interrupted("stopped"),
            NetError::Data(error) => error.into(),
            NetError::OtherRun { .. } => Self::new(error.to_string())
                .hint("--resume with the options of the first time, or --force to begin again"),
            NetError::State { .. } | NetError::Tensor { .. } => {
                Self::new(error.to_string()).hint("--force begins again")
            }
            other => Self::new(other.to_string()),
        }
    }
}
