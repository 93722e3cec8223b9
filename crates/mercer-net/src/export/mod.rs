//! Export of networks and weights to formats that other tools read: ONNX and safetensors.

mod functions;
mod onnx;
mod primitives;
mod proto;
mod seal;
mod tensors;

pub use onnx::onnx;
pub use seal::{EIGENFUNCTIONS, TRAINING, WEIGHTS, is_own_onnx, kind};
pub use tensors::{TensorFile, Tensors};
