//! Explanations and audits: surrogates of networks, and wrong training data.

mod cifar;
pub(crate) mod index;
pub(crate) mod kernels;
pub(crate) mod surrogates;
