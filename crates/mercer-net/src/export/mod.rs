//! Networks and weights to files that other tools read: ONNX and safetensors.

mod tensors;

pub(crate) use tensors::{TensorFile, Tensors};
