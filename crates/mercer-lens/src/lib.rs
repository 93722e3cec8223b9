//! Findings, as pure functions of arrays: what a kernel, a spectrum or a set of predictions says.
//!
//! A lens is one file: a function of arrays that were computed elsewhere, the type of its finding, and its tests. It reads no file, prints
//! nothing and draws no random number that it was not given. Jobs of the `mercer` crate compute the arrays and hand them in.

mod compare;
mod error;

pub use compare::{Extent, Likeness, extent, likeness};
pub use error::{LensError, Result};
