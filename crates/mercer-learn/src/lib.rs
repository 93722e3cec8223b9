//! Machines on kernels: regression, classification, uncertainty, metrics.
