//! Errors.

/// An input that cannot be used, or a result that cannot be trusted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinalgError {
    /// A value is infinite or not a number.
    #[error("{routine}: the value at row {row}, column {column} is {value}, not a finite number")]
    NotFinite {
        /// The routine that checked.
        routine: &'static str,
        /// The row of the first such value.
        row: usize,
        /// Its column; for an operator, the number of applications before this one.
        column: usize,
        /// The value.
        value: f64,
    },

    /// Two sizes that should agree do not.
    #[error("{routine}: {what} should be {expected}, but is {found}")]
    ShapeMismatch {
        /// The routine that checked.
        routine: &'static str,
        /// What was counted.
        what: &'static str,
        /// The size that was expected.
        expected: usize,
        /// The size that was given.
        found: usize,
    },

    /// A matrix that should be symmetric is not, by more than rounding.
    #[error(
        "{routine}: the matrix is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ by {difference:e}, more than {tolerance:e}"
    )]
    NotSymmetric {
        /// The routine that checked.
        routine: &'static str,
        /// The row of the first such entry.
        row: usize,
        /// Its column.
        column: usize,
        /// By how much the entry and its mirror image differ.
        difference: f64,
        /// How much they may differ.
        tolerance: f64,
    },

    /// More components were requested than there are dimensions.
    #[error("{routine}: {wanted} components were requested, but there are only {available} dimensions")]
    TooManyComponents {
        /// The routine that checked.
        routine: &'static str,
        /// How many were requested.
        wanted: usize,
        /// How many are possible.
        available: usize,
    },

    /// Cholesky meets a pivot that is not positive even with the largest jitter of the ladder.
    #[error(
        "not positive definite: pivot {pivot} is not above rounding even after adding {relative_jitter:e} times the mean of the diagonal"
    )]
    NotPositiveDefinite {
        /// The row of the pivot.
        pivot: usize,
        /// The largest jitter tried, relative to the mean of the diagonal.
        relative_jitter: f64,
    },

    /// A triangular matrix has a zero on its diagonal.
    #[error("singular: pivot {pivot} of the triangular matrix is zero")]
    Singular {
        /// The row of the pivot.
        pivot: usize,
    },

    /// An iteration ended before its components converged.
    #[error("{routine}: {converged} of {wanted} components converged")]
    NotConverged {
        /// The routine that iterated.
        routine: &'static str,
        /// How many converged.
        converged: usize,
        /// How many were wanted.
        wanted: usize,
    },

    /// A linear system was not solved to the requested tolerance.
    #[error(
        "{routine}: not converged after {iterations} products: the relative residual is {residual:.3e}, above {tolerance:e}"
    )]
    NotSolved {
        /// The routine that iterated.
        routine: &'static str,
        /// How often the operator was applied.
        iterations: usize,
        /// The residual relative to the right-hand side.
        residual: f64,
        /// The tolerance.
        tolerance: f64,
    },

    /// An operator that should be positive definite is not.
    #[error("{routine}: not positive definite: direction {iteration} has curvature {curvature:e}; try a larger shift")]
    Indefinite {
        /// The routine that met the direction.
        routine: &'static str,
        /// How often the operator was applied before.
        iteration: usize,
        /// `pᵀAp` of the direction.
        curvature: f64,
    },

    /// A decomposition was computed but does not reproduce its input, or its factors are not orthogonal.
    #[error("{routine}: the {check} of the result is {ratio:.3e} times what rounding explains, more than {limit}")]
    CheckFailed {
        /// The decomposition.
        routine: &'static str,
        /// `residual`, `orthogonality` or `order`.
        check: &'static str,
        /// The test ratio.
        ratio: f64,
        /// The limit.
        limit: f64,
    },
}

/// The result type of every fallible routine of this crate.
pub type Result<T> = std::result::Result<T, LinalgError>;
