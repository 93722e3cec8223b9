//! Tables as CSV.

/// A table under construction. Cells with commas, quotes or line breaks are quoted.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    text: String,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut table = Self { text: String::new() };
        table.line(columns);
        table
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, cells: &[&str]) {
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            if cell.contains([',', '"', '\n', '\r']) || cell.starts_with(' ') || cell.ends_with(' ') {
                self.text.push('"');
                self.text.push_str(&cell.replace('"', "\"\""));
                self.text.push('"');
            } else {
                self.text.push_str(cell);
            }
        }
        self.text.push('\n');
    }

    /// The file.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The lines of such a table, cell by cell; the first one has the names of the columns.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Vec<String>> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut cells, mut cell, mut quoted) = (Vec::new(), Vec::new(), false);
        let mut at = 0;
        while at < rest.len() {
            match rest[at] {
                b'"' if quoted && rest.get(at + 1) == Some(&b'"') => {
                    cell.push(b'"');
                    at += 1;
                }
                b'"' => quoted = !quoted,
                b',' if !quoted => cells.push(std::mem::take(&mut cell)),
                b'\n' if !quoted => break,
                b'\r' if !quoted => {}
                byte => cell.push(byte),
            }
            at += 1;
        }
        cells.push(cell);
        rest = rest.get(at + 1..).unwrap_or_default();
        Some(cells.into_iter().map(|cell| String::from_utf8_lossy(&cell).into_owned()).collect())
    })
}

/// A number that reads back as the same number.
pub(crate) fn number(value: f64) -> String {
    // Rust prints the shortest digits that are exact; very small and large numbers get an exponent.
    if value != 0.0 && !(1e-5..1e15).contains(&value.abs()) { format!("{value:e}") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut table = Table::new(&["a", "b"]);
        table.line(&["x, y", "say \"no\""]);
        table.line(&["two\nlines", "plain"]);
        let read: Vec<Vec<String>> = records(table.as_bytes()).collect();
        assert_eq!(read, [["a", "b"], ["x, y", "say \"no\""], ["two\nlines", "plain"]]);
        assert_eq!(table.as_bytes(), b"a,b\n\"x, y\",\"say \"\"no\"\"\"\n\"two\nlines\",plain\n");
    }

    #[test]
    fn numbers_read_back() {
        for value in [0.0, 1.0, -0.1, 1e-300, 1.0 / 3.0, 6.02e23, -1e-7] {
            assert_eq!(number(value).parse::<f64>(), Ok(value));
        }
    }
}
