//! Classic kernels: closed-form functions of two vectors, their sums and products, and gradients for tuning them.
//!
//! With `s = x·x'`, `r² = Σ (x_k − x'_k)²/ℓ_k²` and `θ` the angle between `x` and `x'`:
//!
//! | written | kernel |
//! |---|---|
//! | `linear()` | `s` |
//! | `polynomial(degree=3, scale=1, bias=1)` | `(scale·s + bias)^degree` (Deng et al. 2022, arXiv 2205.00165, §4.1) |
//! | `rbf(lengthscale=1)` | `exp(−r²/2)` |
//! | `laplacian(lengthscale=1)` | `exp(−Σ \|x_k − x'_k\|/ℓ_k)`; scikit-learn's γ is `1/ℓ` |
//! | `matern12`, `matern32`, `matern52` `(lengthscale=1)` | `e^{−r}`, `(1 + √3r) e^{−√3r}`, `(1 + √5r + 5r²/3) e^{−√5r}` |
//! | `rational_quadratic(lengthscale=1, alpha=1)` | `(1 + r²/(2α))^{−α}` |
//! | `periodic(lengthscale=1, period=1)` | `exp(−2 Σ sin²(π(x_k − x'_k)/period)/ℓ_k²)` (MacKay 1998) |
//! | `cosine()` | `cos θ`, 0 for a vector without direction |
//! | `arccosine(order=1)` | `‖x‖ⁿ‖x'‖ⁿ J_n(θ)/π`, n = 0, 1, 2 (Cho and Saul 2009, equations 3 to 7) |
//! | `2.5` | that number: a constant kernel, or a factor |
//!
//! `periodic` is a function of each coordinate's difference. In one dimension it is scikit-learn's `ExpSineSquared`; that
//! puts the Euclidean distance into the sine in more dimensions, which is not positive semidefinite. White noise is
//! not here, because it is no function of two vectors: machines add their own to the diagonal.
//!
//! Squared distances come from a matrix product where they are large against the vectors, and from differences where the
//! product would cancel, so that every one has nearly all digits, and equal vectors have distance 0 exactly. Angles are
//! found from chords of unit vectors, because the arc cosine loses half of the digits near 1 and −1.
//!
//! An [`Formula`] is the kernel as a formula: parsed, printed, differentiated. A [`Classic`] is the same as a
//! [`Kernel`](crate::Kernel) for samples of a known size.
//!
//! ```
//! use mercer_kernel::classic::Formula;
//! use ndarray::array;
//!
//! let kernel: Formula = "rbf(lengthscale=2) + 0.1*linear()".parse()?;
//! let x = array![[0.0, 0.0], [2.0, 0.0]];
//! let gram = kernel.gram(x.view())?;
//! assert!((gram[[0, 1]] - (-0.5f64).exp()).abs() < 1e-15 && gram[[1, 1]] == 1.4);
//! // Σ G_ij ∂κ_ij/∂log θ for the lengthscale and the factor.
//! let gradient = kernel.gradient(x.view(), array![[0.0, 1.0], [0.0, 1.0]].view())?;
//! assert!((gradient[0] - (-0.5f64).exp()).abs() < 1e-15 && (gradient[1] - 0.4).abs() < 1e-15);
//! # Ok::<(), mercer_kernel::KernelError>(())
//! ```

mod catalogue;
mod error;
mod expression;
mod gradient;
mod kernel;
mod leaf;
mod memory;
mod pairs;
mod parse;
mod shape;

pub use catalogue::help;
pub use error::ClassicError;
pub use expression::{Formula, KernelParameter};
pub use kernel::Classic;
