//! `docs/experiments.md` from what was recorded.

use crate::Fallible;
use crate::experiment::{Experiment, Needs};
use crate::record::{self, Record, Run};
use crate::report::{Cell, Format, Table};
use serde_json::Value;
use std::fmt::Write as _;

/// How wide prose may be.
const WIDTH: usize = 120;

const HEAD: &str = "\
# Experiments

What the methods do on the problems of the papers they come from: published numbers beside ours. `cargo xtask reproduce` \
lists the experiments, `cargo xtask reproduce NAME` runs one in release and records its result in `experiments/results`, \
and `cargo xtask reproduce --render` writes this page from the records. Seeds are fixed. Columns marked \
*published* are the paper's; all other numbers are ours.";

/// The whole page.
pub(crate) fn page() -> Fallible<String> {
    let mut page = String::new();
    HEAD.split("\n\n").for_each(|text| paragraph(&mut page, text));
    let (mut group, mut without) = ("", Vec::new());
    for (experiment, record) in record::all()? {
        let Some(record) = record else {
            without.push(experiment);
            continue;
        };
        if group != experiment.group {
            group = experiment.group;
            paragraph(&mut page, &format!("## {group}"));
        }
        section(&mut page, experiment, &record)?;
    }
    if !without.is_empty() {
        paragraph(&mut page, "## Not recorded");
        for experiment in without {
            let command = format!("`cargo xtask reproduce {}`", experiment.name);
            paragraph(
                &mut page,
                &format!("{}: {} {} {command}.", experiment.title, experiment.claim, experiment.setting),
            );
        }
    }
    Ok(page.trim_end().to_owned() + "\n")
}

fn section(page: &mut String, experiment: &Experiment, record: &Record) -> Fallible<()> {
    paragraph(page, &format!("### {}", experiment.title));
    let paper = if experiment.paper.is_empty() { String::new() } else { format!("*{}.* ", experiment.paper) };
    let published =
        if experiment.published.is_empty() { String::new() } else { format!(" Published: {}", experiment.published) };
    paragraph(page, &format!("{paper}{}{published}", experiment.claim));
    let data = if let [Needs::Folder(_)] = experiment.needs { " --data-dir DIR" } else { "" };
    paragraph(page, &format!("`cargo xtask reproduce {}{data}`: {}", experiment.name, experiment.setting));
    for run in &record.runs {
        for shown in &run.tables {
            if !shown.caption.is_empty() {
                paragraph(page, &shown.caption);
            }
            table(page, shown)?;
        }
        for figure in &run.figures {
            paragraph(page, &format!("![{}]({})", figure.caption, figure.file));
        }
        run.notes.iter().for_each(|note| paragraph(page, note));
        paragraph(page, &format!("*{}*", origin(run)));
    }
    record.notes.iter().for_each(|note| paragraph(page, note));
    Ok(())
}

/// When, where and with which settings.
fn origin(run: &Run) -> String {
    let mut parts = vec![run.date.clone(), format!("{} cores of an {}", run.machine.cores, run.machine.cpu)];
    parts.extend(run.seconds.map(|seconds| format!("{seconds} s")));
    parts.extend(run.seed.map(|seed| format!("seed {seed}")));
    let show = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let settings: Vec<String> = run.settings.iter().map(|(name, value)| format!("{name} {}", show(value))).collect();
    if !settings.is_empty() {
        parts.push(settings.join("; "));
    }
    parts.join(" · ")
}

fn table(page: &mut String, table: &Table) -> Fallible<()> {
    let numbers = |at: usize| {
        let number = |row: &Vec<Cell>| matches!(row[at], Cell::Number(_) | Cell::Nothing);
        table.columns[at].format != Format::Plain || table.rows.iter().all(number)
    };
    for column in &table.columns {
        let mark = if column.published { ", *published*" } else { "" };
        write!(page, "| {}{mark} ", escaped(&column.name))?;
    }
    writeln!(page, "|")?;
    for at in 0..table.columns.len() {
        write!(page, "{}", if numbers(at) { "|---:" } else { "|---" })?;
    }
    writeln!(page, "|")?;
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(row) {
            write!(page, "| {} ", escaped(&cell.show(column.format)))?;
        }
        writeln!(page, "|")?;
    }
    writeln!(page)?;
    Ok(())
}

/// A bar within a cell would end it.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Adds a paragraph, broken at blanks.
fn paragraph(page: &mut String, text: &str) {
    let mut width = 0;
    // A number stays with its per cent.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            page.push('\n');
            width = 0;
        } else if width > 0 {
            page.push(' ');
            width += 1;
        }
        page.push_str(&word.replace('\u{a0}', " "));
        width += length;
    }
    page.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_records_render_to() {
        let there = std::fs::read_to_string(record::docs().join("experiments.md")).unwrap();
        assert!(there == page().unwrap(), "docs/experiments.md is not up to date: cargo xtask reproduce --render");
    }

    #[test]
    fn paragraphs_are_broken_at_blanks() {
        let mut page = String::new();
        paragraph(&mut page, &"abcd ".repeat(30));
        assert_eq!(page.lines().map(|line| line.chars().count()).collect::<Vec<_>>(), [119, 29, 0]);
    }
}
