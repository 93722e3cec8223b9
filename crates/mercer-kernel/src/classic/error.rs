//! What can be wrong with a kernel expression.

/// An error in the text or the numbers of a classic kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassicError {
    /// The text is not a kernel.
    #[error("column {column}: {reason}\n  {line}\n  {}", caret(*.place))]
    Text {
        /// The character that is to blame, counted from 1.
        column: usize,
        /// What is wrong with it, and what could be meant.
        reason: String,
        /// The text around it, without control characters.
        line: String,
        /// Where in that line the character is, counted from 1.
        place: usize,
    },
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

/// A caret under the character at this place.
fn caret(place: usize) -> String {
    format!("{:>place$}", '^')
}
