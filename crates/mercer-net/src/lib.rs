//! Networks: the graph, its primitives, its readings, ONNX and training.

pub mod error;
pub mod graph;
pub mod op;
pub mod run;

mod element;
mod shape;

pub use element::Element;
pub use error::{NetError, Result};
pub use shape::numel;
