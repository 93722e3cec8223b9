//! Errors about data, with enough detail for the user to act on them.

use std::io;

/// The result type of this crate.
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

    /// The file is in none of the supported formats.
    #[error(
        "{place}: {reason}; supported formats are .npy, .npz, IDX (also gzipped), CSV, and folders of PNG and JPEG images"
    )]
    UnknownFormat {
        /// The file.
        place: String,
        /// What it looks like instead.
        reason: &'static str,
    },

    /// The file is readable, but it does not hold what is needed.
    #[error("{place}: {reason}")]
    Refused {
        /// The file.
        place: String,
        /// What is wrong, and what to do.
        reason: String,
    },

    /// The work was cancelled.
    #[error("{place}: cancelled while it was read")]
    Cancelled {
        /// The file.
        place: String,
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

    /// The header declares more or fewer bytes than the file has.
    #[error("{place}: the header declares {declared} bytes of data, but there {}", available(*.found, *.at_most))]
    Size {
        /// The file, with the key inside it.
        place: String,
        /// The bytes that shape and type need.
        declared: u64,
        /// The bytes found.
        found: u64,
        /// `found` is an upper bound: what a compressed file of this length could hold.
        at_most: bool,
    },

    /// The shape is too large for any computer's memory or address space.
    #[error("{place}: an array of shape {shape:?} is too large to address")]
    TooLarge {
        /// The file, with the key inside it.
        place: String,
        /// The requested shape.
        shape: Vec<usize>,
    },

    /// There is not enough memory for the requested rows.
    #[error("{place}: not enough memory for {bytes} bytes of rows; read fewer rows at a time")]
    Memory {
        /// The file, with the key inside it.
        place: String,
        /// The requested bytes.
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
    #[error("{place}: there is no `{key}` in this file; it holds {}", listed(.available))]
    MissingKey {
        /// The file.
        place: String,
        /// The requested key.
        key: String,
        /// The available keys.
        available: Vec<String>,
    },

    /// The file holds several arrays and none was chosen.
    #[error("{place}: this file holds {} arrays; choose one, as in `{place}:{}`; it holds {}", .available.len(), first(.available), listed(.available))]
    KeyNeeded {
        /// The file.
        place: String,
        /// The available keys.
        available: Vec<String>,
    },

    /// A key was given for a file that holds a single array.
    #[error("{place}: a {format} file holds a single array; leave out `:{key}`")]
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
    #[error("{place}: sample {row} is {value}{}{stage}; remove the sample or fill in the value first", at(position))]
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

    /// An integer that the requested floating-point type cannot represent.
    #[error(
        "{place}: sample {row} holds the integer {value}{}, which {element} cannot represent exactly; read it in a wider type or rescale the data",
        at(position)
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

    /// A requested row does not exist.
    #[error("{place}: row {row} was requested, but there are only {n_samples} samples")]
    Row {
        /// The file, with the key inside it.
        place: String,
        /// The first row that does not exist.
        row: usize,
        /// The number of samples.
        n_samples: usize,
    },

    /// The array does not have the shape that is needed.
    #[error("{place}: unexpected shape {shape:?}: {reason}")]
    Shape {
        /// The file, with the key inside it, or the preprocessing step.
        place: String,
        /// The shape found.
        shape: Vec<usize>,
        /// What is needed.
        reason: String,
    },

    /// A column that is requested as an input and also used as something else.
    #[error(
        "{place}: the column `{column}` is used as {role}, so it cannot also be an input; leave it out of the list or, if this is intended, write the {role}s to a separate file"
    )]
    UsedColumn {
        /// The file, with the requested columns.
        place: String,
        /// The column.
        column: String,
        /// What it is used as.
        role: String,
    },

    /// The columns of a table do not match those of another one.
    #[error("{place}: its columns do not match: {reason}; it needs the columns {}", listed(.expected))]
    Columns {
        /// The file.
        place: String,
        /// What is missing, and what was found instead.
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

    /// Class names that cannot be matched to outputs.
    #[error("{place}: {reason}")]
    ClassNames {
        /// Where the names come from.
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

    /// A label that is not among the known classes.
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

    /// The file to be written already exists.
    #[error("{place} exists already; choose another name or allow overwriting")]
    Exists {
        /// The file.
        place: String,
    },

    /// A file whose digest or length does not match.
    #[error("{place} is damaged: {reason}; restore it from a copy, or recreate its folder")]
    Damaged {
        /// The file.
        place: String,
        /// How it is damaged.
        reason: String,
    },

    /// Samples outside a saved folder that have changed since it was saved.
    #[error(
        "{place} has changed: these are not the samples that the folder refers to; restore the old ones, or recreate the folder"
    )]
    Changed {
        /// The file.
        place: String,
    },

    /// Something saved by a newer version of the program.
    #[error("{place}: its version is {found}, but this program supports versions up to {known}; use a newer mercer")]
    Version {
        /// The file.
        place: String,
        /// The version it has.
        found: u32,
        /// The newest version that is read.
        known: u32,
    },

    /// A folder of another kind.
    #[error("{place} holds {found}, not {wanted}")]
    Kind {
        /// The folder.
        place: String,
        /// What is saved in it.
        found: String,
        /// What was expected.
        wanted: String,
    },

    /// A file that would be replaced although it is not a result of the command.
    #[error("{place} would be replaced, but it does not appear to be a result of this command, so it is left alone")]
    Foreign {
        /// The file.
        place: String,
    },
}

fn available(found: u64, at_most: bool) -> String {
    if at_most { format!("can be at most {found}") } else { format!("are {found}") }
}

/// Where a number is in its sample, if a sample has more than one.
fn at(position: &[usize]) -> String {
    if position.is_empty() { String::new() } else { format!(" at position {position:?}") }
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

/// Converts an [`io::Error`] and adds the file it concerns.
pub(crate) fn io_error(place: impl ToString) -> impl FnOnce(io::Error) -> DataError {
    let place = place.to_string();
    move |source| DataError::Io { place, source }
}
