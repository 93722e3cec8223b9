//! Explanations and audits: surrogates of networks, and wrong training data.

pub(crate) mod cifar;
pub(crate) mod datamodels;
pub(crate) mod index;
pub(crate) mod kernels;
pub(crate) mod label_audit;
pub(crate) mod poisoned;
mod retrained;
pub(crate) mod surrogates;
