//! What a lens refuses.

/// Arrays that a lens cannot look at.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LensError {
    /// The linear algebra refuses: numbers that are not finite, matrices that are not symmetric.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::LinalgError),
    /// Sizes that should agree do not.
    #[error("{what} should have {expected} rows, but has {found}")]
    Rows {
        /// Which array.
        what: &'static str,
        /// The size that fits.
        expected: usize,
        /// The size that was given.
        found: usize,
    },
    /// There is too little to say something from.
    #[error("{what} needs at least {least} samples; there are {found}")]
    TooFew {
        /// What is to be found.
        what: &'static str,
        /// How many it takes.
        least: usize,
        /// How many there are.
        found: usize,
    },
}

/// The result of a lens.
pub type Result<T> = std::result::Result<T, LensError>;
