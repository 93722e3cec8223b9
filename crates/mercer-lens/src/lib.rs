//! Lenses: findings about kernels, spectra and predictions, as pure functions of arrays.
//!
//! A lens is one file: a function of arrays that were computed elsewhere, the type of its finding, and its tests. It
//! reads no files, prints nothing and draws no random numbers of its own. Jobs of the `mercer` crate compute the arrays
//! and pass them in.

mod compare;
mod error;

pub use compare::{Extent, Likeness, extent, likeness};
pub use error::{LensError, Result};
