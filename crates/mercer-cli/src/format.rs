//! Tables as text.

use crate::visible;
use mercer::text::grouped;
use std::fmt::Write;

/// Maximum length of a table cell; JSON has the full text.
const LONGEST_CELL: usize = 120;

/// Rows of cells. Each column is as wide as its widest cell, and `right` columns are right-aligned.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = if right.contains(&column) {
                write!(line, " {cell:>width$} ")
            } else {
                write!(line, " {cell:width$} ")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A cell on one line. The middle of a very long cell, such as a file name, is left out.
fn cell(text: &str) -> String {
    let shown = visible::line(text);
    let count = shown.chars().count();
    if count <= LONGEST_CELL {
        return shown.into_owned();
    }
    let half = LONGEST_CELL / 2;
    let (start, end): (String, String) =
        (shown.chars().take(half).collect(), shown.chars().skip(count - half + 1).collect());
    format!("{start}…{end}")
}

/// The first rows of a long table, and the number of remaining ones.
pub(crate) fn shortened(mut rows: Vec<Vec<String>>, most: usize, right: &[usize]) -> String {
    let hidden = if rows.len() > most + 1 { rows.len() - most } else { 0 };
    rows.truncate(rows.len() - hidden);
    let mut text = table(&rows, right);
    if hidden > 0 {
        let _ = writeln!(text, "  … and {} more; -v shows all", grouped(hidden));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_are_cut_and_stay_on_their_line() {
        let rows = vec![vec!["n".repeat(70_000), "a\nb".to_owned()], vec!["x".to_owned(), "1".to_owned()]];
        let text = table(&rows, &[1]);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.chars().count() < 200), "{text}");
    }

    #[test]
    fn long_tables_are_cut() {
        let rows: Vec<_> = (0..5).map(|row| vec![format!("row{row}"), "x".repeat(row)]).collect();
        assert_eq!(shortened(rows.clone(), 3, &[]), "  row0\n  row1  x\n  row2  xx\n  … and 2 more; -v shows all\n");
        // A line saying "one more" would save nothing.
        assert_eq!(shortened(rows, 4, &[1]).lines().count(), 5);
    }
}
