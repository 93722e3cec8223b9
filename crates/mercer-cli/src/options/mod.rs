//! Options that several commands share, as the data of jobs.

mod data;
mod kernel;
mod memory;
mod network;
mod precision;
mod preprocess;

pub(crate) use data::{ClassOptions, DataOptions, references};
pub(crate) use kernel::KernelOptions;
pub(crate) use memory::parse_bytes;
pub(crate) use network::{ImportOptions, ParameterOptions};
pub(crate) use precision::parse_precision;
pub(crate) use preprocess::PreprocessOptions;
