//! Errors of lenses.

/// Arrays that a lens cannot use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LensError {
    /// An error of linear algebra: numbers that are not finite, matrices that are not symmetric.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::LinalgError),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
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
    /// An invalid setting.
    #[error("{name} is {value}, but {reason}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        reason: &'static str,
    },
    /// A class that does not exist.
    #[error("sample {row} is of class {label}, but there are {n_classes} classes")]
    Label {
        /// The sample.
        row: usize,
        /// Its class.
        label: usize,
        /// The number of classes.
        n_classes: usize,
    },
    /// A list refers to a sample that does not exist.
    #[error("{what} {row} refers to sample {index}, but there are {size} samples")]
    Index {
        /// Which list.
        what: &'static str,
        /// The position of the list.
        row: usize,
        /// The sample it refers to.
        index: usize,
        /// The number of samples.
        size: usize,
    },
    /// A number outside the range of its kind.
    #[error("{what} of row {row} is {value}, but {reason}")]
    Range {
        /// What the number is.
        what: &'static str,
        /// Its row.
        row: usize,
        /// The number.
        value: f64,
        /// What it must be.
        reason: &'static str,
    },
}

impl From<mercer_run::Cancelled> for LensError {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::Cancelled
    }
}

/// The result type of lenses.
pub type Result<T> = std::result::Result<T, LensError>;
