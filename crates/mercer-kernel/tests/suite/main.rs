//! Kernels, Gram matrices and stores through the public interface, in one binary.

mod classic;
mod conformance;
mod golden;
mod gram;
mod idioms;
mod infinite;
mod language;
mod montecarlo;
mod python;
mod sketch;
