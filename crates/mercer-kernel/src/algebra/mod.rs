//! Kernels made of kernels: sums, products, multiples and the cosine normalisation.
//!
//! All of them are positive semidefinite because their operands are; for elementwise products of Gram matrices this is
//! Schur's theorem (Schur 1911). A kernel with several [parts](crate::Kernel::parts) can be scaled and normalised part
//! by part; sums and products take whole kernels.

mod normalised;
mod pointwise;
mod scaled;

pub use normalised::Normalised;
pub use pointwise::{Product, Sum};
pub use scaled::Scaled;
