//! `[name=]FILE[:KEY]`: how a user names data.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::format::{self, Format};

/// A data source as the user wrote it: a file, the array or column in it, and a name to show.
///
/// File names may contain `:` and `=`: the longest interpretation that names an existing file wins. If no file exists,
/// the last `:` separates the key and the first `=` the name.
///
/// ```
/// use mercer_data::Source;
///
/// let source: Source = "test=images.npz:x_test".parse()?;
/// assert_eq!(source.name(), "test");
/// assert_eq!(source.path().to_str(), Some("images.npz"));
/// assert_eq!(source.key(), Some("x_test"));
/// assert!("images.npz:".parse::<Source>().is_err());
/// # Ok::<(), mercer_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    name: Option<String>,
    path: PathBuf,
    key: Option<String>,
}

impl Source {
    /// A source from its parts.
    pub fn new(path: impl Into<PathBuf>, key: Option<&str>) -> Self {
        Self { name: None, path: path.into(), key: key.map(str::to_owned) }
    }

    /// The same file and name with another key.
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The array or column within the file.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The name the user gave, or else `FILE[:KEY]`.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.place())
    }

    /// `FILE[:KEY]`, as errors show it.
    pub fn place(&self) -> String {
        match &self.key {
            Some(key) => format!("{}:{key}", self.path.display()),
            None => self.path.display().to_string(),
        }
    }

    /// Whether the file can be opened as a table of named or numbered columns. JSON is text too, but not a table.
    pub fn is_table(&self) -> bool {
        let is_json = self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        !is_json && matches!(format::detect(&self.path), Ok((Format::Csv, _)))
    }

    /// Whether it is a table whose chosen columns begin with a text.
    pub fn is_text(&self) -> bool {
        match format::detect(&self.path) {
            Ok((Format::Csv, gzipped)) => {
                format::table::starts_with_text(&self.path, self.key(), gzipped).unwrap_or(false)
            }
            _ => false,
        }
    }

    /// Opens the array. Only its header is read, unless the file must be decompressed or parsed.
    pub fn open(&self) -> Result<Dataset> {
        Dataset::open(self)
    }

    fn parse_with(text: &str, exists: impl Fn(&str) -> bool) -> Result<Self> {
        let bad = |reason| DataError::Source { text: text.to_owned(), reason };
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        if let Some((path, key)) = existing(text, &exists) {
            return Self::build(None, path, key).map_err(bad);
        }
        let (name, rest) = match text.split_once('=') {
            Some(("", _)) => return Err(bad("the name before `=` is empty")),
            Some((name, rest)) if is_name(name) => (Some(name), rest),
            _ => (None, text),
        };
        let (path, key) = existing(rest, &exists).unwrap_or_else(|| split_key(rest));
        Self::build(name, path, key).map_err(bad)
    }

    fn build(name: Option<&str>, path: &str, key: Option<&str>) -> Result<Self, &'static str> {
        if path.is_empty() {
            return Err("the file name is empty");
        }
        if key == Some("") {
            return Err("the key after `:` is empty");
        }
        Ok(Self { name: name.map(str::to_owned), path: path.into(), key: key.map(str::to_owned) })
    }
}

impl FromStr for Source {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse_with(text, |path| !path.is_empty() && Path::new(path).exists())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "{name}={}", self.place()),
            None => formatter.write_str(&self.place()),
        }
    }
}

/// The longest prefix of the text that is an existing file and is followed by nothing or by `:KEY`.
fn existing<'a>(text: &'a str, exists: &impl Fn(&str) -> bool) -> Option<(&'a str, Option<&'a str>)> {
    if exists(text) {
        return Some((text, None));
    }
    let mut splits = text.rmatch_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    splits.find(|(path, _)| exists(path)).map(|(path, key)| (path, Some(key)))
}

fn split_key(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        // A path separator after the colon, as in `C:\data.npy` or `a:b/data.npy`: the colon belongs to the path.
        Some((_, key)) if key.contains(['/', '\\']) => (text, None),
        Some((path, key)) => (path, Some(key)),
        None => (text, None),
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str, files: &[&str]) -> Result<(String, String, String)> {
        let source = Source::parse_with(text, |path| files.contains(&path))?;
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        Ok((shown(source.name), source.path.display().to_string(), shown(source.key)))
    }

    #[test]
    fn readings() {
        let cases: &[(&str, &[&str], [&str; 3])] = &[
            ("a.npy", &[], ["-", "a.npy", "-"]),
            ("a.npz:x", &[], ["-", "a.npz", "x"]),
            ("train=a.npz:x", &[], ["train", "a.npz", "x"]),
            ("a:b.npy", &["a:b.npy"], ["-", "a:b.npy", "-"]),
            ("a:b.npz:x", &["a:b.npz"], ["-", "a:b.npz", "x"]),
            ("a.npz:x:y", &["a.npz"], ["-", "a.npz", "x:y"]),
            ("lr=0.1.npy", &["lr=0.1.npy"], ["-", "lr=0.1.npy", "-"]),
            ("lr=0.1.npz:k=1", &["lr=0.1.npz"], ["-", "lr=0.1.npz", "k=1"]),
            ("run=lr=0.1.npy", &["lr=0.1.npy"], ["run", "lr=0.1.npy", "-"]),
            ("dir/lr=0.1.npy", &[], ["-", "dir/lr=0.1.npy", "-"]),
            ("C:\\data.npy", &[], ["-", "C:\\data.npy", "-"]),
        ];
        for (text, files, [name, path, key]) in cases {
            let found = parse(text, files).unwrap();
            assert_eq!(found, ((*name).into(), (*path).into(), (*key).into()), "{text}");
        }
    }

    #[test]
    fn refusals_say_why() {
        for (text, why) in [("", "empty"), ("=a.npy", "name"), ("a.npz:", "key"), ("x=", "file name"), (":x", "file")] {
            let error = parse(text, &[]).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn shown_sources_parse_back(name in "[a-z]{1,5}", file in "[a-z]{1,5}\\.npz", key in "[a-z_]{1,5}") {
            let source: Source = format!("{name}={file}:{key}").parse().unwrap();
            prop_assert_eq!(&source.to_string().parse::<Source>().unwrap(), &source);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = text.parse::<Source>();
        }
    }
}
