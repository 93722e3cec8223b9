//! What approximations of kernels and their spectra cost.

pub(crate) mod pseudo;
pub(crate) mod regression;
pub(crate) mod residuals;
pub(crate) mod sketches;
pub(crate) mod spectra;
