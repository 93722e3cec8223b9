//! What a run finds: tables as data, figures, and whether it is what was expected.

use mercer::report::Figure;
use serde::{Deserialize, Serialize};

/// What a run finds.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) tables: Vec<Table>,
    pub(crate) figures: Vec<Drawing>,
    /// What else was found.
    pub(crate) notes: Vec<String>,
    /// Whether the claim holds, where that can be told from the numbers.
    pub(crate) holds: Option<bool>,
    /// The seconds of jobs that an earlier, interrupted run had done.
    pub(crate) earlier: f64,
}

/// A figure, the name of its file in `docs`, and what it shows.
pub(crate) struct Drawing {
    pub(crate) file: &'static str,
    pub(crate) caption: &'static str,
    pub(crate) figure: Figure,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A column and how its numbers are shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) format: Format,
    /// Whether its numbers are the paper's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) published: bool,
}

/// How numbers are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// As they are; numbers in full, small ones with an exponent.
    #[default]
    Plain,
    /// With so many decimals.
    Fixed(usize),
    /// A share, in per cent with so many decimals.
    Percent(usize),
    /// A share with its sign.
    SignedPercent(usize),
    /// With an exponent and so many decimals.
    Scientific(usize),
    /// Between 0 and 1: three decimals, near 1 four.
    Cosine,
}

/// A number, several, a text, or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Number(f64),
    Text(String),
    List(Vec<f64>),
    Nothing,
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), columns: Vec::new(), rows: Vec::new() }
    }

    /// With another column.
    pub(crate) fn column(mut self, name: impl Into<String>, format: Format) -> Self {
        self.columns.push(Column { name: name.into(), format, published: false });
        self
    }

    /// With a column of the paper's numbers.
    pub(crate) fn published(mut self, name: impl Into<String>, format: Format) -> Self {
        self.columns.push(Column { name: name.into(), format, published: true });
        self
    }

    /// Adds a row and prints it: experiments take long.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        let cells: Vec<String> = self
            .columns
            .iter()
            .zip(&row)
            .map(|(column, cell)| format!("{} {}", column.name, cell.show(column.format)))
            .collect();
        eprintln!("{}", cells.join(", "));
        self.rows.push(row);
    }
}

impl Format {
    fn number(self, value: f64) -> String {
        let text = match self {
            Self::Plain if value != 0.0 && value.abs() < 1e-3 => return format!("{value:e}"),
            Self::Plain => format!("{value}"),
            Self::Fixed(decimals) => format!("{value:.decimals$}"),
            Self::Percent(decimals) => format!("{:.decimals$} %", 100.0 * value),
            Self::SignedPercent(decimals) => format!("{:+.decimals$} %", 100.0 * value),
            Self::Scientific(decimals) => return format!("{value:.decimals$e}"),
            Self::Cosine => format!("{value:.0$}", if value > 0.9985 { 4 } else { 3 }),
        };
        text.replace('-', "−")
    }
}

impl Cell {
    /// As a text.
    pub(crate) fn show(&self, format: Format) -> String {
        match self {
            Self::Number(value) => format.number(*value),
            Self::Text(text) => text.clone(),
            Self::List(values) => values.iter().map(|value| format.number(*value)).collect::<Vec<_>>().join(" "),
            Self::Nothing => String::new(),
        }
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        if text.is_empty() { Self::Nothing } else { Self::Text(text.to_owned()) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Vec<f64>> for Cell {
    fn from(values: Vec<f64>) -> Self {
        Self::List(values)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

/// A row of cells from anything that is one.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::report::Cell::from($cell)),*] };
}
