//! Numbers and tables as text.

use crate::visible;
use std::fmt::Write;

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 40813184 as 40.8 M.
pub(crate) fn short(number: u64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.iter().find(|(size, _)| number as f64 >= *size) {
        Some((size, prefix)) => format!("{:.1} {prefix}", number as f64 / size),
        None => number.to_string(),
    }
}

/// 1572864 as 1.5 MiB.
pub(crate) fn bytes(number: usize) -> String {
    let units =
        [(1u64 << 60, "EiB"), (1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(size, _)| number as u64 >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", number as f64 / *size as f64),
        None => format!("{number} bytes"),
    }
}

/// Seconds as 0.80 s, 189.5 s, 12 min 30 s, 5 h 12 min or 7 d 7 h.
pub(crate) fn duration(seconds: f64) -> String {
    let [second, minute, hour, day] = [1, 60, 3_600, 86_400];
    let both = |whole: u64, [large, small]: [u64; 2], [first, next]: [&str; 2]| {
        // Rounded to the smaller unit first: 59.9 minutes are an hour, and not 0 h 60 min.
        let smalls = (whole + small / 2) / small;
        format!("{} {first} {} {next}", grouped((smalls * small / large) as usize), smalls * small % large / small)
    };
    let whole = seconds.round() as u64;
    match seconds {
        _ if seconds < 100.0 => format!("{seconds:.2} s"),
        _ if seconds < 600.0 => format!("{seconds:.1} s"),
        _ if whole < hour - minute / 2 => both(whole, [minute, second], ["min", "s"]),
        _ if whole < day - hour / 2 => both(whole, [hour, minute], ["h", "min"]),
        _ => both(whole, [day, hour], ["d", "h"]),
    }
}

/// Bytes as a user would write them after `--memory`, rounded up to a hundredth more.
pub(crate) fn rounded_up(needed: usize) -> String {
    let (unit, name) = if needed >= 1 << 30 { (1usize << 30, "GiB") } else { (1 << 20, "MiB") };
    let hundredths = (needed as f64 / unit as f64 * 100.0).ceil() + 1.0;
    format!("{:.2}{name}", hundredths / 100.0)
}

/// `[3, 32, 32]`.
pub(crate) fn shape(sizes: &[usize]) -> String {
    format!("{sizes:?}")
}

/// `one thing`, `2 things`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{} {thing}s", grouped(number)) }
}

/// A name or a reason in a table is not longer than this; JSON has it whole.
const LONGEST_CELL: usize = 120;

/// Rows of cells, each column as wide as its widest cell; numbers of a `right` column end below each other.
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

/// A cell on one line, with its middle left out where it is very long: names of files have no end.
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

/// The first rows of a long table, and how many there are more.
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
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([12, 1_500, 40_813_184].map(short), ["12", "1.5 k", "40.8 M"]);
        assert_eq!(count(1, "sample"), "1 sample");
        assert_eq!(count(1500, "sample"), "1,500 samples");
        assert_eq!([1 << 10, 3 << 49, 1 << 60].map(bytes), ["1.0 KiB", "1.5 PiB", "1.0 EiB"]);
    }

    #[test]
    fn long_times_are_hours_and_days() {
        let cases = [
            (0.0, "0.00 s"),
            (26.217, "26.22 s"),
            (189.46, "189.5 s"),
            (600.0, "10 min 0 s"),
            (754.4, "12 min 34 s"),
            (3_599.9, "1 h 0 min"),
            (18_720.0, "5 h 12 min"),
            (86_399.0, "1 d 0 h"),
            (631_242.4, "7 d 7 h"),
            (1e9, "11,574 d 2 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }

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
        // A line that says "one more" would not be shorter.
        assert_eq!(shortened(rows, 4, &[1]).lines().count(), 5);
    }
}
