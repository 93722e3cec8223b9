//! Text for pages. All text of a page passes through [`escape`].
//!
//! Names can be of any length, a page cannot. What is shown is shortened, and the whole text is the title of its element
//! as long as there is room ([`Tips`]).

pub(super) use crate::figure::escape;
use std::cell::Cell;

/// The longest name in a list or a heading of a table, in characters.
pub(super) const NAME: usize = 80;

/// The longest text behind a shortened one, in characters.
pub(super) const WHOLE: usize = 2000;

/// The bytes that all whole texts of a part of a page may take: of its beginning, and of the rest.
const TIPS: usize = 100_000;

/// The room for the whole texts behind shortened ones.
#[derive(Debug)]
pub(super) struct Tips(Cell<usize>);

impl Default for Tips {
    fn default() -> Self {
        Self(Cell::new(TIPS))
    }
}

impl Tips {
    /// A text of at most so many characters, with the whole behind it.
    pub(super) fn text(&self, text: &str, most: usize) -> String {
        let short = shortened(text, most);
        if short.len() == text.len() {
            return escape(text);
        }
        let whole = escape(&shortened(text, WHOLE));
        match self.0.get().checked_sub(whole.len()) {
            Some(left) => {
                self.0.set(left);
                format!("<span title=\"{whole}\">{}</span>", escape(&short))
            }
            None => escape(&short),
        }
    }

    /// An element with such a text; without a class if that is empty.
    pub(super) fn element(&self, name: &str, class: &str, text: &str, most: usize) -> String {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        format!("<{name}{class}>{}</{name}>", self.text(text, most))
    }

    /// A list of names and texts.
    pub(super) fn facts(&self, facts: &[(String, String)]) -> String {
        let rows = facts.iter().map(|(name, text)| {
            format!("<div>{}{}</div>", self.element("dt", "", name, 80), self.element("dd", "", text, 400))
        });
        format!("<dl>{}</dl>", rows.collect::<String>())
    }
}

/// An element with a text that we wrote; without a class if that is empty.
pub(super) fn element(name: &str, class: &str, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<{name}{class}>{}</{name}>", escape(text))
}

/// The beginning of a text, with an ellipsis if it is longer.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
