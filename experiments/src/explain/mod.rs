//! Explanations and audits: surrogates of networks, and wrong training data.

pub(crate) mod surrogates;
