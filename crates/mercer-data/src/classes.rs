//! The order of classes: which class is which output.
//!
//! The order belongs to what was trained, not to the labels at hand: these may lack classes, and their alphabet says nothing
//! about the outputs of a network. So labels are brought into the order of what they are held against, and refused
//! where that order is not known:
//!
//! * with names, texts are matched by name; so are whole numbers, if any of the names is one (`3` is the class `3`, wherever it
//!   stands); if none is, a number from 0 on is the place of its class;
//! * without names, a number from 0 on is its own output, and anything else cannot be matched.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::{DataError, Result, io_error, listed};
use crate::files::read_regular_text;
use crate::labels::{Classes, Naming};

/// The largest file of class names that is read.
const MOST_BYTES: u64 = 16 << 20;

/// The classes that something knows, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassOrder {
    /// By name; an output each.
    Names(Vec<String>),
    /// So many outputs, of which nothing more is known.
    Outputs(usize),
}

impl ClassOrder {
    /// The order of a network or machine with `stored` names and so many outputs, where the user has `given` names.
    ///
    /// # Errors
    /// If the user's names are not the stored ones, or are not as many as there are outputs. Stored names that are no more than
    /// the numbers of the classes say how many there are. Without any names and outputs there is no order, and labels are
    /// numbered by themselves.
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
                format!("{} are given, but it was trained with {}, in this order", listed(given), listed(stored));
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
                format!("there are {} names ({}) for {outputs} outputs", names.len(), listed(names)),
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

/// The names of classes as a user gives them: a text file with a name per line, or a list as in `cat,dog`.
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
        let reason = "this is neither a file with a name per line nor a list as in cat,dog".to_owned();
        return Err(DataError::ClassNames { place: text.to_owned(), reason });
    };
    check_names(text, &names)?;
    Ok(names)
}

impl Classes {
    /// The same labels in the order of something that knows its classes; `place` is where they are from.
    ///
    /// # Errors
    /// For a label that it does not know, with its row, and for names where it has none.
    pub fn ordered(&self, place: &str, order: &ClassOrder) -> Result<Self> {
        let names = match order {
            ClassOrder::Outputs(outputs) => return self.own_numbers(place, *outputs),
            ClassOrder::Names(names) => names,
        };
        let by_place = self.naming != Naming::Texts && names.iter().all(|name| name.parse::<i64>().is_err());
        let by_name: HashMap<&str, usize> =
            names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        // What each class of ours is over there.
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

    /// Labels that are numbers of outputs themselves.
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
