//! What can go wrong with a network.

use std::path::PathBuf;

/// An error of this crate. It names the file, the node or the tensor it speaks of.
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
    /// The bytes are not a model, or break off.
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
        /// What is not supported.
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
    /// The shapes at a node do not fit together.
    #[error("node {node}: {reason}")]
    Shape {
        /// The node, with its operator.
        node: String,
        /// What does not fit.
        reason: String,
    },
    /// A network asks for more than an import may make.
    #[error(
        "{place}: this needs {bytes} bytes after {spent} for the rest, and all that is made of this network may take \
         {limit} bytes"
    )]
    OverBudget {
        /// The node, tensor or layer.
        place: String,
        /// What it asks for.
        bytes: usize,
        /// What was made before it.
        spent: usize,
        /// The limit for all of it.
        limit: usize,
    },
    /// The constants of a network take longer to compute than an import may.
    #[error("{place}: the constants of this network take too long to compute")]
    TooMuchWork {
        /// The node at which it was too much.
        place: String,
    },
    /// The inputs given do not fit the network.
    #[error("input {input}: {reason}")]
    Input {
        /// The input's name.
        input: String,
        /// What does not fit.
        reason: String,
    },
    /// A name that the network does not have.
    #[error("the network has no {what} named {name:?}{}", suggest(.near))]
    Unknown {
        /// What was looked for: an input, a node, a parameter.
        what: &'static str,
        /// The name.
        name: String,
        /// Names that are close.
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
    /// A long computation was called off.
    #[error("interrupted")]
    Cancelled,
    /// A run is to be resumed with something other than what it was begun with.
    #[error("{path} belongs to another run: its {what} was {stored}, now it is {given}")]
    OtherRun {
        /// The state file.
        path: PathBuf,
        /// What differs.
        what: String,
        /// As it is in the file.
        stored: String,
        /// As it was asked for.
        given: String,
    },
    /// A file of tensors does not fit the network.
    #[error("{path}: tensor {tensor:?} {reason}")]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What does not fit.
        reason: String,
    },
    /// The state of a run that cannot be gone on with.
    #[error("{path}: the run cannot go on from this file: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The data could not be read, or a file could not be written.
    #[error(transparent)]
    Data(#[from] mercer_data::DataError),
    /// A setting that makes no sense.
    #[error("{0}")]
    Setting(String),
}

fn suggest(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; near matches: {}", names.join(", ")) }
}

/// The result of this crate's fallible calls.
pub type Result<T, E = NetError> = std::result::Result<T, E>;

impl From<mercer_run::Cancelled> for NetError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}
