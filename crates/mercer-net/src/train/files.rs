//! The files that a training run writes to its folder, and how they are recognised.
//!
//! ```text
//! state.safetensors          what the run goes on from
//! epoch-00005.safetensors    the weights after an epoch
//! model.onnx                 the network that was trained
//! weights.safetensors        its weights alone
//! result.json                what the run was and what it measured
//! folder.json, run.json      the manifest of a run that is complete, and its record
//! ```
//!
//! State and checkpoints are written during the run. Once it is complete, everything is listed in the manifest, and the
//! folder is a [saved](mercer_data::folder) network.
//!
//! ```
//! use mercer_net::train::files;
//!
//! assert_eq!(files::checkpoint(5), "epoch-00005.safetensors");
//! ```

use super::TrainingSettings;
use crate::error::{NetError, Result};
use crate::export::{TRAINING, WEIGHTS, is_own_onnx, kind};
use mercer_data::Results;
use mercer_data::folder::{Folder, FolderKind, MANIFEST, holds};
use std::path::Path;

/// The state of the run.
pub const STATE: &str = "state.safetensors";

/// The network that was trained.
pub const MODEL: &str = "model.onnx";

/// Its weights alone.
pub const TENSORS: &str = "weights.safetensors";

/// The folder kind of trained networks.
pub const SAVED: FolderKind = FolderKind { name: "network", version: 1 };

/// The record of how it was made.
const RUN: &str = "run.json";

/// The kind of the record, `result.json`.
pub const KIND: &str = "training";

/// The weights after an epoch.
pub fn checkpoint(epoch: usize) -> String {
    format!("epoch-{epoch:05}.safetensors")
}

/// The epoch of a checkpoint.
fn epoch(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("epoch-")?.strip_suffix(".safetensors")?;
    let is_number = digits.len() >= 5 && digits.chars().all(|letter| letter.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn is_checkpoint(name: &str) -> bool {
    epoch(name).is_some()
}

fn proof(path: &Path) -> Option<bool> {
    let folder = path.parent()?;
    Some(match path.file_name().and_then(|name| name.to_str()) {
        Some(MANIFEST) => holds(folder, SAVED),
        Some(RUN) => Folder::open(folder, Some(SAVED)).is_ok_and(|folder| folder.file(RUN).is_ok()),
        Some(MODEL) => is_own_onnx(path),
        Some(STATE) => kind(path).as_deref() == Some(TRAINING),
        _ => kind(path).as_deref() == Some(WEIGHTS),
    })
}

/// The results of a run of training that are in a folder.
pub fn results(folder: &Path) -> Result<Results<'_>> {
    Ok(Results::find(folder, KIND, &[MANIFEST, RUN, STATE, MODEL, TENSORS], is_checkpoint, proof)?)
}

/// The checkpoints in a folder, epoch and file, in the order of their epochs.
pub fn checkpoints(folder: &Path) -> Result<Vec<(usize, String)>> {
    let mut found: Vec<(usize, String)> =
        ongoing(folder)?.into_iter().filter_map(|name| Some((epoch(&name)?, name))).collect();
    found.sort();
    Ok(found)
}

/// The files in a folder that a run writes while it is in progress: its state and its checkpoints.
pub fn ongoing(folder: &Path) -> Result<Vec<String>> {
    let failed = |source| NetError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            names.extend(name.to_str().filter(|name| *name == STATE || is_checkpoint(name)).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// The files that a run with these settings has written after so many epochs, for its record.
pub fn files(settings: &TrainingSettings, epochs: usize) -> Vec<String> {
    let fixed = [MODEL, TENSORS, STATE].map(str::to_owned);
    let kept = settings.checkpoints.iter().filter(|&&epoch| epoch <= epochs);
    fixed.into_iter().chain(kept.map(|&epoch| checkpoint(epoch))).collect()
}
