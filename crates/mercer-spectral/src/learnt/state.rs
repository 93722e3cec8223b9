//! The state of a run on disk: weights, the optimiser's memory, the averages, and what run it is.
//!
//! A safetensors file with `weights/NAME`, `optimiser/first`, `optimiser/second` and `average/KERNEL/NAME`; its header holds the
//! number of steps and the facts that must not change when the run is resumed. It is replaced atomically, so that a run that
//! is killed at any time leaves the last complete one.

use super::objective::Objective;
use crate::error::{Result, SpectralError};
use mercer_kernel::Real;
use mercer_net::NetError;
use mercer_net::export::{TensorFile, Tensors};
use mercer_net::graph::Graph;
use mercer_net::run::Weights;
use mercer_net::train::OptimiserState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The name of the state file in a run's folder.
pub(super) const STATE: &str = "state.safetensors";

/// Rises when the file changes its meaning.
const VERSION: u32 = 1;

const NOTE: &str = "mercer-eigenfunctions";

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    steps: usize,
    /// The lengths of the averages, in their order.
    averages: Vec<usize>,
    facts: Vec<(String, Value)>,
}

/// Everything that changes during a run.
pub(super) struct Changing<'a, T> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a mut Weights<T>,
    pub(super) optimiser: &'a mut OptimiserState<T>,
    pub(super) objectives: &'a mut [Box<dyn Objective<T>>],
}

fn names<T: Real>(objectives: &mut [Box<dyn Objective<T>>]) -> Vec<(String, &mut Vec<T>)> {
    let each = objectives.iter_mut().enumerate();
    each.flat_map(|(kernel, objective)| {
        objective.averages().into_iter().map(move |(name, values)| (format!("average/{kernel}/{name}"), values))
    })
    .collect()
}

/// Replaces the state file atomically.
pub(super) fn save<T: Real>(
    path: &Path,
    state: Changing<'_, T>,
    steps: usize,
    facts: &[(String, Value)],
) -> Result<()> {
    let mut tensors = Tensors::default();
    for (&id, values) in state.graph.parameters().iter().zip(&state.weights.parameters) {
        let value = state.graph.value(id);
        tensors.push(format!("weights/{}", value.name), &value.meta.shape, values);
    }
    tensors.push("optimiser/first", &[state.optimiser.first.len()], &state.optimiser.first);
    tensors.push("optimiser/second", &[state.optimiser.second.len()], &state.optimiser.second);
    let mut lengths = Vec::new();
    for (name, values) in names(state.objectives) {
        tensors.push(name, &[values.len()], values);
        lengths.push(values.len());
    }
    let header = Header { version: VERSION, steps, averages: lengths, facts: facts.to_vec() };
    let text = serde_json::to_string(&header).map_err(|error| SpectralError::Setting(error.to_string()))?;
    tensors.note(NOTE, text);
    Ok(tensors.write(path)?)
}

/// Puts a run into the saved state and returns the steps that were done. Refuses the state of another run.
pub(super) fn load<T: Real>(path: &Path, state: Changing<'_, T>, facts: &[(String, Value)]) -> Result<usize> {
    let file = TensorFile::read(path)?;
    let broken = |reason: String| SpectralError::Setting(format!("{}: {reason}", path.display()));
    let text =
        file.note(NOTE)?.ok_or_else(|| broken("not the state of a run that learns eigenfunctions".to_owned()))?;
    let header: Header = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
    if header.version != VERSION {
        return Err(broken(format!("version {} of the format; {VERSION} can be read", header.version)));
    }
    for (name, given) in facts {
        let stored = header.facts.iter().find(|(other, _)| other == name).map_or(&Value::Null, |(_, value)| value);
        if stored != given {
            let (path, what) = (path.to_owned(), name.clone());
            let (stored, given) = (stored.to_string(), given.to_string());
            return Err(NetError::OtherRun { path, what, stored, given }.into());
        }
    }
    let mut parameters = Vec::with_capacity(state.graph.parameters().len());
    for &id in state.graph.parameters() {
        let value = state.graph.value(id);
        parameters.push(file.values(&format!("weights/{}", value.name), &value.meta.shape)?.to_vec::<T>());
    }
    let vector = |name: &str, length: usize| Ok::<_, SpectralError>(file.values(name, &[length])?.to_vec::<T>());
    let first = vector("optimiser/first", state.optimiser.first.len())?;
    let second = vector("optimiser/second", state.optimiser.second.len())?;
    let averages = names(state.objectives);
    if averages.len() != header.averages.len() {
        return Err(broken("the averages of another method".to_owned()));
    }
    for ((name, values), length) in averages.into_iter().zip(header.averages) {
        *values = vector(&name, length)?;
    }
    state.weights.parameters = parameters;
    *state.optimiser = OptimiserState { steps: header.steps as u64, first, second };
    Ok(header.steps)
}
