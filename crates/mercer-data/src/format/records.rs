//! The lines of a text table, split into cells.
//!
//! Lines are counted here, and the `csv` crate is used only for lines with quotes: its own count is wrong after empty
//! lines, and it does not limit the length of a record.
//!
//! Lines that begin with `#` are comments before the first record, and anywhere in a table separated by blanks. Elsewhere
//! they are rows: a text may begin with `#`, and a row must not get lost. Tab-separated tables have no cells of several
//! lines, because their texts contain single quotation marks; a cell in quotation marks is unquoted.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Chain, Cursor, Read};

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::error::{DataError, Result, io_error};

/// How much of the file is read to find the separator.
const LOOK_AHEAD: u64 = 64 << 10;

/// The longest record, so that a compressed file cannot fill the memory with one line.
const LONGEST: usize = 64 << 20;

/// Reads records with any separator.
pub(crate) struct Records<R> {
    place: String,
    reader: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    /// `None` if runs of blanks separate the columns, as in `numpy.savetxt` and aligned tables.
    delimiter: Option<u8>,
    line: u64,
    /// Whether a record was read.
    begun: bool,
    buffer: Vec<u8>,
}

impl<R: Read> Records<R> {
    pub(crate) fn new(place: &str, mut reader: R) -> Result<Self> {
        let mut start = Vec::new();
        (&mut reader).take(LOOK_AHEAD).read_to_end(&mut start).map_err(io_error(place))?;
        if start.starts_with(b"\xef\xbb\xbf") {
            start.drain(..3);
        }
        let delimiter = delimiter(&start);
        let reader = BufReader::new(Cursor::new(start).chain(reader));
        Ok(Self { place: place.to_owned(), reader, delimiter, line: 0, begun: false, buffer: Vec::new() })
    }

    /// Reads the next record and returns its line number, or `None` at the end.
    pub(crate) fn next(&mut self, record: &mut StringRecord) -> Result<Option<u64>> {
        loop {
            self.buffer.clear();
            if !self.read_line()? {
                return Ok(None);
            }
            let is_comment = self.buffer.starts_with(b"#") && (!self.begun || self.delimiter.is_none());
            if !self.buffer.trim_ascii().is_empty() && !is_comment {
                break;
            }
        }
        self.begun = true;
        let line = self.line;
        // A quoted cell may contain line breaks.
        let mut is_open = self.delimiter.is_some_and(|delimiter| delimiter != b'\t') && has_odd_quotes(&self.buffer);
        while is_open {
            let before = self.buffer.len();
            if !self.read_line()? {
                return Err(self.malformed(format!("a quote opened in line {line} is never closed")));
            }
            is_open ^= has_odd_quotes(&self.buffer[before..]);
        }
        let text = str::from_utf8(&self.buffer).map_err(|error| {
            let at = error.valid_up_to();
            let byte = self.buffer.get(at).copied().unwrap_or_default();
            let reason = format!("line {line} is not UTF-8 text: its byte {} is 0x{byte:02X}", at + 1);
            self.malformed(reason + "; save the file as UTF-8")
        })?;
        record.clear();
        match self.delimiter {
            None => text.split_whitespace().for_each(|cell| record.push_field(cell)),
            Some(delimiter) if !text.contains('"') => {
                let text = text.trim_end_matches(['\n', '\r']);
                text.split(char::from(delimiter)).for_each(|cell| record.push_field(cell.trim()));
            }
            Some(b'\t') => {
                let text = text.trim_end_matches(['\n', '\r']);
                text.split('\t').for_each(|cell| record.push_field(&unquoted(cell.trim())));
            }
            Some(delimiter) => {
                let mut builder = ReaderBuilder::new();
                builder.delimiter(delimiter).has_headers(false).trim(Trim::All);
                let mut reader = builder.from_reader(text.as_bytes());
                let malformed = |error| self.malformed(format!("line {line}: {error}"));
                reader.read_record(record).map_err(malformed)?;
                // A mark inside a cell opens nothing, so the lines joined for it are records of their own.
                if reader.read_record(&mut StringRecord::new()).map_err(malformed)? {
                    let reason =
                        "has a quotation mark inside a cell; put the cell in quotation marks and double the mark";
                    return Err(self.malformed(format!("line {line} {reason}")));
                }
            }
        }
        Ok(Some(line))
    }

    /// Appends a line to the buffer, if there is another one.
    fn read_line(&mut self) -> Result<bool> {
        let room = (LONGEST - self.buffer.len().min(LONGEST)) as u64;
        let read = (&mut self.reader).take(room).read_until(b'\n', &mut self.buffer).map_err(io_error(&self.place))?;
        self.line += 1;
        if self.buffer.len() >= LONGEST {
            return Err(self.malformed(format!("the record at line {} is longer than {LONGEST} bytes", self.line)));
        }
        Ok(read > 0)
    }

    pub(crate) fn check_width(&self, line: u64, found: usize, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(self.malformed(format!("line {line} has {found} columns, but the first line has {expected}")))
    }

    pub(crate) fn malformed(&self, reason: String) -> DataError {
        DataError::Malformed { place: self.place.clone(), format: "CSV", reason }
    }
}

/// A cell without the quotation marks around it.
fn unquoted(cell: &str) -> Cow<'_, str> {
    match cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => Cow::Owned(inner.replace("\"\"", "\"")),
        None => Cow::Borrowed(cell),
    }
}

fn has_odd_quotes(text: &[u8]) -> bool {
    text.iter().filter(|&&byte| byte == b'"').count() % 2 == 1
}

/// The first of tab, semicolon and comma that the first line contains outside quotes; otherwise blanks.
///
/// Semicolons come before commas because of `1,5;2,5`.
fn delimiter(start: &[u8]) -> Option<u8> {
    let mut lines = start.split(|&byte| byte == b'\n');
    let line = lines.find(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))?;
    let mut quoted = false;
    let mut outside = Vec::with_capacity(line.len());
    for &byte in line {
        quoted ^= byte == b'"';
        if !quoted {
            outside.push(byte);
        }
    }
    let found = [b'\t', b';', b','].into_iter().find(|candidate| outside.contains(candidate));
    // Quotes without a separator, or a single word, are a single column, whose cells may contain blanks.
    let is_single = line.contains(&b'"') || !line.trim_ascii().iter().any(u8::is_ascii_whitespace);
    found.or(is_single.then_some(b','))
}
