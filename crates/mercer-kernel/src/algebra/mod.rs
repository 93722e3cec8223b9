//! Kernels made of kernels: sums, products, multiples and the cosine normalisation.
//!
//! All of them are positive semidefinite because their operands are; for elementwise products of Gram matrices this is
//! Schur's theorem (Schur 1911). A kernel with several [parts](crate::Kernel::parts) can be scaled and normalised part
//! by part; sums and products take whole kernels.
//!
//! ```
//! use mercer_data::Dataset;
//! use mercer_kernel::classic::{Classic, Formula};
//! use mercer_kernel::gram::Gram;
//! use mercer_kernel::{Normalised, Scaled, Sum};
//! use mercer_run::Context;
//! use std::sync::Arc;
//!
//! let linear = Arc::new(Classic::<f64>::new(&"linear()".parse::<Formula>()?, 1)?);
//! let cosine = Arc::new(Normalised::new(linear.clone()));
//! let kernel = Sum::new(vec![linear, Arc::new(Scaled::new(cosine, 0.5)?)])?;
//! let points = [Dataset::from_array("points", ndarray::array![[2.0], [3.0]].into_dyn().view())?];
//! // κ(2, 3) = 2·3 + ½.
//! assert!((Gram::new(&kernel, &points).to_kernel(&Context::new())?[[0, 1]] - 6.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod maps;
mod normalised;
mod pointwise;
mod scaled;

pub(crate) use maps::{Joined, Times, UnitLength};
pub use normalised::Normalised;
pub use pointwise::{Product, Sum};
pub use scaled::Scaled;
