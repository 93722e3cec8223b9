//! Kernel machines in dual form: every score is a sum over training samples.
//!
//! ```text
//! score_c(x) = Σᵢ W_ic κ(x, xᵢ) + b_c
//! ```
//!
//! The share of a training sample in a score is exact ([`DualMachine::attribute`]). So is the change of the score when
//! the sample is left out ([`Influence`]): in closed form for ridge regression, by Newton's method for the multinomial
//! model.
//!
//! | | |
//! |---|---|
//! | [`DualGlm`] | multinomial logistic regression on soft targets |
//! | [`DualRidge`] | ridge regression |
//! | [`PenaltyNorm`] | what the penalty of [`DualGlm`] measures: the weights, or the function |
//! | [`PenaltyChoice`], [`DualRidge::choose`] | the penalty by cross-validation |
//! | [`RidgeInfluence`], [`GlmInfluence`], [`Removal`] | the machine without some of its samples |
//!
//! Samples are [`DualRows`]: a Gram matrix, or features, for which no matrix of side N is formed.

mod factor;
mod glm;
mod influence;
mod machine;
mod newton;
mod penalty;
mod ridge;
mod rows;
mod targets;

pub use glm::DualGlm;
pub use influence::{GlmInfluence, Influence, Removal, RidgeInfluence};
pub use machine::{DualMachine, PenaltyNorm};
pub use penalty::PenaltyChoice;
pub use ridge::DualRidge;
pub use rows::DualRows;
pub use targets::one_hot;
