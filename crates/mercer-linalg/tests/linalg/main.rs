//! The crate against closed forms, other algorithms and naive loops.

mod cholesky;
mod eigen;
mod factors;
mod lanczos;
mod products;
mod references;
mod verify;
