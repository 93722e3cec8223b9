//! Machines, posteriors and ensembles through the public interface, in one binary.

mod ensemble;
mod laplace;
mod machines;
mod python;
mod surrogate;
