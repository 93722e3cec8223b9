//! Learnt eigenfunctions: networks trained to be the leading eigenfunctions of a kernel.
//!
//! Training uses one network whose outputs are the functions ([`side_by_side`] joins several), [`Draws`] that give
//! batches with a kernel between their samples, and a [`LearningMethod`] that turns outputs into a gradient. [`Learn`] runs it
//! and ends with the Rayleigh–Ritz finish. The results before and after the finish are
//! [`Eigenfunctions`](crate::Eigenfunctions).
//!
//! | method | networks | reference |
//! |---|---|---|
//! | [`LearningMethod::NeuralEf`] | one per function, or one that shares weights | arXiv 2205.00165 |
//! | [`LearningMethod::Nested`] | the same | arXiv 2402.03655 |
//! | [`LearningMethod::Spin`] | the same | arXiv 1806.02215 |
//!
//! Kernels are given as [`Matrices`] or [`FeatureRows`], or are computed [`PerBatch`], and drawn in [`Batches`].
//! [`Pairs`] of views also define a kernel, that of contrastive neural eigenmaps. For the tangent kernel of a network,
//! [`tangents`] are function networks that start as Nyström's eigenfunctions.

mod augment;
mod coupling;
mod draws;
mod join;
mod learn;
mod nested;
pub(crate) mod networks;
mod neural_ef;
mod objective;
mod pairs;
mod passes;
mod ritz;
mod settings;
mod spin;
mod state;
mod tangent;

pub use augment::Augmentation;
pub use coupling::{Between, Coupling, CouplingForm, FeatureRows, Matrices, PerBatch};
pub use draws::{Batches, Draws, Eval, FINISH, SecondMoments};
pub use join::side_by_side;
pub use learn::{Learn, Learnt};
pub use nested::Nesting;
pub use networks::Networks;
pub use pairs::Pairs;
pub use settings::{LearningMethod, LearningSettings};
pub use state::{STATE, clear_state, has_state};
pub use tangent::tangents;

#[cfg(test)]
mod tests;
