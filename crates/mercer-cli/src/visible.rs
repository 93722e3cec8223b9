//! Makes text from files safe to print on a terminal.
//!
//! Names in a file can contain anything: escape sequences that clear the screen or rename the window, marks that
//! reverse the direction of text, line breaks that imitate our own output. All output goes through this module, so such
//! characters are printed as escapes (`\u{1b}`).

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character controls the terminal or the text around it.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, kept: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.chars().all(|letter| kept(letter) || !acts(letter)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if acts(letter) && !kept(letter) { escape(&mut shown, letter) } else { shown.push(letter) }
    }
    Cow::Owned(shown)
}

fn as_debug(shown: &mut String, letter: char) {
    let _ = write!(shown, "{}", letter.escape_unicode());
}

/// Text of several lines.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| matches!(letter, '\n' | '\t'), as_debug)
}

/// A part of a line, such as a name.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false, as_debug)
}

/// JSON, with the escapes that JSON has.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |letter| letter == '\n',
        |shown, letter| {
            let _ = write!(shown, "\\u{:04x}", u32::from(letter));
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_and_the_rest_is_left() {
        let name = "a\u{1b}[2Jb\nc\u{9b}d\u{202e}e";
        assert_eq!(text(name), "a\\u{1b}[2Jb\nc\\u{9b}d\\u{202e}e");
        assert_eq!(line("a\nb"), "a\\u{a}b");
        for plain in ["Schrödinger κ(x, x′)", "层/卷积\n\tdone", "1 × 2 … 3"] {
            assert!(matches!(text(plain), Cow::Borrowed(_)), "{plain}");
        }
        let value = serde_json::json!({ "name": name });
        let shown = json(&serde_json::to_string_pretty(&value).unwrap()).into_owned();
        assert!(!shown.chars().any(|letter| letter != '\n' && acts(letter)), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
