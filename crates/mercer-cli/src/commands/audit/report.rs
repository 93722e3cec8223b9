//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::audit::{AuditFindings, AuditPlan};
use mercer::text::{bytes, count, duration};
use std::fmt::Write;
use std::path::Path;

/// Describes the planned work.
pub(super) fn plan(plan: &AuditPlan) -> String {
    let samples = count(plan.n_samples, "training sample");
    format!("{} on {samples}, {} at most; nothing was done\n", plan.kernel, bytes(plan.bytes))
}

fn percent(value: f64) -> String {
    format!("{:.2} %", 100.0 * value)
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<AuditFindings>, folder: &Path) -> String {
    let found = &outcome.findings;
    let samples = count(found.n_samples, "training sample");
    let mut text = format!("{}: {samples}, {}\n\n", found.network, duration(outcome.measurements.seconds));
    let _ = writeln!(
        text,
        "About {} of the labels look wrong. At least two opinions suggest another label for {}.",
        percent(found.estimated_noise),
        count(found.n_disputed, "sample")
    );
    let _ = writeln!(
        text,
        "The network is right on {} of the labels, a surrogate that has not seen them on {}.",
        percent(found.training_accuracy),
        percent(found.out_of_fold_accuracy)
    );
    let duplicates = &found.duplicates;
    if duplicates.n_groups > 0 {
        let _ = writeln!(
            text,
            "{} of duplicates hold {}; {} of them have contradicting labels.",
            count(duplicates.n_groups, "group"),
            count(duplicates.n_redundant, "redundant sample"),
            duplicates.n_conflicts
        );
    }
    for poison in found.poison.iter().filter(|poison| poison.suspicious) {
        let _ = writeln!(
            text,
            "Class {} has a separate cluster with {} of its samples ({}, silhouette {:.2}): look for poison there.",
            poison.class,
            percent(poison.smaller_cluster.unwrap_or(0.0)),
            poison.space.replace('_', " "),
            poison.silhouette.unwrap_or(0.0)
        );
    }
    if let Some(forensics) = &found.forensics {
        let _ = write!(
            text,
            "{} of {} have at least {} of {} poisoned neighbours",
            forensics.n_flagged,
            count(forensics.n_test, "test sample"),
            forensics.threshold,
            forensics.neighbours
        );
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), percent);
        match &forensics.detection {
            Some(found) => {
                let (precision, recall) = (shown(found.precision), shown(found.recall));
                let _ = writeln!(text, ": precision {precision}, recall {recall}.");
            }
            None => text += ".\n",
        }
    }
    text += &measures(found);
    let _ = writeln!(text, "\nThe review list and all scores are in {}", folder.display());
    text
}

/// How well each score finds what is wrong.
fn measures(found: &AuditFindings) -> String {
    let Some(first) = found.measures.first() else { return String::new() };
    let mut head = vec!["score".to_owned(), "AUROC".to_owned(), "AUPR".to_owned(), "TPR at 1 % FPR".to_owned()];
    head.extend(first.measures.budgets.iter().map(|budget| format!("found in {:.0} %", 100.0 * budget.fraction)));
    let mut rows = vec![head];
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
    for own in &found.measures {
        let measures = &own.measures;
        let mut row = vec![own.name.replace('_', " "), number(measures.auroc), number(measures.aupr)];
        row.push(number(measures.tpr_at_1_percent_fpr));
        row.extend(measures.budgets.iter().map(|budget| budget.recall.map_or("–".to_owned(), percent)));
        rows.push(row);
    }
    let columns: Vec<usize> = (1..rows[0].len()).collect();
    format!("\n{}", table(&rows, &columns))
}
