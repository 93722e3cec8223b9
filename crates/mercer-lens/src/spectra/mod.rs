//! Spectra of weights and kernels: what training has added to noise.
//!
//! | file | question |
//! |---|---|
//! | [`MarchenkoPastur`], [`bulk()`], [`shuffled`] | which eigenvalues are more than noise, and how strong? |
//! | [`power_law`], [`hill`] | does the spectrum fall like a power? |
//! | [`kind()`] | bulk, spikes or heavy tail? |
//! | [`size()`] | how many dimensions does a matrix use? |
//! | [`target_alignment`], [`cosine`], [`captured`], [`principal_angles`] | are eigenvectors those of the task? |
//! | [`compare_quantiles`] | how do two spectra differ? |
//! | [`drift()`] | how far has a matrix moved? |
//! | [`smoothed`] | what does a density look like that is known from products only? |
//!
//! Eigenvalues of a matrix `W` with `h` rows and `d` columns are those of `WWᵀ/d` throughout ([`eigenvalues`]).

mod alignment;
mod bulk;
mod density;
mod drift;
mod kind;
mod law;
mod normal;
mod quantiles;
mod size;
mod tail;

pub use alignment::{TargetAlignment, captured, cosine, principal_angles, target_alignment};
pub use bulk::{AgainstShuffled, Bulk, Spike, against_shuffled, bulk, eigenvalues, shuffled, spike_strength, squared};
pub use density::smoothed;
pub use drift::{Drift, drift};
pub use kind::{SpectrumKind, is_heavy, kind};
pub use law::MarchenkoPastur;
pub use quantiles::{QuantileComparison, QuantilePair, compare_quantiles};
pub use size::{Size, size};
pub use tail::{Hill, Likelihoods, PowerLaw, hill, power_law};
