//! What can go wrong on the way to eigenfunctions.

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
    /// Samples that do not have the shape the functions were made for.
    #[error("input {input} has {found} numbers for {samples} samples; samples of shape {expected:?} are needed")]
    Input {
        /// Which input, counted from 0.
        input: usize,
        /// The numbers that were given.
        found: usize,
        /// For so many samples.
        samples: usize,
        /// The shape of a sample.
        expected: Vec<usize>,
    },
    /// Another number of inputs than the functions have.
    #[error("{found} inputs were given, but the functions have {expected}")]
    Inputs {
        /// How many were given.
        found: usize,
        /// How many there are.
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
    /// A method for positive semidefinite kernels met one that is not.
    #[error(
        "{method}: the kernel is not positive semidefinite on these data: what is left of its diagonal falls to {least:.3e} of \
         its largest entry"
    )]
    Indefinite {
        /// The method.
        method: &'static str,
        /// The lowest entry, relative to the largest one.
        least: f64,
    },
    /// A decomposition that does not fit into memory.
    #[error("{what} of {rows} × {columns} numbers need some {needed} bytes, but {allowed} may be used")]
    Memory {
        /// What is taken apart.
        what: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// Bytes at the highest.
        needed: usize,
        /// Three quarters of what is free.
        allowed: usize,
    },
    /// The functions are sections of a kernel that was not given, or of another one.
    #[error("{place}: {reason}")]
    OtherKernel {
        /// The folder.
        place: String,
        /// What is missing or different.
        reason: String,
    },
    /// A long computation was called off.
    #[error("interrupted")]
    Cancelled,
    /// A setting that makes no sense.
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

/// The result of this crate's fallible calls.
pub type Result<T, E = SpectralError> = std::result::Result<T, E>;
