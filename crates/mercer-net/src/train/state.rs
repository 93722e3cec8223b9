//! The state of a run on disk: weights, optimiser state, history, and the identity of the run.
//!
//! It is a safetensors file, so that other tools can look inside: `weights/NAME`, `optimiser/first`,
//! `optimiser/second`, and `history` with the columns of [`COLUMNS`]. The header holds the number of steps and the
//! fingerprint of the run. The file is sealed. Every tensor is checked for name, shape, precision and finite numbers
//! before use.

use super::fingerprint::Fingerprint;
use super::saved::{push_state, push_weights, read_state, read_statistics};
use super::{Epoch, Metrics, Trainer};
use crate::element::Element;
use crate::error::Result;
use crate::export::{TRAINING, TensorFile, Tensors, WEIGHTS};
use crate::graph::Graph;
use crate::run::Weights;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Learning rate, loss, accuracy, and the last two on the evaluation set; −1 where missing.
const COLUMNS: usize = 5;

/// Incremented when the meaning of the file changes. Files of version 1 were not sealed.
const VERSION: u32 = 2;

/// What is saved.
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
    let mut tensors = Tensors::new(TRAINING);
    push_state(&mut tensors, trainer.graph(), trainer.weights(), state);
    let numbers: Vec<f64> = history.iter().flat_map(to_row).map(|x| x.unwrap_or(MISSING)).collect();
    tensors.push("history", &[history.len(), COLUMNS], &numbers);
    let header = Header {
        version: VERSION,
        epochs: history.len(),
        steps: state.steps,
        fingerprint: Fingerprint::clone(fingerprint),
    };
    tensors.write_sealed(path, &header)
}

/// Losses and accuracies are never negative, so this marks a missing one.
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

/// Puts a trainer into the saved state; returns the history. Refuses the state of another run, and one that is damaged.
pub(super) fn load<T: Element>(
    path: &Path,
    trainer: &mut Trainer<T>,
    run: &Fingerprint,
    steps_per_epoch: usize,
) -> Result<Vec<Epoch>> {
    let file = TensorFile::read(path)?;
    let header: Header = file.unseal(TRAINING)?;
    if header.version != VERSION {
        return Err(file.refused(format!(
            "it has version {} of the format, but only version {VERSION} is supported",
            header.version
        )));
    }
    run.check(&header.fingerprint, path)?;
    let whole = header.epochs.checked_mul(steps_per_epoch).and_then(|steps| u64::try_from(steps).ok());
    if whole != Some(header.steps) {
        let (epochs, steps) = (header.epochs, header.steps);
        return Err(file.refused(format!("{epochs} epochs of {steps_per_epoch} steps do not make {steps} steps")));
    }
    let (parameters, state) = read_state(&file, trainer.graph(), trainer.state(), header.steps)?;
    let rows = file.exact::<f64>("history", &[header.epochs, COLUMNS])?;
    let statistics = read_statistics(&file, trainer.graph())?;
    trainer.restore(parameters, &statistics, state);
    Ok((1..).zip(rows.chunks_exact(COLUMNS)).map(|(epoch, row)| from_row(epoch, row)).collect())
}

/// Writes weights and running statistics, under the names they have in the network.
pub(super) fn save_weights<T: Element>(path: &Path, graph: &Graph, weights: &Weights<T>) -> Result<()> {
    let mut tensors = Tensors::new(WEIGHTS);
    push_weights(&mut tensors, "", graph, weights);
    tensors.write(path)
}
