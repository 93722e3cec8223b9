//! What can go wrong with data, said so that the user can act on it.

use std::io;

/// The result of everything in this crate that reads or writes data.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// An error about data: which file and key, which row and column, and what to try.
///
/// `place` is what the user would type to name the array: `file.npy`, or `file.npz:key`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused to read or write.
    #[error("{place}: {source}")]
    Io {
        /// The file.
        place: String,
        /// What the system said.
        source: io::Error,
    },

    /// A `[name=]FILE[:KEY]` argument that cannot be understood.
    #[error(
        "`{text}` is not a data source: {reason}; write it as [name=]FILE[:KEY], for example `test=digits.npz:x_test`"
    )]
    Source {
        /// What the user wrote.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The file is in none of the formats that are read here.
    #[error("{place}: {reason}; supported are .npy, .npz, IDX (also gzipped) and CSV")]
    UnknownFormat {
        /// The file.
        place: String,
        /// What it looks like instead.
        reason: &'static str,
    },

    /// The file breaks the rules of its own format.
    #[error("{place}: not a valid {format} file: {reason}")]
    Malformed {
        /// The file, with the key inside it.
        place: String,
        /// The format it claims to have.
        format: &'static str,
        /// The rule that is broken.
        reason: String,
    },

    /// The header promises more or fewer bytes than there are.
    #[error("{place}: the header promises {declared} bytes of data, but there {}", available(*.found, *.at_most))]
    Size {
        /// The file, with the key inside it.
        place: String,
        /// The bytes that shape and type need.
        declared: u64,
        /// The bytes there are.
        found: u64,
        /// `found` is an upper bound: what a compressed file of this length could hold.
        at_most: bool,
    },

    /// The shape is too large for any computer's memory or address space.
    #[error("{place}: an array of shape {shape:?} is too large to address")]
    TooLarge {
        /// The file, with the key inside it.
        place: String,
        /// The shape asked for.
        shape: Vec<usize>,
    },

    /// There is not enough memory for the rows asked for.
    #[error("{place}: no memory for {bytes} bytes of rows; read fewer rows at a time")]
    Memory {
        /// The file, with the key inside it.
        place: String,
        /// The bytes asked for.
        bytes: usize,
    },

    /// The array has a type that is not a real number.
    #[error("{place}: elements of type {dtype} are not supported; {hint}")]
    ElementType {
        /// The file, with the key inside it.
        place: String,
        /// The type as the file names it.
        dtype: String,
        /// What to do instead.
        hint: &'static str,
    },

    /// The file has no array or column of that name.
    #[error("{place}: no `{key}` in it; it holds {}", listed(.available))]
    MissingKey {
        /// The file.
        place: String,
        /// The key asked for.
        key: String,
        /// The keys there are.
        available: Vec<String>,
    },

    /// The file holds several arrays and none was chosen.
    #[error("{place}: holds {} arrays, so say which one, as in `{place}:{}`; it holds {}", .available.len(), first(.available), listed(.available))]
    KeyNeeded {
        /// The file.
        place: String,
        /// The keys there are.
        available: Vec<String>,
    },

    /// A key was given for a file that holds a single array.
    #[error("{place}: a {format} file holds one array, so leave out `:{key}`")]
    KeyNotUsed {
        /// The file.
        place: String,
        /// Its format.
        format: &'static str,
        /// The key that was given.
        key: String,
    },

    /// A cell of a CSV file that cannot be read.
    #[error("{place}: line {line}, column {column} ({name}): `{value}` {reason}")]
    Cell {
        /// The file.
        place: String,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1.
        column: usize,
        /// The column's name.
        name: String,
        /// What the cell holds.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// NaN or an infinity in the data.
    #[error(
        "{place}: sample {row} is {value} at position {position:?}{stage}; remove the sample or fill the value in first"
    )]
    NotFinite {
        /// The file, with the key inside it.
        place: String,
        /// The sample, counted from 0.
        row: usize,
        /// The index within the sample, counted from 0.
        position: Vec<usize>,
        /// The value found.
        value: f64,
        /// At which stage it was found: empty for the file itself.
        stage: &'static str,
    },

    /// An integer that the requested floating-point type cannot hold.
    #[error(
        "{place}: sample {row} holds the integer {value} at position {position:?}, which {element} cannot hold exactly; read it in a wider type or rescale the data"
    )]
    Inexact {
        /// The file, with the key inside it.
        place: String,
        /// The sample, counted from 0.
        row: usize,
        /// The index within the sample, counted from 0.
        position: Vec<usize>,
        /// The integer.
        value: i128,
        /// The type it was to become.
        element: &'static str,
    },

    /// Rows were asked for that are not there.
    #[error("{place}: row {row} asked for, but there are {n_samples} samples")]
    Row {
        /// The file, with the key inside it.
        place: String,
        /// The first row that does not exist.
        row: usize,
        /// The number of samples.
        n_samples: usize,
    },

    /// The array does not have the shape that is needed.
    #[error("{place}: shape {shape:?} does not fit: {reason}")]
    Shape {
        /// The file, with the key inside it, or the preprocessing step.
        place: String,
        /// The shape found.
        shape: Vec<usize>,
        /// What is needed.
        reason: String,
    },

    /// A column that is asked for as an input and used as something else.
    #[error(
        "{place}: the column `{column}` is used as {role}, so it cannot be an input too; leave it out of the list, or write the {role}s to a file of their own if this is meant"
    )]
    UsedColumn {
        /// The file, with the columns asked for.
        place: String,
        /// The column.
        column: String,
        /// What it is used as.
        role: String,
    },

    /// The columns of a table are not those of another one.
    #[error("{place}: its columns do not match: {reason}; the columns needed are {}", listed(.expected))]
    Columns {
        /// The file.
        place: String,
        /// What is missing, and what is there instead.
        reason: String,
        /// The columns that are needed.
        expected: Vec<String>,
    },

    /// Two inputs of different length.
    #[error(
        "{first} has {n_first} samples but {other} has {n_other}; every input needs one row per sample, in the same order"
    )]
    Samples {
        /// The first input.
        first: String,
        /// Its number of samples.
        n_first: usize,
        /// Another one.
        other: String,
        /// Its number of samples.
        n_other: usize,
    },

    /// Names of classes that cannot be matched to outputs.
    #[error("{place}: {reason}")]
    ClassNames {
        /// Where the names are from.
        place: String,
        /// Why they cannot be matched.
        reason: String,
    },

    /// A label that is not a class.
    #[error("{place}: label {row} is {value}, {reason}")]
    Label {
        /// The file, with the key inside it.
        place: String,
        /// The sample, counted from 0.
        row: usize,
        /// The label.
        value: String,
        /// Why it cannot be used.
        reason: &'static str,
    },

    /// A label that is none of the classes that are known.
    #[error("{place}: label {row} is {value}, which is none of the known classes: {}", listed(.known))]
    UnknownClass {
        /// The file, with the key inside it.
        place: String,
        /// The sample, counted from 0.
        row: usize,
        /// The label.
        value: String,
        /// The classes that are known.
        known: Vec<String>,
    },

    /// Data and labels of different length.
    #[error("{data} has {n_data} samples but {labels} has {n_labels} labels")]
    Count {
        /// The data set.
        data: String,
        /// Its number of samples.
        n_data: usize,
        /// The labels.
        labels: String,
        /// Their number.
        n_labels: usize,
    },

    /// A parameter outside its range.
    #[error("{name}: {reason}")]
    Argument {
        /// The parameter.
        name: &'static str,
        /// What it must be.
        reason: String,
    },

    /// The file to be written is there already.
    #[error("{place} exists already; choose another name or allow overwriting")]
    Exists {
        /// The file.
        place: String,
    },

    /// A file that is not what was written, by its digest or its length.
    #[error("{place} is damaged: {reason}; restore it from a copy, or make the folder it belongs to again")]
    Damaged {
        /// The file.
        place: String,
        /// How that shows.
        reason: String,
    },

    /// Samples elsewhere that something which was saved refers to, and that are others now.
    #[error(
        "{place} has changed: these are not the samples that were saved; bring the old ones back, or make the folder again"
    )]
    Changed {
        /// The file.
        place: String,
    },

    /// Something that was saved by a newer program.
    #[error("{place}: its version is {found}, but this program reads versions up to {known}; use a newer mercer")]
    Version {
        /// The file.
        place: String,
        /// The version it has.
        found: u32,
        /// The newest version that is read.
        known: u32,
    },

    /// A folder of something else.
    #[error("{place} holds {found}, not {wanted}")]
    Kind {
        /// The folder.
        place: String,
        /// What is saved in it.
        found: String,
        /// What was looked for.
        wanted: String,
    },

    /// A file that would be replaced, and that was not written by whoever wants to replace it.
    #[error("{place} would be replaced, but nothing shows that it is a result of this command: it is left alone")]
    Foreign {
        /// The file.
        place: String,
    },
}

fn available(found: u64, at_most: bool) -> String {
    if at_most { format!("can be at most {found}") } else { format!("are {found}") }
}

fn first(keys: &[String]) -> &str {
    keys.first().map_or("", String::as_str)
}

/// `a`, `b` and `c`, cut short when there are very many.
pub(crate) fn listed(keys: &[String]) -> String {
    const SHOWN: usize = 20;
    if keys.is_empty() {
        return "no arrays".to_owned();
    }
    let mut text = keys.iter().take(SHOWN).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    if keys.len() > SHOWN {
        text += &format!(" and {} more", keys.len() - SHOWN);
    }
    text
}

/// Turns an [`io::Error`] into ours by adding the file it speaks of.
pub(crate) fn io_error(place: impl ToString) -> impl FnOnce(io::Error) -> DataError {
    let place = place.to_string();
    move |source| DataError::Io { place, source }
}
