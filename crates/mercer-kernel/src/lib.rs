//! Kernels of networks.
//!
//! A kernel is computed in two phases: *prepare* runs once per block of samples (forward, seeded reverse, factors), and
//! *contract* once per pair of blocks (matrix products).

pub mod empirical;
pub mod store;

pub use empirical::{Block, Form, Kind, Ntk};
