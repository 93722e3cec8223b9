//! The lines of a text table, cut into cells.
//!
//! Lines are counted here, and the `csv` crate is only asked about lines with quotes: its own count is off after empty
//! lines, and it has no bound on the length of a record.

use std::io::{BufRead, BufReader, Chain, Cursor, Read};

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::error::{DataError, Result, io_error};

/// How much of the file is looked at to find what separates the columns.
const LOOK_AHEAD: u64 = 64 << 10;

/// No record is longer than this, so that a compressed file cannot fill the memory with one line.
const LONGEST: usize = 64 << 20;

/// Reads record after record, whatever separates the cells.
pub(crate) struct Records<R> {
    place: String,
    reader: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    /// Nothing if any run of blanks separates: what `numpy.savetxt` and aligned tables use.
    delimiter: Option<u8>,
    line: u64,
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
        Ok(Self { place: place.to_owned(), reader, delimiter, line: 0, buffer: Vec::new() })
    }

    /// Reads the next record and gives the number of its line, or nothing at the end.
    pub(crate) fn next(&mut self, record: &mut StringRecord) -> Result<Option<u64>> {
        loop {
            self.buffer.clear();
            if !self.read_line()? {
                return Ok(None);
            }
            if !self.buffer.trim_ascii().is_empty() && !self.buffer.starts_with(b"#") {
                break;
            }
        }
        let line = self.line;
        // A quoted cell may contain line breaks.
        let mut is_open = self.delimiter.is_some() && has_odd_quotes(&self.buffer);
        while is_open {
            let before = self.buffer.len();
            if !self.read_line()? {
                return Err(self.malformed(format!("a quote that is opened in line {line} is never closed")));
            }
            is_open ^= has_odd_quotes(&self.buffer[before..]);
        }
        let text =
            str::from_utf8(&self.buffer).map_err(|_| self.malformed(format!("line {line} is not UTF-8 text")))?;
        record.clear();
        match self.delimiter {
            None => text.split_whitespace().for_each(|cell| record.push_field(cell)),
            Some(delimiter) if !text.contains('"') => {
                let text = text.trim_end_matches(['\n', '\r']);
                text.split(char::from(delimiter)).for_each(|cell| record.push_field(cell.trim()));
            }
            Some(delimiter) => {
                let mut builder = ReaderBuilder::new();
                builder.delimiter(delimiter).has_headers(false).trim(Trim::All);
                let parsed = builder.from_reader(text.as_bytes()).read_record(record);
                parsed.map_err(|error| self.malformed(format!("line {line}: {error}")))?;
            }
        }
        Ok(Some(line))
    }

    /// Appends a line to the buffer, unless there is none left.
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
        Err(self.malformed(format!("line {line} has {found} columns, the first line has {expected}")))
    }

    pub(crate) fn malformed(&self, reason: String) -> DataError {
        DataError::Malformed { place: self.place.clone(), format: "CSV", reason }
    }
}

fn has_odd_quotes(text: &[u8]) -> bool {
    text.iter().filter(|&&byte| byte == b'"').count() % 2 == 1
}

/// The first of tab, semicolon and comma that the first line contains outside of quotes; else blanks.
///
/// Semicolons go before commas because of `1,5;2,5`.
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
    // Quotes without a separator are a single column, whose cells may contain blanks.
    found.or(line.contains(&b'"').then_some(b','))
}
