//! CSV: one sample per line, one feature per column.
//!
//! The text is parsed once, when it is opened, into an array of `f64` (in memory, or in an anonymous temporary file if
//! it is large). So every error is found with its line and column, and any row can be read at any time.
//!
//! `FILE:KEY` chooses columns. `species` is one column, which becomes a 1-D array and may be text; `a,b` are several;
//! `-species` is every column except that one. A column is named by the header or by its number, counted from 0.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use csv::StringRecord;
use flate2::read::MultiGzDecoder;

use super::{Format, Opened};
use crate::bytes::{self, Spool};
use crate::columns::Chosen;
use crate::element::{ByteOrder, DType};
use crate::error::{DataError, Result, io_error};
use crate::format::records::Records;
use crate::stored::{Layout, Stored};

/// A text column with more distinct values than this does not hold class names.
const MOST_CLASSES: usize = 65_536;

const NOT_A_NUMBER: &str = "is not a number; if this column holds labels, leave it out of the data with FILE:-COLUMN and use FILE:COLUMN as labels";

/// Opens the file and parses the columns of a key.
pub(crate) fn open(path: &Path, key: Option<&str>, gzipped: bool) -> Result<Opened> {
    let place = path.display().to_string();
    reading(path, gzipped, |reader| read(&place, reader, |names| choose(&place, key, names)))
}

/// Opens the file and parses the chosen columns.
pub(crate) fn open_columns(path: &Path, chosen: &Chosen, gzipped: bool) -> Result<Opened> {
    let place = path.display().to_string();
    reading(path, gzipped, |reader| {
        read(&place, reader, |names| match chosen.places.iter().all(|&column| column < names.len()) {
            true => Ok(chosen.clone()),
            false => Err(DataError::Malformed {
                place: place.clone(),
                format: "CSV",
                reason: "its columns changed while it was read".to_owned(),
            }),
        })
    })
}

/// The longest text of a cell that is read as a text.
pub(crate) const LONGEST_TEXT: usize = 1 << 20;

/// Reads a column of texts, one after the other. Cells must not be empty.
pub(crate) fn texts(
    path: &Path,
    column: usize,
    gzipped: bool,
    mut each: impl FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let place = path.display().to_string();
    reading(path, gzipped, |reader| {
        let mut records = Records::new(&place, reader)?;
        let head = Head::read(&mut records)?;
        let names = &head.header.names;
        let mut one = |line: u64, record: &StringRecord| {
            let cell = record.get(column).unwrap_or_default();
            let reason = match cell.len() {
                0 => "is empty; fill in a text or remove the line",
                length if length > LONGEST_TEXT => "is longer than 1 MiB",
                _ => return each(line, cell),
            };
            let (name, value) = (names.get(column).cloned().unwrap_or_default(), cell.chars().take(60).collect());
            Err(DataError::Cell { place: place.clone(), line, column: column + 1, name, value, reason })
        };
        head.rows.iter().try_for_each(|(line, record)| one(*line, record))?;
        let mut record = StringRecord::new();
        while let Some(line) = records.next(&mut record)? {
            records.check_width(line, record.len(), names.len())?;
            one(line, &record)?;
        }
        Ok(())
    })
}

/// The names of the columns, and whether they come from a header.
pub(crate) struct Header {
    pub(crate) names: Vec<String>,
    pub(crate) named: bool,
}

/// Reads only the first lines.
pub(crate) fn header(path: &Path, gzipped: bool) -> Result<Header> {
    let place = path.display().to_string();
    reading(path, gzipped, |reader| Head::read(&mut Records::new(&place, reader)?).map(|head| head.header))
}

/// Whether the first row has a cell in the columns of a key that is no number.
pub(crate) fn starts_with_text(path: &Path, key: Option<&str>, gzipped: bool) -> Result<bool> {
    let place = path.display().to_string();
    reading(path, gzipped, |reader| {
        let head = Head::read(&mut Records::new(&place, reader)?)?;
        let chosen = choose(&place, key, &head.header.names)?;
        let is_text = |cell: &str| !cell.is_empty() && cell.parse::<f64>().is_err();
        Ok(head.rows.first().is_some_and(|(_, row)| chosen.places.iter().any(|&column| is_text(&row[column]))))
    })
}

fn reading<T>(path: &Path, gzipped: bool, read: impl FnOnce(Box<dyn Read>) -> Result<T>) -> Result<T> {
    let (file, _) = bytes::open(path)?;
    read(if gzipped { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) })
}

fn read(place: &str, reader: Box<dyn Read>, choose: impl FnOnce(&[String]) -> Result<Chosen>) -> Result<Opened> {
    let mut records = Records::new(place, reader)?;
    let head = Head::read(&mut records)?;
    let Header { names, named } = &head.header;
    let Chosen { places: chosen, alone, .. } = choose(names)?;
    let mut sink = Sink { place, columns: names, spool: Spool::default(), is_integer: true, codes: None };
    let is_text = alone && head.rows.first().is_some_and(|(_, row)| row[chosen[0]].parse::<f64>().is_err());
    if is_text {
        sink.codes = Some(HashMap::new());
    }
    let mut n_rows = 0;
    for (line, record) in &head.rows {
        sink.push(*line, record, &chosen)?;
        n_rows += 1;
    }
    let mut record = StringRecord::new();
    while let Some(line) = records.next(&mut record)? {
        records.check_width(line, record.len(), names.len())?;
        sink.push(line, &record, &chosen)?;
        n_rows += 1;
    }
    let shape = if alone { vec![n_rows] } else { vec![n_rows, chosen.len()] };
    let columns = chosen.iter().map(|&column| names[column].clone()).collect();
    Ok(Opened { named: *named, ..sink.finish(shape, columns)? })
}

/// The names of the columns, and the rows that had to be read to find them.
struct Head {
    header: Header,
    rows: Vec<(u64, StringRecord)>,
}

impl Head {
    fn read<R: Read>(records: &mut Records<R>) -> Result<Self> {
        let mut rows = Vec::new();
        let mut record = StringRecord::new();
        while rows.len() < 2 {
            let Some(line) = records.next(&mut record)? else { break };
            rows.push((line, record.clone()));
        }
        let Some((_, first)) = rows.first() else {
            return Err(records.malformed("it has no lines".to_owned()));
        };
        let n_columns = first.len();
        for (line, row) in &rows {
            records.check_width(*line, row.len(), n_columns)?;
        }
        let named = is_header(first, rows.get(1).map(|(_, row)| row));
        let names = if named {
            rows.remove(0).1.iter().map(str::to_owned).collect()
        } else {
            (0..n_columns).map(|column| column.to_string()).collect()
        };
        Ok(Self { header: Header { names, named }, rows })
    }
}

/// The first line is a header if no cell in it is a number, or if a text cell is above a number.
fn is_header(first: &StringRecord, second: Option<&StringRecord>) -> bool {
    let is_number = |cell: &str| cell.is_empty() || cell.parse::<f64>().is_ok();
    let above_number = |row: &StringRecord| first.iter().zip(row).any(|(a, b)| !is_number(a) && is_number(b));
    first.iter().all(|cell| !is_number(cell)) || second.is_some_and(above_number)
}

/// The columns that a key chooses; without a key, all columns.
pub(crate) fn choose(place: &str, key: Option<&str>, columns: &[String]) -> Result<Chosen> {
    let Some(key) = key else {
        return Ok(Chosen { places: (0..columns.len()).collect(), alone: false, explicit: false });
    };
    let find = |name: &str| {
        let by_number = || name.parse().ok().filter(|&column| column < columns.len());
        columns.iter().position(|column| column == name).or_else(by_number)
    };
    if let Some(column) = find(key) {
        return Ok(Chosen { places: vec![column], alone: true, explicit: true });
    }
    let (list, exclude) = match key.strip_prefix('-') {
        Some(list) => (list, true),
        None => (key, false),
    };
    // A name may contain a comma.
    let names = if find(list).is_some() { vec![list] } else { list.split(',').map(str::trim).collect() };
    let mut chosen = Vec::with_capacity(names.len());
    for name in names {
        chosen.push(find(name).ok_or_else(|| DataError::MissingKey {
            place: place.to_owned(),
            key: name.to_owned(),
            available: columns.to_vec(),
        })?);
    }
    if exclude {
        chosen = (0..columns.len()).filter(|column| !chosen.contains(column)).collect();
    }
    if chosen.is_empty() {
        let (shape, reason) = (vec![columns.len()], "no column is left".to_owned());
        return Err(DataError::Shape { place: format!("{place}:{key}"), shape, reason });
    }
    Ok(Chosen { places: chosen, alone: false, explicit: !exclude })
}

/// Collects the cells as numbers, or as codes of text.
struct Sink<'a> {
    place: &'a str,
    columns: &'a [String],
    spool: Spool,
    is_integer: bool,
    codes: Option<HashMap<String, usize>>,
}

impl Sink<'_> {
    fn push(&mut self, line: u64, record: &StringRecord, chosen: &[usize]) -> Result<()> {
        for &column in chosen {
            let cell = &record[column];
            let value = self.value(cell).map_err(|reason| DataError::Cell {
                place: self.place.to_owned(),
                line,
                column: column + 1,
                name: self.columns[column].clone(),
                value: cell.chars().take(60).collect(),
                reason,
            })?;
            self.spool.write_all(&value.to_le_bytes()).map_err(io_error(self.place))?;
        }
        Ok(())
    }

    fn value(&mut self, cell: &str) -> Result<f64, &'static str> {
        if cell.is_empty() {
            return Err("is empty; fill in the value or remove the line");
        }
        if let Some(codes) = &mut self.codes {
            let next = codes.len();
            let code = *codes.entry(cell.to_owned()).or_insert(next);
            return if code < MOST_CLASSES {
                Ok(code as f64)
            } else {
                Err("exceeds the number of class names that are supported")
            };
        }
        let value: f64 = cell.parse().map_err(|_| NOT_A_NUMBER)?;
        if !value.is_finite() {
            return Err("is not finite; fill in the value or remove the line");
        }
        self.is_integer &= cell.parse::<i64>().is_ok();
        Ok(value)
    }

    fn finish(self, shape: Vec<usize>, columns: Vec<String>) -> Result<Opened> {
        let Self { place, spool, is_integer, codes, .. } = self;
        let layout = Layout { dtype: DType::F64, order: ByteOrder::Little, shape, fortran: false };
        let stored = Stored::new(place, layout, spool.finish(place)?)?;
        let class_names = codes.map(|codes| {
            let mut names = vec![String::new(); codes.len()];
            codes.into_iter().for_each(|(name, code)| names[code] = name);
            names
        });
        Ok(Opened { format: Format::Csv, stored, columns, named: false, class_names, is_integer })
    }
}
