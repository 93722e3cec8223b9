//! Options that several commands share, as the data of jobs.

mod choice;
mod data;
mod kernel;
mod memory;
mod network;
mod preprocess;

pub(crate) use choice::choice;
pub(crate) use data::{ClassOptions, DataOptions, references};
pub(crate) use kernel::KernelOptions;
pub(crate) use memory::parse_bytes;
pub(crate) use network::{ImportOptions, ParameterOptions};
pub(crate) use preprocess::PreprocessOptions;
