//! What the layers of a network hold, and how spectra move during training.

mod pictures;
pub(crate) mod probes;
pub(crate) mod tails;
pub(crate) mod tangent;
mod teacher;
pub(crate) mod training;
