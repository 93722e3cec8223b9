//! Opening samples: which columns of the user's files are inputs, and which are not.
//!
//! One rule applies everywhere: **a column that is used as label, id or group is not an input.** If the data source
//! names no columns, or only columns to leave out, the column is left out and a note says so. A data source that
//! requests it by name is refused, since that is either a mistake or a leak; if it is intended, the labels can be
//! written to a separate file. The rule does not depend on how the path is written, and also applies to a copy of the
//! table: a column of the same name with the same cells is the same column.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::Path;

use crate::columns::{Chosen, Columns};
use crate::dataset::Dataset;
use crate::error::{DataError, Result, listed};
use crate::format::{self, Format, table};
use crate::source::Source;

/// The use of a column that is not an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The value to predict.
    Label,
    /// The name of a sample.
    Id,
    /// The group of a sample.
    Group,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Label => "label",
            Self::Id => "id",
            Self::Group => "group",
        })
    }
}

/// A source with a use other than as an input.
#[derive(Clone, Debug)]
pub struct Used {
    /// Its use.
    pub role: Role,
    /// The file and its column or columns.
    pub source: Source,
}

/// Open samples, with their columns and notes for the user.
#[derive(Clone, Debug, Default)]
pub struct OpenInputs {
    /// One set per source, in order, all of the same samples.
    pub sets: Vec<Dataset>,
    /// The columns of each set that comes from a table.
    pub columns: Vec<Option<Columns>>,
    /// Notes on what the user may not expect.
    pub notes: Vec<String>,
}

/// Opens samples from one source per input.
///
/// Columns that are `used` are left out. Tables are matched to the columns of `like`, which has one entry per input, or
/// none if nothing is known: by name if both have headers. Missing and unknown columns are then errors, except for
/// columns with another use in `like`, which are left out.
///
/// ```
/// use mercer_data::{Role, Source, Used, open_inputs};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("t.csv");
/// std::fs::write(&path, "a,y,b\n1,0,2\n3,1,4\n")?;
/// let labels = Used { role: Role::Label, source: Source::new(&path, Some("y")) };
/// let inputs = open_inputs(&[Source::new(&path, None)], &[labels], &[])?;
/// assert_eq!(inputs.sets[0].columns(), ["a", "b"]);
/// assert!(inputs.notes[0].contains("the column `y` is used as label, so it is not an input"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_inputs(data: &[Source], used: &[Used], like: &[Option<Columns>]) -> Result<OpenInputs> {
    let mut inputs = OpenInputs::default();
    for (at, source) in data.iter().enumerate() {
        let expected = like.get(at).and_then(Option::as_ref);
        let (set, columns) = open_one(source, used, expected, &mut inputs.notes)?;
        if let Some(first) = inputs.sets.first()
            && first.n_samples() != set.n_samples()
        {
            return Err(DataError::Samples {
                first: first.place().to_owned(),
                n_first: first.n_samples(),
                other: set.place().to_owned(),
                n_other: set.n_samples(),
            });
        }
        inputs.sets.push(set);
        inputs.columns.push(columns);
    }
    Ok(inputs)
}

fn open_one(
    source: &Source,
    used: &[Used],
    expected: Option<&Columns>,
    notes: &mut Vec<String>,
) -> Result<(Dataset, Option<Columns>)> {
    let (format, gzipped) = format::detect(source.path())?;
    if format != Format::Csv {
        return Ok((source.open()?, None));
    }
    let table::Header { names, named } = table::header(source.path(), gzipped)?;
    let place = source.path().display().to_string();
    let mut chosen = table::choose(&place, source.key(), &names)?;
    let mut also: Vec<String> = expected.map(|expected| expected.used.clone()).unwrap_or_default();
    for one in used {
        let taken = taken(source, &names, one)?;
        let mut is_taken = vec![false; names.len()];
        taken.places.iter().for_each(|&column| is_taken[column] = true);
        let (both, left): (Vec<usize>, Vec<usize>) = chosen.places.iter().partition(|&&column| is_taken[column]);
        let both: Vec<String> = both.into_iter().map(|column| names[column].clone()).collect();
        match &both[..] {
            [] => {}
            [first, ..] if chosen.explicit => {
                let (column, role) = (first.clone(), one.role.to_string());
                return Err(DataError::UsedColumn { place: source.place(), column, role });
            }
            [only] => {
                notes.push(format!("{place}: the column `{only}` is used as {}, so it is not an input", one.role))
            }
            several => notes.push(format!(
                "{place}: the columns {} are used as {}, so they are not inputs",
                listed(several),
                one.role
            )),
        }
        chosen.places = left;
        also.extend(taken.names);
    }
    if let Some(expected) = expected {
        notes.extend(leave_out(expected, &place, (&names, named), &mut chosen));
        let (matched, note) = Columns::matched(expected, &place, (&names, named), chosen)?;
        notes.extend(note);
        chosen = matched;
    }
    if chosen.places.is_empty() {
        let reason = "no column is left for the inputs".to_owned();
        return Err(DataError::Shape { place: source.place(), shape: vec![names.len()], reason });
    }
    let set = Dataset::open_table(source, &chosen, gzipped)?;
    let inputs: Vec<String> = chosen.places.iter().map(|&column| names[column].clone()).collect();
    let mut seen: HashSet<&String> = inputs.iter().collect();
    let used = also.iter().filter(|name| seen.insert(name)).cloned().collect();
    Ok((set, Some(Columns { inputs, used, named, single: chosen.alone, reading: None })))
}

/// A column of texts, open for reading.
#[derive(Clone, Debug)]
pub struct TextColumn {
    pub(crate) source: Source,
    pub(crate) column: usize,
    pub(crate) gzipped: bool,
    /// Its name, and what else the table is used for. It does not say yet how the text is read.
    pub columns: Columns,
}

impl TextColumn {
    /// The texts of some rows, each at most this many characters long; rows that do not exist are left out.
    ///
    /// ```
    /// use mercer_data::{Source, open_text};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("t.csv");
    /// std::fs::write(&path, "text,mood\nfine,1\n\"so, so\",0\nbad,0\n")?;
    /// let column = open_text(&Source::new(&path, Some("text")), &[], None)?;
    /// let some = column.some(&[2, 1, 7].into(), 4)?;
    /// assert_eq!(some.into_iter().collect::<Vec<_>>(), [(1, "so, ".to_owned()), (2, "bad".to_owned())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// For cells that are empty, not UTF-8 or longer than 1 MiB, with their line.
    pub fn some(&self, rows: &BTreeSet<usize>, most: usize) -> Result<BTreeMap<usize, String>> {
        let (mut found, mut row) = (BTreeMap::new(), 0);
        table::texts(self.source.path(), self.column, self.gzipped, |_, text| {
            if rows.contains(&row) {
                found.insert(row, text.chars().take(most).collect());
            }
            row += 1;
            Ok(())
        })?;
        Ok(found)
    }
}

/// Opens a column of texts: the one that the source names, or the only one without another use. `like` is the column of
/// earlier texts, whose name is preferred.
pub fn open_text(source: &Source, used: &[Used], like: Option<&Columns>) -> Result<TextColumn> {
    let place = source.path().display().to_string();
    let (format, gzipped) = format::detect(source.path())?;
    if format != Format::Csv {
        let reason = format!("a text is a column of a CSV or TSV file, and this is {format}");
        return Err(DataError::Refused { place, reason });
    }
    let table::Header { names, named } = table::header(source.path(), gzipped)?;
    let mut chosen = table::choose(&place, source.key(), &names)?;
    let mut also: Vec<String> = like.map(|like| like.used.clone()).unwrap_or_default();
    for one in used {
        let taken = taken(source, &names, one)?;
        if let Some(&both) = taken.places.iter().find(|&column| chosen.explicit && chosen.places.contains(column)) {
            let (column, role) = (names[both].clone(), one.role.to_string());
            return Err(DataError::UsedColumn { place: source.place(), column, role });
        }
        chosen.places.retain(|column| !taken.places.contains(column));
        also.extend(taken.names);
    }
    let known = like.and_then(|like| like.inputs.first());
    let by_name = known.and_then(|known| chosen.places.iter().copied().find(|&column| names[column] == *known));
    let column = match (chosen.places.as_slice(), by_name) {
        (&[only], _) => only,
        (_, Some(column)) => column,
        (left, None) => {
            let left: Vec<String> = left.iter().map(|&column| names[column].clone()).collect();
            let example = left.first().map_or("text", String::as_str);
            let reason = format!("say which column is the text, as in `{place}:{example}`; it holds {}", listed(&left));
            return Err(DataError::Refused { place, reason });
        }
    };
    let inputs = vec![names[column].clone()];
    let mut seen: HashSet<&String> = inputs.iter().collect();
    let used = also.iter().filter(|name| seen.insert(name)).cloned().collect();
    let columns = Columns { inputs, used, named, single: true, reading: None };
    Ok(TextColumn { source: source.clone(), column, gzipped, columns })
}

/// A list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The first line, where it was taken for the name of the column, and the source names none. A list without such a
    /// line looks the same: whoever knows the names can tell.
    pub first: Option<String>,
    /// The cells of the column as they are written.
    pub cells: Vec<String>,
}

/// The cells of a column of a table as they are written: the one that the source names, or the only one. None if the file
/// is no table.
///
/// # Errors
/// For cells that are empty or not UTF-8, with their line, and if no column is named and there are several.
pub fn column_of_names(source: &Source) -> Result<Option<Names>> {
    let (format, gzipped) = format::detect(source.path())?;
    if format != Format::Csv {
        return Ok(None);
    }
    let place = source.path().display().to_string();
    let table::Header { names, named } = table::header(source.path(), gzipped)?;
    let chosen = table::choose(&place, source.key(), &names)?;
    let &[column] = chosen.places.as_slice() else {
        let (example, all) = (names.first().map_or("id", String::as_str), listed(&names));
        let reason = format!("say which column holds the names, as in `{place}:{example}`; it holds {all}");
        return Err(DataError::Refused { place, reason });
    };
    let mut cells = Vec::new();
    table::texts(source.path(), column, gzipped, |_, name| {
        cells.push(name.to_owned());
        Ok(())
    })?;
    let first = (named && source.key().is_none()).then(|| names[column].clone());
    Ok(Some(Names { first, cells }))
}

/// Leaves out columns that were labels, ids or groups in the expected table, whether or not they are used now.
fn leave_out(
    expected: &Columns,
    place: &str,
    (names, named): (&[String], bool),
    chosen: &mut Chosen,
) -> Option<String> {
    if !named || !expected.named || chosen.explicit {
        return None;
    }
    let inputs: HashSet<&String> = expected.inputs.iter().collect();
    let used: HashSet<&String> = expected.used.iter().filter(|name| !inputs.contains(name)).collect();
    let (dropped, kept): (Vec<usize>, Vec<usize>) =
        chosen.places.iter().partition(|&&column| used.contains(&names[column]));
    chosen.places = kept;
    let dropped: Vec<String> = dropped.into_iter().map(|column| names[column].clone()).collect();
    let verb = if dropped.len() == 1 {
        "was a label, id or group before, so it is not an input"
    } else {
        "were labels, ids or groups before, so they are not inputs"
    };
    (!dropped.is_empty()).then(|| format!("{place}: {} {verb}", listed(&dropped)))
}

/// The columns of a table that are not inputs.
#[derive(Default)]
struct Taken {
    /// Their indices, if they are in the table.
    places: Vec<usize>,
    /// Their names, whether or not they are in the table.
    names: Vec<String>,
}

fn taken(data: &Source, names: &[String], used: &Used) -> Result<Taken> {
    let place = used.source.path().display().to_string();
    if same_file(data.path(), used.source.path()) {
        let places = table::choose(&place, used.source.key(), names)?.places;
        let names = places.iter().map(|&column| names[column].clone()).collect();
        return Ok(Taken { places, names });
    }
    // A copy of the table holds the same column. Errors in that file are reported when it is read.
    let Ok((Format::Csv, gzipped)) = format::detect(used.source.path()) else { return Ok(Taken::default()) };
    let Ok(other) = table::header(used.source.path(), gzipped) else { return Ok(Taken::default()) };
    let Ok(Chosen { places, .. }) = table::choose(&place, used.source.key(), &other.names) else {
        return Ok(Taken::default());
    };
    let mut taken = Taken::default();
    for column in places.into_iter().filter(|_| other.named) {
        let name = &other.names[column];
        if let Some(own) = names.iter().position(|own| own == name)
            && same_cells((data, own), (&used.source, column))
        {
            taken.places.push(own);
        }
        taken.names.push(name.clone());
    }
    Ok(taken)
}

/// Whether two paths lead to the same file, even if spelled differently or through links.
fn same_file(left: &Path, right: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(left), Ok(right)) = (left.metadata(), right.metadata()) {
            return (left.dev(), left.ino()) == (right.dev(), right.ino());
        }
    }
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

fn same_cells(left: (&Source, usize), right: (&Source, usize)) -> bool {
    let open = |(source, column): (&Source, usize)| {
        let (_, gzipped) = format::detect(source.path())?;
        Dataset::open_table(source, &Chosen { places: vec![column], alone: true, explicit: true }, gzipped)
    };
    let cells = |set: &Dataset| {
        let all = 0..set.n_samples();
        set.stored_values::<f64>(&[all]).ok()
    };
    let (Ok(left), Ok(right)) = (open(left), open(right)) else { return false };
    match (left.class_names(), right.class_names()) {
        // Codes are numbered in order of appearance, so equal texts have equal codes.
        (Some(own), Some(other)) => own == other && cells(&left) == cells(&right),
        (None, None) => cells(&left) == cells(&right),
        _ => false,
    }
}
