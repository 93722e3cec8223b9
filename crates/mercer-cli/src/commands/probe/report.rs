//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::probe::{LayerFindings, ProbeFindings, ProbePlan};
use mercer::text::{bytes, count, duration};
use std::fmt::Write;
use std::path::Path;

/// Describes the planned work.
pub(super) fn plan(plan: &ProbePlan) -> String {
    let mut text = format!(
        "{} of {}, {} to train on, {} to test on, {} each, {} at most; nothing was done\n",
        count(plan.layers.len(), "layer"),
        count(plan.n_networks, "network"),
        count(plan.n_samples, "sample"),
        plan.n_test,
        count(plan.n_passes, "forward run"),
        bytes(plan.bytes)
    );
    for (name, width) in &plan.layers {
        let _ = writeln!(text, "  {name} ({width})");
    }
    text
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<ProbeFindings>, folder: Option<&Path>) -> String {
    let found = &outcome.findings;
    let (samples, seconds) = (count(found.n_samples, "training sample"), duration(outcome.measurements.seconds));
    let mut text = format!("{}: {samples}, {}, {seconds}\n\n", found.network, count(found.n_test, "test sample"));
    match found.checkpoints.is_empty() {
        true => text += &layers(&found.layers, found.neighbours),
        false => {
            for checkpoint in &found.checkpoints {
                let _ = writeln!(text, "{}: accuracy {}", checkpoint.name, percent(checkpoint.network_accuracy));
                text += &layers(&checkpoint.layers, found.neighbours);
                text.push('\n');
            }
        }
    }
    text.push('\n');
    for sentence in &found.sentences {
        let _ = writeln!(text, "{sentence}");
    }
    if let Some(folder) = folder {
        let _ = writeln!(text, "\nFigures and all numbers are in {}", folder.display());
    }
    text
}

fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// A line per layer.
fn layers(layers: &[LayerFindings], neighbours: usize) -> String {
    let nearest = format!("{neighbours}-NN");
    let head: [&str; 13] =
        ["layer", "numbers", &nearest, "centre", "SVM", "linear", "d90", "", "", "PCs 90 %", "TwoNN", "NC1", "NC4"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let share = |value: Option<f64>| value.map_or("–".to_owned(), percent);
    let whole = |value: Option<usize>| value.map_or("–".to_owned(), |value| value.to_string());
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    for layer in layers {
        let (best, d90) = (layer.accuracy, layer.d90);
        rows.push(vec![
            layer.node.clone(),
            layer.n_features.to_string(),
            share(best.map(|best| best.neighbours)),
            share(best.map(|best| best.centre)),
            share(best.and_then(|best| best.svm)),
            share(layer.linear.map(|linear| linear.accuracy)),
            whole(d90.map(|d90| d90.neighbours)),
            whole(d90.map(|d90| d90.centre)),
            whole(d90.and_then(|d90| d90.svm)),
            layer.intrinsic_dimension.pca90.to_string(),
            layer.intrinsic_dimension.twonn.map_or("–".to_owned(), |value| format!("{value:.1}")),
            number(layer.collapse.nc1),
            share(Some(layer.collapse.nc4)),
        ]);
    }
    let columns: Vec<usize> = (1..head.len()).collect();
    table(&rows, &columns)
}
