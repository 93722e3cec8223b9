//! Kernels of networks.
//!
//! A kernel is computed in two phases: *prepare* runs once per block of samples (forward, seeded reverse, factors), and
//! *contract* once per pair of blocks (matrix products). See [`Kernel`].

pub mod empirical;
mod error;
mod feature;
pub mod infinite;
mod kernel;
mod products;

pub use empirical::{Form, Kind, Ntk, Selection};
pub use error::{KernelError, Result};
pub use feature::{Effort, FeatureMap, Features};
pub use kernel::{Block, Cost, Kernel, Real};
