//! The networks, samples and kernels that jobs name. Each is plain data that can be serialised, and can be opened.
//!
//! ```
//! use mercer::data::Dataset;
//! use mercer::spec::{DataRef, Inputs};
//!
//! let array = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
//! let inputs = Inputs::none().with("x", Dataset::from_array("x", array.view().into_dyn())?);
//! assert_eq!(DataRef::given("x").open(&inputs)?.shape(), [2, 2]);
//! assert!(DataRef::given("y").open(&inputs).is_err());
//! # Ok::<(), mercer::Error>(())
//! ```

mod assign;
pub(crate) mod blocks;
mod data;
mod decoding;
mod kernel;
mod layers;
mod logits;
mod network;
mod precision;
mod preprocess;
mod samples;
mod standardise;
mod weights;

pub use data::{DataRef, DataSpec, Inputs, Known, Opening};
pub use decoding::DecodingSpec;
pub use kernel::{KernelSpec, NetworkSource};
pub(crate) use layers::Layers;
pub(crate) use logits::NetworkLogits;
pub(crate) use network::load_weights;
pub use network::{ParameterSpec, open_architecture, open_network, read_architecture, saved_network};
pub use precision::Precision;
pub use preprocess::{Layout, PreprocessSpec};
pub(crate) use samples::Samples;
pub(crate) use samples::{fingerprint_of_inputs, fingerprint_of_labels};
pub(crate) use weights::{WeightMatrix, weight_matrices};
