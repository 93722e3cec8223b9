//! Reading ONNX files.

mod around;
mod detect;
mod external;
mod folded;
mod lower;
mod merged;
mod model;
mod record;
mod tensor;
mod verdict;
pub(crate) mod wire;

pub(crate) use detect::{Detected, Detection, Tied, detect};
pub use lower::NumberKind;
pub(crate) use lower::{InputShape, Request, lower};
pub(crate) use merged::Dropped;
pub(crate) use model::{Dimension, Model, NodeDef, ValueInfo};
pub(crate) use tensor::Surroundings;
pub use tensor::{Data, Tensor};
