//! The error type of all jobs: a stable code, a message that says what happened and where, and hints.
//!
//! A message refers to a setting as `‹memory›`. Each interface renders it in its own notation: `--memory` on the
//! command line, `memory` in this library.

mod codes;
mod convert;

pub use convert::AboutNetwork;
pub(crate) use convert::{cannot_open, cannot_write, hint_for_budget};

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt;

/// What to try where numbers are not finite.
pub(crate) const OVERFLOW: &str = "the numbers overflow: ‹precision› f64, or ‹scale› for data that are too large";

/// What to try, and the setting it refers to, if any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hint {
    /// The setting, such as `memory`.
    pub setting: Option<String>,
    /// What to try; settings are in ‹›.
    pub text: String,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: &'static str,
    message: String,
    hints: Vec<Hint>,
}

/// The code of an interruption.
const INTERRUPTED: &str = "interrupted";

/// The code of a failed check.
const CHECK: &str = "check-failed";

/// The code of an invalid request.
const REQUEST: &str = "bad-request";

impl Error {
    /// An invalid request: code `bad-request`.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_code(REQUEST, message)
    }

    /// An error with a stable code.
    pub fn with_code(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new() }
    }

    /// A check requested by the user has failed.
    pub fn check(message: impl Into<String>) -> Self {
        Self::with_code(CHECK, message)
    }

    /// The work was cancelled; the hint says how to resume.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::with_code(INTERRUPTED, message)
    }

    /// Adds the place of the error before its message.
    pub fn with_place(self, place: &str) -> Self {
        let message = format!("{place}: {}", self.message);
        self.with_message(message)
    }

    /// Replaces the message.
    pub fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Adds a hint.
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        let setting = settings(&text).next().map(str::to_owned);
        self.hints = vec![Hint { setting, text }];
        self
    }

    /// Adds a hint if the work was cancelled.
    pub fn when_interrupted(self, hint: impl FnOnce() -> String) -> Self {
        if self.is_interrupted() { self.hint(hint()) } else { self }
    }

    /// A code for programs, the same in every version.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What happened; settings are in ‹›.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to try.
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// Whether the work was cancelled.
    pub fn is_interrupted(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// The same error; if the work was cancelled, it says that nothing was written.
    pub(crate) fn before_writing(self) -> Self {
        match self.is_interrupted() {
            true => self.with_message("interrupted; nothing was written").hint("run the same command to start again"),
            false => self,
        }
    }

    /// Whether a check requested by the user has failed.
    pub fn is_failed_check(&self) -> bool {
        self.code == CHECK
    }

    /// The JSON document printed instead of a result: `{"error": …}`.
    pub fn document(&self) -> impl Serialize + use<> {
        std::collections::BTreeMap::from([("error", self.clone())])
    }

    /// The same error with every setting in the notation of an interface.
    pub fn rendered(&self, setting: impl Fn(&str) -> String) -> Self {
        let render = |text: &str| rendered(text, &setting);
        let hints = self.hints.iter().map(|hint| Hint { setting: hint.setting.clone(), text: render(&hint.text) });
        Self { code: self.code, message: render(&self.message), hints: hints.collect() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&rendered(&self.message, &|name: &str| format!("`{name}`")))
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Error", 3)?;
        fields.serialize_field("code", self.code)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("hints", &self.hints)?;
        fields.end()
    }
}

impl std::error::Error for Error {}

/// A text with every setting in the notation of an interface.
pub fn rendered(text: &str, setting: &impl Fn(&str) -> String) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next(rest) {
        result += before;
        result += &setting(name);
        rest = after;
    }
    result + rest
}

/// The settings that a text names.
fn settings(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, name, after) = next(rest)?;
        rest = after;
        Some(name)
    })
}

/// The text before the first setting, the name of the setting, and the rest.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find('‹')?;
        let inside = start + '‹'.len_utf8();
        let name = text[inside..].split_once('›').map(|(name, _)| name)?;
        if !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-') {
            return Some((&text[..start], name, &text[inside + name.len() + '›'.len_utf8()..]));
        }
        from = inside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_in_the_words_of_a_door() {
        let error = Error::new("‹memory› 1 KiB is too little; a file ‹A B› stays").hint("‹memory› 2MiB or ‹sketch›");
        assert_eq!(error.to_string(), "`memory` 1 KiB is too little; a file ‹A B› stays");
        let shown = error.rendered(|name| format!("--{name}"));
        assert_eq!(shown.message(), "--memory 1 KiB is too little; a file ‹A B› stays");
        let hint = Hint { setting: Some("memory".to_owned()), text: "--memory 2MiB or --sketch".to_owned() };
        assert_eq!(shown.hints(), [hint]);
        assert_eq!(rendered("no settings ‹", &|name: &str| name.to_owned()), "no settings ‹");
    }
}
