//! Errors in a kernel expression.

use crate::language::SyntaxError;

/// An error in the text or the numbers of a classic kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassicError {
    /// The text is not a kernel.
    #[error(transparent)]
    Text(#[from] SyntaxError),
    /// The number of lengthscales must be one, or the number of coordinates of a sample.
    #[error("{kernel} has {given} lengthscales, but a sample has {dimensions} numbers; give one, or one for each")]
    Lengthscales {
        /// The kernel as written.
        kernel: String,
        /// The number of lengthscales.
        given: usize,
        /// The number of coordinates of a sample.
        dimensions: usize,
    },
    /// The number of values differs from the number of parameters, or a value is invalid.
    #[error("parameter {name}: {reason}")]
    Parameter {
        /// Which one.
        name: String,
        /// What is wrong.
        reason: String,
    },
}
