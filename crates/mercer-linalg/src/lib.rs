//! Dense and matrix-free linear algebra on `ndarray` views, over `faer`.
//!
//! This is the only crate of Mercer that calls `faer`, through non-generic functions per scalar, so that no other crate
//! compiles it again. Inputs are checked before the work and results after it; what is repaired is returned.

mod matmul;
mod scalar;
pub mod simd;

pub use matmul::{Strided, gemm, gemm_rows, matmul, matmul_into};
pub use scalar::Scalar;
