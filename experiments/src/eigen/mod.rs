//! Eigenfunctions.

pub(crate) mod codes;
pub(crate) mod growth;
pub(crate) mod line;
pub(crate) mod mnist;
pub(crate) mod moons;
mod problem;
pub(crate) mod tangent_kernel;

/// The paper of most of them.
const NEURALEF: &str =
    "Deng, Shi and Zhu 2022, NeuralEF: deconstructing kernels by deep neural networks, arXiv 2205.00165";
