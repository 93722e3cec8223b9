//! Reading ONNX files.

mod detect;
mod external;
mod lower;
mod model;
mod tensor;
mod wire;

pub(crate) use detect::{Detected, detect, folded_normalisations};
pub use lower::Kind;
pub(crate) use lower::{InputShape, Request, lower};
pub(crate) use model::{Dimension, Model, ValueInfo};
pub(crate) use tensor::Surroundings;
pub use tensor::{Data, Tensor};
