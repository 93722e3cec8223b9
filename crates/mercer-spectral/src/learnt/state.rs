//! The state of a run on disk: weights, optimiser state, averages, and the identity of the run.
//!
//! A sealed safetensors file with `weights/NAME`, `optimiser/first`, `optimiser/second` and `average/KERNEL/NAME`; its
//! header holds the number of steps and the facts that must not change when the run is resumed. It is replaced
//! atomically, so a run that is killed at any time leaves the last complete state. Every tensor is checked for name,
//! shape, precision and finite numbers before use: the lengths of averages follow from the run, not from the file.

use super::objective::{Average, Objective, Sizes};
use crate::error::Result;
use mercer_kernel::Real;
use mercer_net::NetError;
use mercer_net::export::{EIGENFUNCTIONS, TensorFile, Tensors, kind};
use mercer_net::graph::Graph;
use mercer_net::run::Weights;
use mercer_net::train::{OptimiserState, push_state, read_state};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The name of the state file in a run's folder.
pub const STATE: &str = "state.safetensors";

/// Incremented when the meaning of the file changes. Files of version 1 were not sealed, and held different averages of
/// SpIN.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    steps: usize,
    facts: Vec<(String, Value)>,
}

/// Everything that changes during a run.
pub(super) struct Changing<'a, T> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a mut Weights<T>,
    pub(super) optimiser: &'a mut OptimiserState<T>,
    pub(super) objectives: &'a mut [Box<dyn Objective<T>>],
    pub(super) sizes: Sizes,
}

/// Whether a folder holds the state of a run that learns eigenfunctions.
pub fn has_state(folder: &Path) -> bool {
    kind(&folder.join(STATE)).as_deref() == Some(EIGENFUNCTIONS)
}

/// Removes the state of a run from a folder, if there is one.
///
/// # Errors
/// [`Foreign`](mercer_data::DataError::Foreign) for a file of the same name that is something else.
pub fn clear_state(folder: &Path) -> Result<()> {
    let path = folder.join(STATE);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    if !has_state(folder) {
        return Err(mercer_data::DataError::Foreign { place: path.display().to_string() }.into());
    }
    std::fs::remove_file(&path).map_err(|source| NetError::Io { path, source }.into())
}

fn name_of(kernel: usize, average: &str) -> String {
    format!("average/{kernel}/{average}")
}

/// Replaces the state file atomically.
pub(super) fn save<T: Real>(
    path: &Path,
    state: Changing<'_, T>,
    steps: usize,
    facts: &[(String, Value)],
) -> Result<()> {
    let mut tensors = Tensors::new(EIGENFUNCTIONS);
    push_state(&mut tensors, state.graph, state.weights, state.optimiser);
    for (kernel, objective) in state.objectives.iter_mut().enumerate() {
        for Average { name, values, .. } in objective.averages(state.sizes) {
            tensors.push(name_of(kernel, name), &[values.len()], values);
        }
    }
    Ok(tensors.write_sealed(path, &Header { version: VERSION, steps, facts: facts.to_vec() })?)
}

/// Restores the saved state of a run with at most `most` steps and returns the steps that were done. Refuses damaged
/// states and those of another run.
pub(super) fn load<T: Real>(
    path: &Path,
    state: Changing<'_, T>,
    most: usize,
    facts: &[(String, Value)],
) -> Result<usize> {
    let file = TensorFile::read(path)?;
    let header: Header = file.unseal(EIGENFUNCTIONS)?;
    if header.version != VERSION {
        return Err(file
            .refused(format!(
                "it has version {} of the format, but only version {VERSION} is supported",
                header.version
            ))
            .into());
    }
    for (name, given) in facts {
        let stored = header.facts.iter().find(|(other, _)| other == name).map_or(&Value::Null, |(_, value)| value);
        if stored != given {
            let (path, what) = (path.to_owned(), name.clone());
            let (stored, given) = (stored.to_string(), given.to_string());
            return Err(NetError::OtherRun { path, what, stored, given }.into());
        }
    }
    if header.steps > most {
        return Err(file.refused(format!("it has {} steps, more than the {most} of this run", header.steps)).into());
    }
    let (parameters, optimiser) = read_state(&file, state.graph, state.optimiser, header.steps as u64)?;
    for (kernel, objective) in state.objectives.iter_mut().enumerate() {
        for Average { name, values, length } in objective.averages(state.sizes) {
            // Before the first batch there are no averages.
            *values = file.exact(&name_of(kernel, name), &[if header.steps == 0 { 0 } else { length }])?;
        }
        objective.check().map_err(|(name, reason)| file.error(&name_of(kernel, name), reason))?;
    }
    state.weights.parameters = parameters;
    *state.optimiser = optimiser;
    Ok(header.steps)
}
