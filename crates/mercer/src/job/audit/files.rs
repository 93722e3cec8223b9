//! The tables that an audit writes.

use crate::csv::{Table, number};
use crate::job::surrogate::Ids;
use mercer_lens::audit::{Reason, Review};
use mercer_lens::forensics::Verdict;

/// All files that an audit may write.
pub(super) const NAMES: [&str; 5] = ["review.csv", "scores.csv", "clean.npy", "forensics.csv", "found.svg"];

/// Every training sample once, the most suspicious first.
pub(super) fn review(list: &[Review], classes: &[String], ids: &Ids) -> Table {
    let mut table = Table::new(&["rank", "id", "label", "suggested", "score", "reason"]);
    for entry in list {
        let reasons: Vec<String> = entry.reasons.iter().map(|reason| words(reason, classes, ids)).collect();
        table.line(&[
            &entry.rank.to_string(),
            &ids.name(entry.index),
            &classes[entry.label],
            entry.suggested.map(|class| classes[class].as_str()).unwrap_or_default(),
            &number(entry.score),
            &reasons.join("; "),
        ]);
    }
    table
}

/// A reason, with the names of classes and samples.
fn words(reason: &Reason, classes: &[String], ids: &Ids) -> String {
    match reason {
        Reason::Neighbours { count, of, class } => {
            format!("{count} of {of} nearest samples are of class {}", classes[*class])
        }
        Reason::Probability { probability, class, best } => {
            format!("out-of-fold probability of its label is {probability:.2}, of class {} {best:.2}", classes[*class])
        }
        Reason::LeaveOneOut { class, margin } => {
            format!("without it, class {} scores {margin:.2} higher than its label", classes[*class])
        }
        Reason::Duplicate { index, label, exact } => {
            let kind = if *exact { "exact" } else { "near" };
            format!("{kind} duplicate of {}, which is labelled {}", ids.name(*index), classes[*label])
        }
        other => other.to_string(),
    }
}

/// All scores of every training sample, in the order of the samples.
pub(super) fn scores(names: &[&str], columns: &[&[f64]], ids: &Ids) -> Table {
    let head: Vec<&str> = std::iter::once("id").chain(names.iter().copied()).collect();
    let mut table = Table::new(&head);
    let n_samples = columns.first().map_or(0, |column| column.len());
    for row in 0..n_samples {
        let cells: Vec<String> = columns.iter().map(|column| number(column[row])).collect();
        let id = ids.name(row);
        let line: Vec<&str> = std::iter::once(&*id).chain(cells.iter().map(String::as_str)).collect();
        table.line(&line);
    }
    table
}

/// Test samples, traced back to known poison.
pub(super) fn forensics(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["test", "poisoned_neighbours", "flagged"]);
    for (test, verdict) in verdicts.iter().enumerate() {
        let flagged = if verdict.flagged { "1" } else { "0" };
        table.line(&[&test.to_string(), &verdict.count.to_string(), flagged]);
    }
    table
}
