//! Eigenvalues and eigenfunctions of kernels.
