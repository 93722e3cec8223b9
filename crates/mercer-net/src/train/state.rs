//! The state of a run on disk: weights, the optimiser's memory, the history, and what run it is.
//!
//! It is a safetensors file, so that other tools can look inside: `weights/NAME`, `optimiser/first`, `optimiser/second`,
//! and `history` with the columns of [`COLUMNS`]. The header holds the number of steps and the fingerprint of the run.

use super::fingerprint::Fingerprint;
use super::{Epoch, Metrics, OptimiserState, Trainer};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::export::{TensorFile, Tensors};
use crate::graph::Graph;
use crate::run::Weights;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the state file in a run's folder.
pub(super) const STATE: &str = "state.safetensors";

/// Learning rate, loss, accuracy, and the last two on the evaluation set; −1 where there is none.
const COLUMNS: usize = 5;

/// Rises when the file changes its meaning.
const VERSION: u32 = 1;

/// What is to be saved.
pub(super) struct Saved<'a, T> {
    pub(super) trainer: &'a Trainer<T>,
    pub(super) history: &'a [Epoch],
    pub(super) fingerprint: &'a Fingerprint,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    epochs: usize,
    steps: u64,
    fingerprint: Fingerprint,
}

/// Replaces the state file atomically.
pub(super) fn save<T: Element>(path: &Path, saved: &Saved<'_, T>) -> Result<()> {
    let Saved { trainer, history, fingerprint } = saved;
    let state = trainer.state();
    let mut tensors = Tensors::default();
    push_weights(&mut tensors, "weights/", trainer.graph(), trainer.weights());
    tensors.push("optimiser/first", &[state.first.len()], &state.first);
    tensors.push("optimiser/second", &[state.second.len()], &state.second);
    let numbers: Vec<f64> = history.iter().flat_map(to_row).map(|x| x.unwrap_or(MISSING)).collect();
    tensors.push("history", &[history.len(), COLUMNS], &numbers);
    let header = Header {
        version: VERSION,
        epochs: history.len(),
        steps: state.steps,
        fingerprint: Fingerprint::clone(fingerprint),
    };
    let text = serde_json::to_string(&header).map_err(|error| NetError::Setting(error.to_string()))?;
    tensors.note("mercer-training", text);
    tensors.write(path)
}

/// Losses and accuracies are never negative, so this stands for one that is not there.
const MISSING: f64 = -1.0;

fn to_row(epoch: &Epoch) -> [Option<f64>; COLUMNS] {
    let evaluation = epoch.evaluation;
    [
        Some(epoch.learning_rate),
        Some(epoch.training.loss),
        epoch.training.accuracy,
        evaluation.map(|metrics| metrics.loss),
        evaluation.and_then(|metrics| metrics.accuracy),
    ]
}

fn from_row(epoch: usize, row: &[f64]) -> Epoch {
    let some = |x: f64| (x != MISSING).then_some(x);
    let training = Metrics { loss: row[1], accuracy: some(row[2]) };
    let evaluation = some(row[3]).map(|loss| Metrics { loss, accuracy: some(row[4]) });
    Epoch { epoch, learning_rate: row[0], training, evaluation }
}

/// Puts a trainer into the saved state; returns the history. Refuses the state of another run.
pub(super) fn load<T: Element>(path: &Path, trainer: &mut Trainer<T>, run: &Fingerprint) -> Result<Vec<Epoch>> {
    let file = TensorFile::read(path)?;
    let broken = |reason: &str| NetError::Setting(format!("{}: {reason}", path.display()));
    let text = file.note("mercer-training")?.ok_or_else(|| broken("not the state of a training run"))?;
    let header: Header = serde_json::from_str(&text).map_err(|error| broken(&error.to_string()))?;
    if header.version != VERSION {
        return Err(broken(&format!("version {} of the format; {VERSION} can be read", header.version)));
    }
    run.check(&header.fingerprint, path)?;
    let graph = trainer.graph();
    let mut parameters = Vec::with_capacity(graph.parameters().len());
    for &id in graph.parameters() {
        let value = graph.value(id);
        parameters.push(file.values(&format!("weights/{}", value.name), &value.meta.shape)?.to_vec::<T>());
    }
    let own = trainer.state();
    let vector = |name: &str, length: usize| Ok::<_, NetError>(file.values(name, &[length])?.to_vec::<T>());
    let state = OptimiserState {
        steps: header.steps,
        first: vector("optimiser/first", own.first.len())?,
        second: vector("optimiser/second", own.second.len())?,
    };
    let rows = file.values("history", &[header.epochs, COLUMNS])?.to_vec::<f64>();
    trainer.restore(parameters, state);
    Ok((1..).zip(rows.chunks_exact(COLUMNS)).map(|(epoch, row)| from_row(epoch, row)).collect())
}

/// Writes weights alone, under the names they have in the network.
pub(super) fn save_weights<T: Element>(path: &Path, graph: &Graph, weights: &Weights<T>) -> Result<()> {
    let mut tensors = Tensors::default();
    push_weights(&mut tensors, "", graph, weights);
    tensors.write(path)
}

fn push_weights<T: Element>(tensors: &mut Tensors, prefix: &str, graph: &Graph, weights: &Weights<T>) {
    for (&id, values) in graph.parameters().iter().zip(&weights.parameters) {
        let value = graph.value(id);
        tensors.push(format!("{prefix}{}", value.name), &value.meta.shape, values);
    }
}
