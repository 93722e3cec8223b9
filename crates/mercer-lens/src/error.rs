//! Errors of lenses.

/// Arrays that a lens cannot use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LensError {
    /// An error of linear algebra: numbers that are not finite, matrices that are not symmetric.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::LinalgError),
    /// Sizes that should agree do not.
    #[error("{what} should have {expected} rows, but has {found}")]
    Rows {
        /// Which array.
        what: &'static str,
        /// The size that was expected.
        expected: usize,
        /// The size that was given.
        found: usize,
    },
    /// A class that does not exist.
    #[error("class {class} does not exist; there are {n_classes}")]
    Class {
        /// Its number.
        class: usize,
        /// The number of classes.
        n_classes: usize,
    },
    /// There are too few samples.
    #[error("{what} needs at least {least} samples, but there are {found}")]
    TooFew {
        /// The measure.
        what: &'static str,
        /// How many it needs.
        least: usize,
        /// How many there are.
        found: usize,
    },
}

/// The result type of lenses.
pub type Result<T> = std::result::Result<T, LensError>;
