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
//!
//! ```
//! use mercer_data::{Dataset, synthetic};
//! use mercer_net::arch::{Activation, Mlp};
//! use mercer_spectral::learnt::{Batches, Learn, Matrices, LearningMethod, LearningSettings, side_by_side};
//!
//! let points = synthetic::uniform(64, 1, -1.0, 1.0, 0)?;
//! let gram = points.dot(&points.t()).mapv(|x| (x as f32 + 1.5).powi(2));
//! let data = [Dataset::from_array("points", points.into_dyn().view())?];
//! let mlp = Mlp::new(1, &[16], 1).activation(Activation::SinCos);
//! let networks = (0..3).map(|seed| mlp.build(seed)).collect::<Result<Vec<_>, _>>()?;
//! let mut kernel = Matrices::new(gram, 1)?;
//! let mut batches = Batches::new(&data, &mut kernel, 64, 0, &mercer_run::Context::new())?;
//! let learnt = Learn::new(LearningSettings::new(LearningMethod::NeuralEf).steps(200)).run(side_by_side(&networks)?, &mut batches)?;
//! let functions = &learnt.after[0];
//! assert!(functions.values()[0] > functions.values()[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
