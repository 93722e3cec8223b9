//! Errors of this crate.

use mercer_kernel::KernelError;
use mercer_kernel::store::StoreError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpectralError {
    /// A kernel could not be computed.
    #[error(transparent)]
    Kernel(Box<KernelError>),
    /// A decomposition failed, or its input cannot be used.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::LinalgError),
    /// Data could not be read, or a file could not be written.
    #[error(transparent)]
    Data(Box<mercer_data::DataError>),
    /// A network could not be built, trained, read or written.
    #[error(transparent)]
    Network(Box<mercer_net::NetError>),
    /// Samples of the wrong shape.
    #[error("input {input} has {found} numbers for {samples} samples, but samples must have shape {expected:?}")]
    Input {
        /// Which input, counted from 0.
        input: usize,
        /// The count of numbers that were given.
        found: usize,
        /// The number of samples.
        samples: usize,
        /// The shape of a sample.
        expected: Vec<usize>,
    },
    /// The wrong number of inputs.
    #[error("{found} inputs were given, but the functions have {expected}")]
    Inputs {
        /// How many were given.
        found: usize,
        /// How many the functions have.
        expected: usize,
    },
    /// The kernel is zero on the data, or has no positive eigenvalue.
    #[error("the kernel has no positive eigenvalue on these {rows} rows: the largest is {largest:e}")]
    NoSpectrum {
        /// Rows of the matrix.
        rows: usize,
        /// The largest eigenvalue, over the number of rows.
        largest: f64,
    },
    /// A method for positive semidefinite kernels was given an indefinite one.
    #[error(
        "{method}: the kernel is not positive semidefinite on these data: its residual diagonal falls to {least:.3e} of \
         its largest entry"
    )]
    Indefinite {
        /// The method.
        method: &'static str,
        /// The lowest entry, relative to the largest one.
        least: f64,
    },
    /// A decomposition that does not fit into memory.
    #[error("{what} of {rows} × {columns} numbers need about {needed} bytes, but only {allowed} may be used")]
    Memory {
        /// What is decomposed.
        what: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// Peak bytes.
        needed: usize,
        /// Three quarters of what is free.
        allowed: usize,
    },
    /// The functions are sections of a kernel that was not given, or of a different kernel.
    #[error("{place}: {reason}")]
    OtherKernel {
        /// The folder.
        place: String,
        /// What is missing or different.
        reason: String,
    },
    /// A long computation was cancelled.
    #[error("interrupted")]
    Cancelled,
    /// An invalid setting.
    #[error("{0}")]
    Setting(String),
}

impl From<mercer_run::Cancelled> for SpectralError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<KernelError> for SpectralError {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Cancelled => Self::Cancelled,
            other => Self::Kernel(Box::new(other)),
        }
    }
}

impl From<mercer_data::DataError> for SpectralError {
    fn from(error: mercer_data::DataError) -> Self {
        Self::Data(Box::new(error))
    }
}

impl From<mercer_net::NetError> for SpectralError {
    fn from(error: mercer_net::NetError) -> Self {
        Self::Network(Box::new(error))
    }
}

impl From<StoreError> for SpectralError {
    fn from(error: StoreError) -> Self {
        KernelError::from(error).into()
    }
}

/// The result type of this crate.
pub type Result<T, E = SpectralError> = std::result::Result<T, E>;
