//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::shift::{ShiftFindings, ShiftPlan};
use mercer::lens::shift::TestKind;
use mercer::text::{bytes, count, duration};
use std::fmt::Write;
use std::path::Path;

/// Describes the planned work.
pub(super) fn plan(plan: &ShiftPlan) -> String {
    let mut text = format!(
        "{} and {}, {} at a time, {} over them, {} at most; nothing was done\n",
        count(plan.n_samples, "old sample"),
        count(plan.n_test, "new sample"),
        plan.block,
        match plan.n_passes {
            1 => "one pass",
            _ => "two passes",
        },
        bytes(plan.bytes)
    );
    for (name, width) in &plan.views {
        let _ = writeln!(text, "  {name} ({width})");
    }
    text
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<ShiftFindings>, folder: Option<&Path>, is_from_reference: bool) -> String {
    let found = &outcome.findings;
    let name = found.network.as_deref().unwrap_or("the data itself");
    let (old, new) = (count(found.n_samples, "old sample"), count(found.n_test, "new sample"));
    let seconds = duration(outcome.measurements.seconds);
    let mut text = format!("{name}: {old}, {new}, {} permutations, {seconds}\n", found.permutations);
    if found.p_value.is_some() {
        let _ = write!(text, "\n{}\n", tests(found));
    }
    for sentence in &found.sentences {
        let _ = writeln!(text, "{sentence}");
    }
    if !found.approximations.is_empty() {
        let _ = writeln!(text, "\nApproximated: {}.", found.approximations.join("; "));
    }
    if let Some(folder) = folder {
        let held = match (is_from_reference, found.p_value.is_some()) {
            (true, _) => "All results are",
            (false, true) => "The reference and all results are",
            (false, false) => "The reference is",
        };
        let _ = writeln!(text, "\n{held} in {}", folder.display());
    }
    text
}

/// A line per layer: corrected p-values of its tests, and the accuracy of the classifier.
fn tests(found: &ShiftFindings) -> String {
    let head = ["layer", "numbers", "mmd-linear", "mmd-gaussian", "classifier", "pc1", "accuracy"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let p = |node: &str, kind: TestKind| {
        let test = found.tests.iter().find(|test| test.node == node && test.name == kind);
        test.map_or("–".to_owned(), |test| format!("{:.3}", test.corrected_p_value))
    };
    for layer in &found.layers {
        rows.push(vec![
            layer.node.clone(),
            layer.n_features.to_string(),
            p(&layer.node, TestKind::MmdLinear),
            p(&layer.node, TestKind::MmdGaussian),
            p(&layer.node, TestKind::Classifier),
            p(&layer.node, TestKind::Pc1),
            format!("{:.1} %", 100.0 * layer.accuracy),
        ]);
    }
    let mut text = table(&rows, &[1, 2, 3, 4, 5, 6]);
    if let Some(test) = found.tests.iter().find(|test| test.name == TestKind::Predictions) {
        let _ = writeln!(text, "decisions at {}: {:.3}", test.node, test.corrected_p_value);
    }
    text
}
