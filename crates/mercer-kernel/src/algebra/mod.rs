//! Kernels made of kernels: sums, products, multiples and the cosine normalisation.
//!
//! All of them are positive semidefinite because their operands are; for elementwise products of Gram matrices this is
//! Schur's theorem (Schur 1911). A kernel with several [parts](crate::Kernel::parts) can be scaled and normalised part
//! by part; sums and products take whole kernels.
//!
//! ```
//! use mercer_kernel::classic::{Classic, Formula};
//! use mercer_kernel::{Kernel, Normalised, Scaled, Sum};
//! use std::sync::Arc;
//!
//! let linear = Arc::new(Classic::<f64>::new(&"linear()".parse::<Formula>()?, 1)?);
//! let cosine = Arc::new(Normalised::new(linear.clone()));
//! let kernel = Sum::new(vec![linear, Arc::new(Scaled::new(cosine, 0.5)?)])?;
//! // κ(2, 3) = 2·3 + ½.
//! assert!((kernel.gram(&[&[2.0, 3.0]], 2)?[1] - 6.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod normalised;
mod pointwise;
mod scaled;

pub use normalised::Normalised;
pub use pointwise::{Product, Sum};
pub use scaled::Scaled;
