//! What approximations of kernels and their spectra cost.

pub(crate) mod sketches;
pub(crate) mod spectra;
