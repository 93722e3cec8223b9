//! Lenses: findings about kernels, spectra and predictions, as pure functions of arrays.
//!
//! A lens is one file: a function of arrays that were computed elsewhere, the type of its finding, and its tests. It
//! reads no files, prints nothing and draws no random numbers except from a seed it is given. Jobs of the `mercer`
//! crate compute the arrays and pass them in.
//!
//! | lens | question |
//! |---|---|
//! | [`extent`], [`likeness`], [`kernel_likeness`] | how similar are two kernels? |
//! | [`block_mass`], [`Linearised`] | can a scalar kernel stand in for one with a matrix per pair; what do both predict? |
//! | [`cka`] | the same from features or strips of Gram matrices, and could it be chance? |
//! | [`spectra`] | bulk, spikes or heavy tail; how strong, how large, aligned with what, and how far from before? |
//! | [`faithfulness()`], [`local_gaps`] | how far is a surrogate from its network, and where? |
//! | [`attributions`], [`summarise`] | which training samples does a score rest on? |
//! | [`neighbours`] | which training samples have the largest kernel values? |
//! | [`forensics`] | which test samples resemble known poison? |
//! | [`audit`] | which training labels look wrong, and why? |
//! | [`duplicates`] | which samples are copies, and do their labels agree? |
//! | [`signatures`] | which training samples look like unknown poison? |
//! | [`lds`], [`removal`] | do attribution scores predict what happens when training data is left out? |
//! | [`sanity`] | do scores depend on what the network has learnt? |
//! | [`probe`] | what can simple classifiers read from a layer, and from how few directions? |
//! | [`dimension`], [`collapse`] | how many dimensions does a layer use, and how far has it collapsed? |
//! | [`shift`] | are two sets of samples alike, and if not, which samples, where and why? |
//!
//! ```
//! let gram = ndarray::array![[2.0, 1.0], [1.0, 2.0]];
//! let found = mercer_lens::extent(gram.view(), f64::EPSILON)?;
//! assert!((found.lambda_max - 3.0).abs() < 1e-12 && (found.condition.unwrap() - 3.0).abs() < 1e-9);
//! # Ok::<(), mercer_lens::LensError>(())
//! ```

mod arrays;
mod attribution;
pub mod audit;
pub mod average;
mod checks;
pub mod cka;
pub mod collapse;
mod compare;
pub mod dimension;
pub mod duplicates;
mod error;
mod faithfulness;
pub mod forensics;
pub mod lds;
mod local;
pub mod neighbours;
pub mod probe;
pub mod ranks;
pub mod removal;
pub mod sanity;
pub mod shift;
pub mod signatures;
pub mod spectra;

pub use attribution::{Distribution, Example, Grouping, Summary, attributions, summarise};
pub use compare::{
    BlockMass, Extent, Likeness, Linearised, Valued, block_mass, extent, kernel_likeness, likeness, relative_difference,
};
pub use error::{LensError, Result};
pub use faithfulness::{Bootstrap, Faithfulness, Line, SoftmaxTau, decisions, faithfulness, isotonic, log_odds};
pub use local::{Doubt, LARGE, LocalGap, local_gaps};
