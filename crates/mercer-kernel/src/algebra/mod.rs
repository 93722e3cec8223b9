//! Kernels made of kernels: sums, products, multiples and the cosine normalisation.
//!
//! All of them are positive semidefinite because their operands are: a product of Gram matrices element by element is
//! (Schur 1911). A kernel that comes in several [parts](Kernel::parts) can be scaled and normalised, part by part; sums and
//! products are of whole kernels.

mod normalised;
mod pointwise;
mod scaled;

pub use normalised::Normalised;
pub use pointwise::{Product, Sum};
pub use scaled::Scaled;
