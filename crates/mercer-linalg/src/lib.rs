//! Dense and matrix-free linear algebra on `ndarray` views, over `faer`.
//!
//! This is the only Mercer crate that calls `faer`, through non-generic functions per scalar, so that no other crate
//! compiles it again. Inputs are checked before the work and results after it. Repairs, such as jitter, are part of the
//! result. Everything runs on one thread: parallelism lives above, across tiles and shards.
//!
//! | routine | result |
//! |---|---|
//! | [`matmul`], [`matmul_into`], [`gemm`], [`syrk`] | products |
//! | [`cholesky`] | `A + σI = L·Lᵀ`, with the jitter `σ` that was needed |
//! | [`symmetric_eigen`] | `A = U·diag(λ)·Uᵀ`, largest first |
//! | [`top_eigen`], [`Lanczos`] | the largest eigenpairs, of a matrix or a [`LinearOperator`] |
//! | [`Randomised`] | approximations of them from a few products with a block of vectors |
//! | [`StochasticLanczos`] | the density of a spectrum and traces of functions, from products with random vectors |
//! | [`hutch_plus_plus`] | the trace, from a given number of products |
//! | [`conjugate_gradient`], [`ConjugateGradient`] | the solution of `(A + σI)·x = b`, from products with `A` alone |
//! | [`PivotedCholesky`] | `A ≈ F·Fᵀ` of low rank, from few columns of `A` |
//! | [`thin_svd`], [`thin_qr`] | `A = U·diag(σ)·Vᵀ`, `A = Q·R` |
//! | [`elementary`] | exp, ln, tanh, sigmoid, sin, cos, acos, erf on slices |
//! | [`verify`] | residual and orthogonality ratios of all of these |
//!
//! ```
//! use mercer_linalg::{cholesky, symmetric_eigen};
//! use ndarray::array;
//!
//! let a = array![[2.0_f64, 1.0], [1.0, 2.0]];
//! assert!((symmetric_eigen(a.view())?.values[0] - 3.0).abs() < 1e-12);
//! let x = cholesky(a.view())?.solve(array![[3.0], [3.0]].view())?;
//! assert!((x[[0, 0]] - 1.0).abs() < 1e-12);
//! # Ok::<(), mercer_linalg::LinalgError>(())
//! ```

mod cholesky;
#[doc(hidden)]
pub mod compiled;
mod conjugate_gradient;
mod eigen;
pub mod elementary;
mod error;
mod input;
mod matmul;
pub mod memory;
mod order;
mod pivoted;
mod qr;
pub mod quadrature;
mod random;
mod scalar;
pub mod simd;
mod svd;
mod syrk;
mod trace;
pub mod verify;

pub use cholesky::{
    Cholesky, LADDER, LADDER_F32, Triangle, cholesky, cholesky_shifted, cholesky_with_ladder, solve_triangular,
};
pub use conjugate_gradient::{BlockSolution, ConjugateGradient, Preconditioner, Solution, conjugate_gradient};
pub use eigen::{
    Eigen, Lanczos, LinearOperator, Node, Randomised, SpectralDensity, StochasticLanczos, TopEigen, Watched,
    symmetric_eigen, top_eigen,
};
pub use error::{LinalgError, Result};
pub use input::{check_finite, check_symmetric};
pub use matmul::{Strided, gemm, gemm_rows, matmul, matmul_into};
pub use pivoted::{LowRankInverse, PivotedCholesky};
pub use qr::{Qr, thin_qr};
pub use scalar::Scalar;
pub use svd::{Svd, thin_svd};
pub use syrk::{mirror_lower, syrk, syrk_into};
pub use trace::{TraceEstimate, hutch_plus_plus};
