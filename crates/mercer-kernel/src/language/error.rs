//! What is wrong with a text, and where.

/// A text that is not a kernel. The message points at the character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}\n  {line}\n  {}", caret(*.place))]
pub struct SyntaxError {
    /// The first character that is wrong, counted from 1.
    pub column: usize,
    /// What is wrong with it, and what was probably meant.
    pub reason: String,
    /// The text around it, without control characters.
    pub line: String,
    /// Where in that line the character is, counted from 1.
    pub place: usize,
}

/// A caret under the character at this place.
fn caret(place: usize) -> String {
    format!("{:>place$}", '^')
}
