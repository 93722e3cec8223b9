//! The arguments of a call, looked up by name and type.

use super::catalogue::Entry;
use super::syntax::{Argument, Call, Content, Parsed, Text, Value};
use mercer_run::names::unknown;
use std::str::FromStr;

/// The arguments of a call to a known kernel.
pub(super) struct Arguments<'a> {
    call: &'a Call,
    text: &'a Text,
}

impl<'a> Arguments<'a> {
    /// Rejects unknown settings, and settings given twice.
    pub(super) fn new(entry: &Entry, call: &'a Call, text: &'a Text) -> Parsed<Self> {
        let mut positions = 0;
        for (at, argument) in call.arguments.iter().enumerate() {
            match &argument.name {
                Some(name) if !entry.settings.contains(&&name[..]) => {
                    let reason = unknown_setting(entry.name, name, entry.settings.iter().copied());
                    return Err(text.fail(argument.at, reason));
                }
                Some(name) if call.arguments[..at].iter().any(|other| other.name.as_ref() == Some(name)) => {
                    return Err(text.fail(argument.at, format!("{name} is given twice")));
                }
                Some(_) => {}
                None if positions == 1 || entry.positional.is_none() => {
                    let reason = match entry.settings.first() {
                        Some(setting) => format!("expected a setting, as in {setting}=…"),
                        None => "expected `)`".to_owned(),
                    };
                    return Err(text.fail(argument.at, reason));
                }
                None => positions += 1,
            }
        }
        if let (Some(what), 0) = (entry.positional, positions) {
            let reason = format!("{} needs its {what} in parentheses", entry.name);
            return Err(text.fail(call.at, reason));
        }
        Ok(Self { call, text })
    }

    /// An error at the name of the kernel.
    pub(super) fn fail<T>(&self, reason: impl Into<String>) -> Parsed<T> {
        Err(self.text.fail(self.call.at, reason))
    }

    /// An error at a setting.
    pub(super) fn fail_at<T>(&self, name: &str, reason: impl Into<String>) -> Parsed<T> {
        let at = self.get(name).map_or(self.call.at, |argument| argument.at);
        Err(self.text.fail(at, reason))
    }

    fn get(&self, name: &str) -> Option<&'a Argument> {
        self.call.arguments.iter().find(|argument| argument.name.as_deref() == Some(name))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The value without a name.
    pub(super) fn positional(&self) -> Option<&'a Value> {
        self.call.arguments.iter().find(|argument| argument.name.is_none()).map(|argument| &argument.value)
    }

    fn read<T>(&self, name: &str, what: &str, read: impl Fn(&Value) -> Option<T>) -> Parsed<Option<T>> {
        let Some(argument) = self.get(name) else { return Ok(None) };
        match read(&argument.value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.text.fail(argument.value.at, format!("expected {what} for {name}"))),
        }
    }

    pub(super) fn positive(&self, name: &str) -> Parsed<Option<f64>> {
        self.read(name, "a number that is not negative", |value| match value.content {
            Content::Number(number, _) => (number.is_finite() && number >= 0.0).then_some(number),
            _ => None,
        })
    }

    pub(super) fn whole<T: FromStr>(&self, name: &str) -> Parsed<Option<T>> {
        self.read(name, "a whole number", whole)
    }

    /// The whole number without a name.
    pub(super) fn whole_position<T: FromStr>(&self, what: &str) -> Parsed<T> {
        match self.positional().and_then(whole) {
            Some(number) => Ok(number),
            None => {
                let at = self.positional().map_or(self.call.at, |value| value.at);
                Err(self.text.fail(at, format!("expected a whole number: the {what}")))
            }
        }
    }

    pub(super) fn flag(&self, name: &str) -> Parsed<Option<bool>> {
        self.read(name, "true or false", |value| match &value.content {
            Content::Word(word) => word.parse().ok(),
            _ => None,
        })
    }

    pub(super) fn text(&self, name: &str) -> Parsed<Option<String>> {
        self.read(name, "a text in quotes", text)
    }

    /// A text, or a list of them.
    pub(super) fn texts(&self, name: &str) -> Parsed<Option<Vec<String>>> {
        self.read(name, "a text in quotes, or a list of them,", |value| list(value, text))
    }

    pub(super) fn wholes(&self, name: &str) -> Parsed<Option<Vec<usize>>> {
        self.read(name, "a list of whole numbers", |value| list(value, whole))
    }

    pub(super) fn numbers(&self, name: &str) -> Parsed<Option<Vec<f64>>> {
        let number = |value: &Value| match value.content {
            Content::Number(number, _) => number.is_finite().then_some(number),
            _ => None,
        };
        self.read(name, "a list of numbers", |value| list(value, number))
    }

    /// A word that names a choice.
    pub(super) fn word<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Parsed<Option<T>> {
        let Some(argument) = self.get(name) else { return Ok(None) };
        let at = argument.value.at;
        match &argument.value.content {
            Content::Word(word) | Content::Text(word) => {
                read(word).map(Some).map_err(|reason| self.text.fail(at, format!("{name}: {reason}")))
            }
            _ => Err(self.text.fail(at, format!("expected a word for {name}"))),
        }
    }
}

/// The error for an unknown setting of a kernel.
pub(crate) fn unknown_setting(kernel: &str, name: &str, all: impl Iterator<Item = &'static str>) -> String {
    let all: Vec<&str> = all.collect();
    match all.is_empty() {
        true => format!("unknown setting `{name}`; {kernel} has none"),
        false => unknown(&format!("setting of {kernel}"), name, &all),
    }
}

fn whole<T: FromStr>(value: &Value) -> Option<T> {
    match &value.content {
        Content::Number(_, text) => text.parse().ok(),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match &value.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// A list of values, or a single value.
fn list<T>(value: &Value, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    match &value.content {
        Content::List(values) if values.is_empty() => None,
        Content::List(values) => values.iter().map(one).collect(),
        _ => Some(vec![one(value)?]),
    }
}
