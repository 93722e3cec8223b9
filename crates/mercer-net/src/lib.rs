//! Networks: the graph, its primitives and their derivatives, ONNX, and training.

pub mod arch;
pub mod error;
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
