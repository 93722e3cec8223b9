//! What samples are called in results.

use crate::Error;
use crate::job::record::InputRecord;
use crate::spec::{DataRef, Opening, Samples};
use mercer_data::folder::digest;
use mercer_data::{Classes, DataError, Names};
use std::borrow::Cow;
use std::collections::HashMap;

/// The names of samples: from a file, or their row numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids(Option<Vec<String>>);

impl Ids {
    /// Reads one name per sample.
    ///
    /// # Errors
    /// If there are more or fewer names than samples, or two are the same.
    pub(crate) fn open(
        setting: &str,
        ids: Option<&DataRef>,
        n_samples: usize,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let Some(reference) = ids else { return Ok(Self(None)) };
        let Names { first, cells: mut names } = names_in(setting, reference, opening)?;
        if let Some(first) = first.filter(|_| names.len() + 1 == n_samples) {
            names.insert(0, first);
        }
        if names.len() != n_samples {
            let text = format!("‹{setting}› {reference}: {} ids for {n_samples} samples", names.len());
            return Err(Error::with_code("sample-count", text).hint("samples and ids must be in the same order"));
        }
        let mut rows = HashMap::with_capacity(names.len());
        for (row, name) in names.iter().enumerate() {
            if let Some(first) = rows.insert(name.as_str(), row) {
                let text = format!("‹{setting}› {reference}: rows {first} and {row} have the same id {name:?}");
                return Err(
                    Error::new(text).hint(format!("ids must be unique; leave ‹{setting}› out to use row numbers"))
                );
            }
        }
        Ok(Self(Some(names)))
    }

    /// The given names, or those of the files of a folder of images.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn of_samples(
        setting: &str,
        ids: Option<&DataRef>,
        samples: &Samples,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        match (ids, samples.inputs.first().and_then(mercer_data::Dataset::row_names)) {
            (None, Some(files)) => Ok(Self(Some(files))),
            (ids, _) => Self::open(setting, ids, samples.n_samples, opening),
        }
    }

    /// Names that were saved before.
    pub(crate) fn known(names: Option<Vec<String>>) -> Self {
        Self(names)
    }

    /// The record of the file that they are from, if they are from one.
    pub(crate) fn record(&self, setting: &str, reference: Option<&DataRef>) -> Option<InputRecord> {
        let (names, reference) = (self.0.as_ref()?, reference?);
        // A line per name; quoted, because a name may hold anything.
        let text: String = names.iter().map(|name| format!("{name:?}\n")).collect();
        Some(InputRecord::new(setting, &reference.to_string(), digest(text.as_bytes())))
    }

    /// The name of a sample.
    pub(crate) fn name(&self, row: usize) -> Cow<'_, str> {
        match &self.0 {
            Some(names) => names.get(row).map_or(Cow::Owned(row.to_string()), |name| Cow::Borrowed(name)),
            None => Cow::Owned(row.to_string()),
        }
    }

    /// The rows of all names.
    pub(crate) fn rows(&self, n_samples: usize) -> HashMap<String, usize> {
        (0..n_samples).map(|row| (self.name(row).into_owned(), row)).collect()
    }

    /// The names, if they are not row numbers.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        self.0.clone()
    }
}

/// One name per line of a column of a table, as it is written there, or per number of an array.
///
/// # Errors
/// If it cannot be read, or holds something else.
pub(crate) fn names_in(setting: &str, reference: &DataRef, opening: Opening<'_>) -> Result<Names, Error> {
    if let Some(source) = reference.source()?
        && !source.path().is_dir()
        && let Some(names) = mercer_data::column_of_names(&source)?
    {
        return Ok(names);
    }
    let refused =
        |error: DataError| Error::from(error).hint(format!("‹{setting}› takes texts or whole numbers, one each"));
    let dataset = reference.open(opening.inputs)?;
    if let Ok(numbers) = dataset.read::<f64>()
        && matches!(dataset.shape(), [_] | [_, 1])
        && numbers.iter().all(|number| number.fract() == 0.0)
    {
        let cells = numbers.iter().map(|number| format!("{number:.0}")).collect();
        return Ok(Names { first: None, cells });
    }
    let read = Classes::read(&dataset).map_err(refused)?;
    let cells = read.indices().iter().map(|&index| read.names()[index].clone()).collect();
    Ok(Names { first: None, cells })
}
