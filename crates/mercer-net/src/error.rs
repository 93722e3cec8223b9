//! Errors of this crate.

use std::path::PathBuf;

/// An error of this crate. It names the file, node or tensor concerned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The bytes are not a model, or are truncated.
    #[error("not a readable ONNX model: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// A node uses an operator, or a form of it, that is not supported.
    #[error("node {node}: {reason}")]
    Unsupported {
        /// The node, with its operator.
        node: String,
        /// The unsupported part.
        reason: String,
    },
    /// A node would mix samples of a batch.
    #[error(
        "node {node} works along the batch axis and would mix samples; \
         the kernels of a network need a function of one sample"
    )]
    MixesSamples {
        /// The node, with its operator.
        node: String,
    },
    /// The shapes at a node are incompatible.
    #[error("node {node}: {reason}")]
    Shape {
        /// The node, with its operator.
        node: String,
        /// What does not fit.
        reason: String,
    },
    /// A network needs more than an import may use.
    #[error(
        "{place}: this needs {bytes} bytes on top of {spent} bytes before it, and the whole import may use at most \
         {limit} bytes"
    )]
    OverBudget {
        /// The node, tensor or layer.
        place: String,
        /// What it needs.
        bytes: usize,
        /// What was used before it.
        spent: usize,
        /// The limit for the whole import.
        limit: usize,
    },
    /// The constants of a network take too long to compute.
    #[error("{place}: the constants of this network take too long to compute")]
    TooMuchWork {
        /// The node at which the limit was reached.
        place: String,
    },
    /// The given inputs do not match the network.
    #[error("input {input}: {reason}")]
    Input {
        /// The input's name.
        input: String,
        /// What does not fit.
        reason: String,
    },
    /// The network has nothing of this name.
    #[error("the network has no {what} named {name:?}{}", suggest(.near))]
    Unknown {
        /// What was looked for: an input, a node, a parameter.
        what: &'static str,
        /// The name.
        name: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// A value that is not a finite number.
    #[error("{place} is not finite in sample {sample}")]
    NotFinite {
        /// The node, parameter or input.
        place: String,
        /// The row of the data.
        sample: usize,
    },
    /// Training diverged: the loss is no longer a number.
    #[error(
        "the loss became {loss} at {}step {step}; try a smaller learning rate or a warm-up",
        epoch.map_or(String::new(), |epoch| format!("epoch {epoch}, "))
    )]
    Diverged {
        /// The epoch, from 1, if it was one of several.
        epoch: Option<usize>,
        /// The step, from 1; within the epoch if there is one.
        step: usize,
        /// The loss.
        loss: f64,
    },
    /// A long computation was cancelled.
    #[error("interrupted")]
    Cancelled,
    /// A run is resumed with different data or settings.
    #[error("{path} belongs to another run: its {what} was {stored}, but is now {given}")]
    OtherRun {
        /// The state file.
        path: PathBuf,
        /// What differs.
        what: String,
        /// The value in the file.
        stored: String,
        /// The value of this run.
        given: String,
    },
    /// A tensor file does not match the network.
    #[error("{path}: tensor {tensor:?} {reason}")]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What does not fit.
        reason: String,
    },
    /// A saved state from which a run cannot be resumed.
    #[error("{path}: the run cannot be resumed from this file: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The data could not be read, or a file could not be written.
    #[error(transparent)]
    Data(#[from] mercer_data::DataError),
    /// An invalid setting.
    #[error("{0}")]
    Setting(String),
}

fn suggest(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; near matches: {}", names.join(", ")) }
}

/// The result type of this crate.
pub type Result<T, E = NetError> = std::result::Result<T, E>;

impl From<mercer_run::Cancelled> for NetError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}
