//! Every machine through one conformance suite, and each against closed forms or other algorithms.

mod beyond;
mod classification;
mod conformance;
mod process;
mod regression;
mod selection;
pub(crate) mod sets;
mod sgd;
