//! The crate against closed forms, other algorithms and naive loops.

mod cholesky;
mod conjugate_gradient;
mod eigen;
mod factors;
mod lanczos;
mod products;
mod references;
mod stochastic;
mod verify;
