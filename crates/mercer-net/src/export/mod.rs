//! Networks and weights to files that other tools read: ONNX and safetensors.

mod functions;
mod onnx;
mod primitives;
mod proto;
mod tensors;

pub use onnx::onnx;
pub use tensors::{TensorFile, Tensors};
