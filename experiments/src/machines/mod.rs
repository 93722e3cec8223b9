//! Machines on kernels, and posteriors.

pub(crate) mod boundaries;
pub(crate) mod functions;
pub(crate) mod iterative;
pub(crate) mod laplace;
pub(crate) mod posteriors;
pub(crate) mod tables;
pub(crate) mod widths;

/// The paper of two of them.
const QADEER: &str = "Qadeer et al. 2023, arXiv 2310.18612";
