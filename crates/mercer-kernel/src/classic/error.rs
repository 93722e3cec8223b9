//! What can be wrong with a kernel expression.

use crate::language::SyntaxError;

/// An error in the text or the numbers of a classic kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassicError {
    /// The text is not a kernel.
    #[error(transparent)]
    Text(#[from] SyntaxError),
    /// As many lengthscales as the samples have numbers are needed, or one.
    #[error("{kernel} has {given} lengthscales, but a sample has {dimensions} numbers; give one, or one for each")]
    Lengthscales {
        /// The kernel as written.
        kernel: String,
        /// The number of lengthscales.
        given: usize,
        /// The numbers of a sample.
        dimensions: usize,
    },
    /// Other values for the parameters than there are parameters, or one that no parameter can have.
    #[error("parameter {name}: {reason}")]
    Parameter {
        /// Which one.
        name: String,
        /// What is wrong.
        reason: String,
    },
}
