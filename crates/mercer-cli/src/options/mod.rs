//! Options that several commands share, and what they open.

mod assign;
mod kernel;
mod memory;
mod network;
mod precision;
mod preprocess;
mod samples;

pub(crate) use kernel::{KernelKind, KernelOptions, Source};
pub(crate) use memory::parse_bytes;
pub(crate) use network::{
    ImportOptions, ParameterOptions, open_architecture, open_network, read_architecture, saved_network,
};
pub(crate) use precision::{Precision, Real};
pub(crate) use preprocess::PreprocessOptions;
pub(crate) use samples::{ClassOptions, DataOptions, Samples};
