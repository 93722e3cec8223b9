//! Options that several commands share, as the data of jobs. A flag is defined once, so that it means the same everywhere.

mod choice;
mod data;
mod decoding;
mod kernel;
mod memory;
mod network;
mod node;
mod preprocess;
mod run;
mod selection;
mod spectrum;
mod surrogate;
mod training;

pub(crate) use choice::choice;
pub(crate) use data::{DataOptions, FROM, GRAM, OOD, TestOptions, reference, references};
pub(crate) use decoding::DecodingOptions;
pub(crate) use kernel::{KERNEL, KernelOptions};
pub use memory::parse_bytes;
pub(crate) use network::{ARCH, CheckpointOptions, ImportOptions, NET, PARAMS, ParameterOptions};
pub(crate) use node::NodeOption;
pub(crate) use preprocess::PreprocessOptions;
pub(crate) use run::{PrecisionOption, SeedOption};
pub(crate) use selection::{FoldOptions, LAYER, NEIGHBOURS, PENALTY, PERMUTATIONS};
pub(crate) use spectrum::{ComponentsOption, LandmarksOption};
pub(crate) use surrogate::{SurrogateOptions, TrainingNames};
pub(crate) use training::{StepOptions, WEIGHT_DECAY, with_default};
