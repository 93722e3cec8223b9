//! Explanations and audits: surrogates of networks, and wrong training data.
