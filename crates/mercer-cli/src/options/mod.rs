//! Options that several commands share, as the data of jobs. A flag is defined once, so that it means the same everywhere.

mod choice;
mod data;
mod kernel;
mod memory;
mod network;
mod node;
mod preprocess;
mod run;
mod spectrum;
mod training;

pub(crate) use choice::choice;
pub(crate) use data::{DataOptions, GRAM, TestOptions, reference, references};
pub(crate) use kernel::KernelOptions;
pub use memory::parse_bytes;
pub(crate) use network::{ARCH, ImportOptions, NET, ParameterOptions};
pub(crate) use node::NodeOption;
pub(crate) use preprocess::PreprocessOptions;
pub(crate) use run::{PrecisionOption, SeedOption};
pub(crate) use spectrum::{ComponentsOption, LandmarksOption};
pub(crate) use training::{StepOptions, with_default};
