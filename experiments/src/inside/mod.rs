//! What the layers of a network hold, and how spectra move during training.

mod pictures;
pub(crate) mod probes;
pub(crate) mod shifts;
pub(crate) mod tails;
pub(crate) mod tangent;
mod teacher;
mod texts;
pub(crate) mod training;
