//! Tables of a page.

use super::html::{NAME, Tips, WHOLE, element, shortened};
use crate::figure::grouped;

/// The most rows of a table.
const ROWS: usize = 200;

/// The longest text that a cell shows, in characters.
const CELL: usize = 160;

/// A table that readers can sort and filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    n_rows: usize,
    /// Where the rest is.
    source: String,
}

impl Table {
    /// A table without rows. `source` says where all rows are, if the page has room for some of them only.
    pub fn new<N: Into<String>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = N>,
        source: impl Into<String>,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self { title: title.into(), columns, rows: Vec::new(), n_rows: 0, source: source.into() }
    }

    /// Adds a row; beyond 200 it is only counted.
    pub fn row<N: Into<String>>(&mut self, cells: impl IntoIterator<Item = N>) {
        self.n_rows += 1;
        if self.rows.len() < ROWS {
            self.rows.push(cells.into_iter().map(|cell| shortened(&cell.into(), WHOLE)).collect());
        }
    }

    /// Says how many rows there are, if it is known to be more than were given.
    #[must_use]
    pub fn of(mut self, n_rows: usize) -> Self {
        self.n_rows = self.n_rows.max(n_rows);
        self
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What it is a table of.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// As markup.
    pub(super) fn html(&self, tips: &Tips) -> String {
        let numeric: Vec<bool> = (0..self.columns.len())
            .map(|at| {
                let mut cells =
                    self.rows.iter().filter_map(|row| row.get(at)).filter(|cell| !cell.is_empty()).peekable();
                cells.peek().is_some() && cells.all(|cell| is_number(cell))
            })
            .collect();
        let class = |at: usize| if numeric.get(at) == Some(&true) { " class=\"n\"" } else { "" };
        let head =
            self.columns.iter().enumerate().map(|(at, name)| {
                format!("<th scope=\"col\"{}>{}</th>", class(at), tips.element("span", "", name, NAME))
            });
        let mut text = format!(
            "<div class=\"table\"><table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>",
            tips.text(&self.title, 160),
            head.collect::<String>()
        );
        for row in &self.rows {
            text.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                text.push_str(&format!("<td{}>{}</td>", class(at), tips.text(cell, CELL)));
            }
            text.push_str("</tr>");
        }
        text.push_str("</tbody></table></div>");
        if self.n_rows > self.rows.len() {
            let (shown, all) = (grouped(self.rows.len()), grouped(self.n_rows));
            let place = shortened(&self.source, 160);
            let place = if place.is_empty() { place } else { format!("; all are in {place}") };
            text.push_str(&element("p", "note", &format!("The first {shown} of {all} rows{place}.")));
        }
        text
    }
}

/// Whether a cell sorts as a number: digits with separators, a sign, a unit of percent.
fn is_number(cell: &str) -> bool {
    let plain: String = cell.trim_end_matches(" %").chars().filter(|c| *c != ',').collect();
    plain == "–" || plain.replace('−', "-").parse::<f64>().is_ok()
}
