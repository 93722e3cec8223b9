//! What jobs name: networks, samples, kernels. Each is plain data that can be written down, and opens into the real thing.

mod assign;
pub mod blocks;
mod data;
mod kernel;
mod network;
mod precision;
mod preprocess;
mod samples;
mod standardise;

pub use data::{DataRef, DataSpec, Inputs, Known, Opening};
pub use kernel::{KernelKind, KernelSpec, RandomSpec, Source, SourceSpec};
pub use network::{ParameterSpec, open_architecture, open_network, read_architecture, saved_network};
pub use precision::Precision;
pub use preprocess::{Layout, PreprocessSpec};
pub use samples::Samples;
pub(crate) use samples::fingerprint_of_labels;
