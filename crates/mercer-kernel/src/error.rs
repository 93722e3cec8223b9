//! Errors of kernels.

use crate::classic::ClassicError;
use crate::store::StoreError;
use mercer_net::NetError;

/// An error of this crate. It names the sample, layer, tile or file concerned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The network cannot be run or differentiated.
    #[error(transparent)]
    Network(Box<NetError>),
    /// The data could not be read, or a file could not be written.
    #[error(transparent)]
    Data(Box<mercer_data::DataError>),
    /// A decomposition or a solve failed.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::LinalgError),
    /// A gradient or feature is not finite, although the network's values are.
    #[error("{place} is not finite in sample {sample}")]
    NotFinite {
        /// The kernel.
        place: String,
        /// The row of the data.
        sample: usize,
    },
    /// An entry of the kernel is not finite, although the gradients are.
    #[error("the kernel between samples {row} and {column} is not finite")]
    Overflow {
        /// The row of the data.
        row: usize,
        /// The row of the other sample.
        column: usize,
    },
    /// A network, or a part of it, without a known limit at infinite width.
    #[error(
        "node {node} has no known limit at infinite width: {reason}; the Monte-Carlo kernel (`MonteCarlo`), a mean over random \
         networks of finite width, exists for every network"
    )]
    NoLimit {
        /// The node.
        node: String,
        /// Why.
        reason: String,
    },
    /// A classic kernel with an invalid text or invalid parameters.
    #[error(transparent)]
    Classic(Box<ClassicError>),
    /// The memory limit is too small for the smallest piece of work.
    #[error("{allowed} bytes of memory are too few for one tile; {needed} bytes would do")]
    Memory {
        /// What was allowed.
        allowed: usize,
        /// The smallest sufficient amount.
        needed: usize,
    },
    /// The result does not fit on the disk.
    #[error("the result takes {needed} bytes, but only {free} bytes are free at {place}")]
    Disk {
        /// The folder.
        place: String,
        /// The size of the result.
        needed: u64,
        /// The free space.
        free: u64,
    },
    /// A store could not be read or written, or belongs to other inputs.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// A long computation was cancelled.
    #[error("interrupted")]
    Cancelled,
    /// An invalid setting.
    #[error("{0}")]
    Setting(String),
}

impl From<mercer_run::Cancelled> for KernelError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<NetError> for KernelError {
    fn from(error: NetError) -> Self {
        Self::Network(Box::new(error))
    }
}

impl From<mercer_data::DataError> for KernelError {
    fn from(error: mercer_data::DataError) -> Self {
        Self::Data(Box::new(error))
    }
}

impl From<ClassicError> for KernelError {
    fn from(error: ClassicError) -> Self {
        Self::Classic(Box::new(error))
    }
}

impl From<StoreError> for KernelError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl KernelError {
    /// The same error, with samples counted from `start`, because a block knows only its own rows.
    pub fn shifted(self, start: usize) -> Self {
        match self {
            Self::Network(error) => match *error {
                NetError::NotFinite { place, sample } => NetError::NotFinite { place, sample: sample + start },
                NetError::Input { input, reason } if start > 0 => {
                    let reason = format!("{reason} (samples counted from row {start} of the data)");
                    NetError::Input { input, reason }
                }
                other => other,
            }
            .into(),
            Self::NotFinite { place, sample } => Self::NotFinite { place, sample: sample + start },
            other => other,
        }
    }
}

/// The result type of this crate.
pub type Result<T, E = KernelError> = std::result::Result<T, E>;
