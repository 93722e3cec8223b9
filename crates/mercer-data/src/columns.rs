//! The columns of a table that something was made from, and how another table is matched to them.
//!
//! With headers columns are matched by name, wherever they stand; without, they can only be taken in their order.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::error::{DataError, Result};

/// The columns of a table: which of them are inputs, and which were used as labels, ids or groups.
///
/// A trained network, a machine or a folder of functions keeps them, so that later tables are read in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// The inputs, in the order in which they are read.
    pub inputs: Vec<String>,
    /// The columns of the same table that were used otherwise; a later table may have them or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<String>,
    /// Whether the names come from a header. Without one a column is called by its number, counted from 0.
    pub named: bool,
    /// Whether a sample is a single number without an axis: one column that was asked for by its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single: bool,
}

/// The columns of a file that are to be read.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Their places in the file.
    pub(crate) places: Vec<usize>,
    /// Whether this is one column by its name, which makes an array with one axis.
    pub(crate) alone: bool,
    /// Whether the user has named what to read, and not only what to leave out.
    pub(crate) explicit: bool,
}

impl Columns {
    /// Those of `names` that are read as `expected` says, in its order; the note says what is not obvious.
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
        // The same table without a header, labels and all.
        let is_used = |column: &usize| expected.used.contains(&column.to_string());
        if !named && !expected.named && chosen.places.len() == expected.inputs.len() + expected.used.len() {
            chosen.places.retain(|column| !is_used(column));
        }
        if chosen.places.len() != expected.inputs.len() {
            let reason = format!("it has {} columns, but {} are needed", chosen.places.len(), expected.inputs.len());
            let expected = expected.inputs.clone();
            return Err(DataError::Columns { place: place.to_owned(), reason, expected });
        }
        let note = (named != expected.named).then(|| {
            let (with, without) =
                if named { ("this one", "what it is matched to") } else { ("what it is matched to", "this one") };
            format!("{place}: only {with} has a header, {without} has none, so columns are taken in their order")
        });
        Ok((chosen, note))
    }
}

/// The places of the expected names. Of several columns of one name, the first is matched to the first and so on.
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
        [part("it lacks", &missing), part("nothing is known of", &extra)].into_iter().flatten().collect();
    Err(DataError::Columns { place: place.to_owned(), reason: parts.join("; "), expected: expected.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(inputs: &[&str], used: &[&str], named: bool) -> Columns {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Columns { inputs: owned(inputs), used: owned(used), named, single: false }
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
        assert!(error.contains("it lacks `b`; nothing is known of `x`, `y`"), "{error}");
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
