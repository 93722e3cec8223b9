//! Export of networks and weights to formats that other tools read: ONNX and safetensors.
//!
//! ```
//! use mercer_net::arch::Mlp;
//! use mercer_net::Network;
//! use mercer_net::network::Batching;
//!
//! let network = Mlp::new(2, &[8], 3).build(0)?;
//! let read = Network::from_onnx_bytes(&network.to_onnx_bytes()?, Batching::Samples)?;
//! assert_eq!(read.n_params(), network.n_params());
//! # Ok::<(), mercer_net::NetError>(())
//! ```

mod edit;
mod functions;
mod onnx;
mod primitives;
mod proto;
mod seal;
mod tensors;

pub(crate) use edit::with_notes;
pub use edit::{Head, with_head, with_parameters};
pub use onnx::onnx;
pub use seal::{EIGENFUNCTIONS, TRAINING, WEIGHTS, is_own_onnx, kind};
pub use tensors::{TensorFile, Tensors};
