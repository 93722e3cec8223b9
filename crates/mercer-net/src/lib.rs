//! Networks: the graph, its primitives and their derivatives, ONNX, and training.
//!
//! ```
//! use mercer_net::Network;
//! use mercer_net::arch::Mlp;
//! use mercer_net::network::Batching;
//!
//! let network = Mlp::new(2, &[16], 3).build(0)?;
//! let file = network.to_onnx_bytes()?; // or Network::from_onnx("model.onnx")?
//! let read = Network::from_onnx_bytes(&file, Batching::Samples)?;
//! assert_eq!((read.n_params(), read.inputs().len()), (2 * 16 + 16 + 16 * 3 + 3, 1));
//! let outputs = read.predict(&[(&[0.5_f32, -1.0], &[2])], 1, None, None)?;
//! assert_eq!(outputs.shape, [3]);
//! # Ok::<(), mercer_net::NetError>(())
//! ```

pub mod arch;
mod error;
pub mod export;
pub mod graph;
pub mod network;
pub mod op;
pub mod run;
pub mod train;

mod budget;
mod element;
mod onnx;
mod shape;

pub use budget::IMPORT_FLOOR;
pub use element::Element;
pub use error::{NetError, Result};
pub use network::Network;
pub use onnx::{Data as TensorData, Tensor};
pub use shape::numel;
