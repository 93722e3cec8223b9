//! Errors in a kernel expression, with their position.

/// A text that is not a kernel. The message points to the character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}\n  {line}\n  {}", caret(*.place))]
pub struct SyntaxError {
    /// The first wrong character, counted from 1.
    pub column: usize,
    /// What is wrong with it, and what was probably meant.
    pub reason: String,
    /// The text around it, without control characters.
    pub line: String,
    /// The position of the character in that line, counted from 1.
    pub place: usize,
}

/// A caret under the character at this position.
fn caret(place: usize) -> String {
    format!("{:>place$}", '^')
}
