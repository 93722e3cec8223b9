//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::train::{EpochFindings, TrainFindings, TrainPlan};
use mercer::text::{bytes, count, duration};

/// Maximum number of epochs to print one by one.
const MOST_ROWS: usize = 20;

/// Describes the planned work.
pub(super) fn plan(plan: &TrainPlan) -> String {
    format!(
        "{} in {}: {} of {}, {} per epoch, {} of memory; nothing was done\n",
        count(plan.n_params, "parameter"),
        plan.precision,
        count(plan.settings.epochs, "epoch"),
        count(plan.n_samples, "sample"),
        count(plan.steps_per_epoch, "step"),
        bytes(plan.bytes)
    )
}

/// The progress line during training.
pub(crate) fn line(epoch: &EpochFindings) -> String {
    let accuracy = |value: Option<f64>| value.map_or_else(String::new, |v| format!(", {:.2} % right", 100.0 * v));
    let mut line = format!("epoch {}: loss {:.4}{}", epoch.epoch, epoch.loss, accuracy(epoch.accuracy));
    if let Some(loss) = epoch.evaluation_loss {
        line += &format!("; test {loss:.4}{}", accuracy(epoch.evaluation_accuracy));
    }
    line
}

fn row(epoch: &EpochFindings) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    let percent = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{:.2} %", 100.0 * value));
    vec![
        epoch.epoch.to_string(),
        format!("{:.2e}", epoch.learning_rate),
        number(Some(epoch.loss)),
        percent(epoch.accuracy),
        number(epoch.evaluation_loss),
        percent(epoch.evaluation_accuracy),
    ]
}

/// One row per epoch, or a selection for a long run.
pub(crate) fn course(found: &TrainFindings, verbose: bool) -> String {
    let every = if verbose { 1 } else { found.history.len().div_ceil(MOST_ROWS).max(1) };
    let last = found.history.len();
    let titles = ["epoch", "rate", "loss", "accuracy", "test loss", "test accuracy"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let shown = found.history.iter().filter(|epoch| epoch.epoch.is_multiple_of(every) || epoch.epoch == last);
    rows.extend(shown.map(row));
    // Columns that were not measured are left out.
    let measured = |column: usize| rows.iter().skip(1).any(|row| !row[column].is_empty());
    let columns: Vec<usize> = (0..titles.len()).filter(|&column| measured(column)).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|&column| row[column].clone()).collect()).collect();
    table(&rows, &[0, 1, 2, 3, 4, 5])
}

/// The amount of work and its time.
pub(crate) fn summary(found: &TrainFindings, seconds: f64) -> String {
    let (numbers, samples) = (count(found.n_params, "parameter"), count(found.n_samples, "sample"));
    let epochs = count(found.history.len(), "epoch");
    let ended = if found.stopped_after.is_some() { ", until the loss was small enough," } else { "" };
    format!("{numbers} trained on {samples} for {epochs}{ended} in {}", duration(seconds))
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<TrainFindings>, verbose: bool) -> String {
    let found = &outcome.findings;
    let model = outcome.artefacts.iter().find(|artefact| artefact.name == found.model);
    let place = model.map_or(&found.model, |artefact| &artefact.path);
    let summary = summary(found, outcome.measurements.seconds);
    format!("{}\n{summary}\nThe network is in {place}\n", course(found, verbose))
}
