//! What approximations of kernels and their spectra cost.

pub(crate) mod residuals;
pub(crate) mod sketches;
pub(crate) mod spectra;
