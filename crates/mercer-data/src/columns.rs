//! The columns of the table from which a model was made, and how another table is matched to them.
//!
//! With headers, columns are matched by name in any order. Without headers, they are taken in order.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::error::{DataError, Result};

/// The columns of a table: which of them are inputs, and which were used as labels, ids or groups.
///
/// A trained network, a machine or a folder of eigenfunctions stores them, so that later tables are read in the same
/// way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// The inputs, in the order in which they are read.
    pub inputs: Vec<String>,
    /// The columns of the same table with another use. A later table may or may not have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<String>,
    /// Whether the names come from a header. Without one, columns are named by their numbers, counted from 0.
    pub named: bool,
    /// Whether a sample is a single number without an axis: one column that was requested by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single: bool,
    /// How samples are made from texts or images, which are not numbers in a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
}

/// How samples are made from texts or images, so that later ones are read in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reading {
    /// Tokens of a column of texts.
    Tokens {
        /// Tokens per sample, padding included.
        length: usize,
        /// The tokenizer, as the JSON of its file. Only the first input made from a text has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokenizer: Option<String>,
    },
    /// Pixels of image files.
    Pixels {
        /// The shape of every image.
        shape: ImageShape,
        /// Whether the files were brought to this size.
        resized: bool,
    },
}

/// The shape of images after they are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
}

impl Columns {
    /// Of samples that are not numbers in a table.
    pub fn of_reading(reading: Reading) -> Self {
        Self { inputs: Vec::new(), used: Vec::new(), named: false, single: false, reading: Some(reading) }
    }
}

/// The columns of a file to read.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Their indices in the file.
    pub(crate) places: Vec<usize>,
    /// Whether this is a single column by name, which gives an array with one axis.
    pub(crate) alone: bool,
    /// Whether the user named the columns to read, and not only those to leave out.
    pub(crate) explicit: bool,
}

impl Columns {
    /// The columns of `names` that match `expected`, in its order. The note reports what the user may not expect.
    pub(crate) fn matched(
        expected: &Self,
        place: &str,
        (names, named): (&[String], bool),
        mut chosen: Chosen,
    ) -> Result<(Chosen, Option<String>)> {
        if expected.inputs.len() == 1 && chosen.places.len() == 1 {
            chosen.alone = expected.single;
        }
        if named && expected.named {
            chosen.places = by_name(&expected.inputs, place, names, &chosen.places)?;
            return Ok((chosen, None));
        }
        // The same table without a header, including the labels.
        let is_used = |column: &usize| expected.used.contains(&column.to_string());
        if !named && !expected.named && chosen.places.len() == expected.inputs.len() + expected.used.len() {
            chosen.places.retain(|column| !is_used(column));
        }
        if chosen.places.len() != expected.inputs.len() {
            let reason = format!("it has {} columns, but needs {}", chosen.places.len(), expected.inputs.len());
            let expected = expected.inputs.clone();
            return Err(DataError::Columns { place: place.to_owned(), reason, expected });
        }
        let note = (named != expected.named).then(|| {
            let (with, without) = if named {
                ("this table", "the one it is matched to")
            } else {
                ("the table it is matched to", "this one")
            };
            format!("{place}: {with} has a header and {without} has none, so columns are matched by position")
        });
        Ok((chosen, note))
    }
}

/// The indices of the expected names. Several columns of the same name are matched in order.
fn by_name(expected: &[String], place: &str, names: &[String], places: &[usize]) -> Result<Vec<usize>> {
    let mut left: HashMap<&str, VecDeque<usize>> = HashMap::new();
    places.iter().for_each(|&column| left.entry(&names[column]).or_default().push_back(column));
    let mut found = Vec::with_capacity(expected.len());
    let mut missing = Vec::new();
    for wanted in expected {
        match left.get_mut(wanted.as_str()).and_then(VecDeque::pop_front) {
            Some(column) => found.push(column),
            None => missing.push(wanted.clone()),
        }
    }
    let mut left: Vec<usize> = left.into_values().flatten().collect();
    if missing.is_empty() && left.is_empty() {
        return Ok(found);
    }
    left.sort_unstable();
    let extra: Vec<String> = left.iter().map(|&column| names[column].clone()).collect();
    let part =
        |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", crate::error::listed(names)));
    let parts: Vec<String> =
        [part("it lacks", &missing), part("unknown columns:", &extra)].into_iter().flatten().collect();
    Err(DataError::Columns { place: place.to_owned(), reason: parts.join("; "), expected: expected.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(inputs: &[&str], used: &[&str], named: bool) -> Columns {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Columns { inputs: owned(inputs), used: owned(used), named, single: false, reading: None }
    }

    fn places(expected: &Columns, names: &[&str], named: bool) -> Result<Vec<usize>> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let chosen = Chosen { places: (0..names.len()).collect(), alone: false, explicit: false };
        Columns::matched(expected, "t.csv", (&names, named), chosen).map(|(chosen, _)| chosen.places)
    }

    #[test]
    fn names_decide_where_there_are_names() {
        let expected = columns(&["a", "b", "c"], &[], true);
        assert_eq!(places(&expected, &["c", "a", "b"], true).unwrap(), [1, 2, 0]);
        let doubled = columns(&["a", "b", "a"], &[], true);
        assert_eq!(places(&doubled, &["b", "a", "a"], true).unwrap(), [1, 0, 2]);
        let error = places(&expected, &["a", "x", "c", "y"], true).unwrap_err().to_string();
        assert!(error.contains("it lacks `b`; unknown columns: `x`, `y`"), "{error}");
    }

    #[test]
    fn order_decides_where_there_are_none() {
        let expected = columns(&["1", "2"], &["0"], false);
        assert_eq!(places(&expected, &["0", "1", "2"], false).unwrap(), [1, 2]);
        assert_eq!(places(&expected, &["0", "1"], false).unwrap(), [0, 1]);
        assert!(places(&expected, &["0"], false).is_err());
        assert_eq!(places(&columns(&["a", "b"], &[], true), &["0", "1"], false).unwrap(), [0, 1]);
    }
}
