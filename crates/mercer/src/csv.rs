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
        assert_eq!(table.as_bytes(), b"a,b\n\"x, y\",\"say \"\"no\"\"\"\n\"two\nlines\",plain\n");
    }

    #[test]
    fn numbers_read_back() {
        for value in [0.0, 1.0, -0.1, 1e-300, 1.0 / 3.0, 6.02e23, -1e-7] {
            assert_eq!(number(value).parse::<f64>(), Ok(value));
        }
    }
}
