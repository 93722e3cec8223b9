//! The order of classes: which class is which output.
//!
//! The order belongs to the trained model, not to the labels at hand: these may lack classes, and their alphabetical
//! order says nothing about the outputs of a network. So labels are mapped to the order of the model, and refused where
//! that order is unknown:
//!
//! * with names, text labels are matched by name. Whole numbers are too, if any of the names is a number (`3` is the
//!   class `3`, wherever it is in the list); otherwise a number from 0 on is the index of its class;
//! * without names, a number from 0 on is the index of its output, and anything else cannot be matched.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::{DataError, Result, io_error, listed};
use crate::files::read_regular_text;
use crate::labels::{Classes, Naming};

/// The largest file of class names that is read.
const MOST_BYTES: u64 = 16 << 20;

/// The classes of a model, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassOrder {
    /// By name, one per output.
    Names(Vec<String>),
    /// A number of outputs without names.
    Outputs(usize),
}

impl ClassOrder {
    /// The order of a network or machine with `stored` names and this many outputs, where the user may have `given`
    /// names.
    ///
    /// # Errors
    /// If the user's names differ from the stored ones, or their number differs from the number of outputs. Stored
    /// names that are just the class numbers only give the number of classes. Without names and outputs there is no
    /// order, and labels are numbered on their own.
    pub fn resolve(
        given: Option<&[String]>,
        stored: Option<&[String]>,
        outputs: Option<usize>,
    ) -> Result<Option<Self>> {
        let refused = |place: &str, reason: String| Err(DataError::ClassNames { place: place.to_owned(), reason });
        let (stored, outputs) = match stored {
            Some(stored) if given.is_some() && Naming::from_names(stored) == Naming::Own => (None, Some(stored.len())),
            _ => (stored, outputs),
        };
        if let (Some(given), Some(stored)) = (given, stored)
            && given != stored
        {
            let reason =
                format!("{} were given, but it was trained with {}, in this order", listed(given), listed(stored));
            return refused("classes", reason);
        }
        let (place, names) = match (given, stored) {
            (Some(names), _) => ("classes", names),
            (None, Some(names)) => ("the classes of the network", names),
            (None, None) => return Ok(outputs.map(Self::Outputs)),
        };
        check_names(place, names)?;
        if let Some(outputs) = outputs
            && outputs != names.len()
        {
            return refused(
                place,
                format!("{} names ({}) were given for {outputs} outputs", names.len(), listed(names)),
            );
        }
        Ok(Some(Self::Names(names.to_vec())))
    }
}

/// Refuses names that are empty or occur twice.
pub(crate) fn check_names(place: &str, names: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    let reason = match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => format!("the name `{name}` occurs twice"),
        None if names.iter().any(String::is_empty) => "one of the names is empty".to_owned(),
        None if names.is_empty() => "there are no names".to_owned(),
        None => return Ok(()),
    };
    Err(DataError::ClassNames { place: place.to_owned(), reason })
}

/// Reads class names from the user: a text file with one name per line, or a list such as `cat,dog`.
///
/// ```
/// assert_eq!(mercer_data::parse_classes("cat, dog")?, ["cat", "dog"]);
/// assert!(mercer_data::parse_classes("cat,cat").is_err());
/// # Ok::<(), mercer_data::DataError>(())
/// ```
pub fn parse_classes(text: &str) -> Result<Vec<String>> {
    let path = Path::new(text);
    let names: Vec<String> = if path.is_file() {
        let lines = read_regular_text(path, MOST_BYTES).map_err(io_error(text))?;
        let lines = lines.trim_start_matches('\u{feff}').lines().map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    } else if text.contains(',') {
        text.split(',').map(|name| name.trim().to_owned()).collect()
    } else {
        let reason = "this is neither a file with one name per line nor a list such as cat,dog".to_owned();
        return Err(DataError::ClassNames { place: text.to_owned(), reason });
    };
    check_names(text, &names)?;
    Ok(names)
}

impl Classes {
    /// The same labels in this order of classes; `place` says where they come from.
    ///
    /// # Errors
    /// For an unknown label, with its row, and for names where the order has none.
    pub fn ordered(&self, place: &str, order: &ClassOrder) -> Result<Self> {
        let names = match order {
            ClassOrder::Outputs(outputs) => return self.own_numbers(place, *outputs),
            ClassOrder::Names(names) => names,
        };
        let by_place = self.naming != Naming::Texts && names.iter().all(|name| name.parse::<i64>().is_err());
        let by_name: HashMap<&str, usize> =
            names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        // The index of each of our classes in the other order.
        let there: Vec<Option<usize>> = self
            .names
            .iter()
            .map(|name| match by_place {
                true => name.parse().ok().filter(|&index| index < names.len()),
                false => by_name.get(name.as_str()).copied(),
            })
            .collect();
        let renumber = |(row, &index): (usize, &usize)| {
            there[index].ok_or_else(|| DataError::UnknownClass {
                place: place.to_owned(),
                row,
                value: self.names[index].clone(),
                known: names.clone(),
            })
        };
        let indices = self.indices.iter().enumerate().map(renumber).collect::<Result<_>>()?;
        Ok(Self { indices, naming: Naming::from_names(names), names: names.clone() })
    }

    /// Labels that are indices of outputs.
    fn own_numbers(&self, place: &str, outputs: usize) -> Result<Self> {
        if self.naming != Naming::Own {
            let reason = format!(
                "the labels are {}, and nothing says which of the {outputs} outputs is which class; give the names of all classes in the order of the outputs",
                listed(&self.names)
            );
            return Err(DataError::ClassNames { place: place.to_owned(), reason });
        }
        if let Some((row, &index)) = self.indices.iter().enumerate().find(|(_, index)| **index >= outputs) {
            let known = (0..outputs).map(|index| index.to_string()).collect();
            return Err(DataError::UnknownClass { place: place.to_owned(), row, value: index.to_string(), known });
        }
        Self::new(self.indices.clone(), outputs)
    }
}
