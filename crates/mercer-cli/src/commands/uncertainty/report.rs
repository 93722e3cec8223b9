//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::uncertainty::{Predictor, RegionFindings, Scores, UncertaintyFindings, UncertaintyPlan};
use mercer::learn::laplace::{ClassScores, Detection, RegressionScores};
use mercer::text::{bytes, count, duration, grouped};
use std::fmt::Write;
use std::path::Path;

/// `kron: 403 parameters, 120 samples`.
fn head(method: &str, n_parameters: usize, n_train: usize) -> String {
    let what = if matches!(method, "sketch" | "eigen") { "feature" } else { "parameter" };
    format!("{method}: {}, {}", count(n_parameters, what), count(n_train, "sample"))
}

/// Describes the planned work.
pub(super) fn plan(plan: &UncertaintyPlan) -> String {
    let needs = &plan.needs;
    let side = grouped(needs.side);
    let largest = if needs.side > 0 { format!(", largest matrix {side} × {side}") } else { String::new() };
    let head = head(plan.method, needs.n_parameters, plan.n_train);
    format!("{head}{largest}, {} at most; nothing was done\n", bytes(needs.bytes))
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<UncertaintyFindings>, folder: &Path) -> String {
    let (found, measured) = (&outcome.findings, &outcome.measurements);
    let head = head(found.method, found.needs.n_parameters, found.n_train);
    let mut text = format!("{head}, {}\n", duration(measured.seconds));
    let _ = write!(text, "prior precision {:.4} ({}), ", found.prior_precision, found.prior);
    if let Some(noise) = found.noise {
        let _ = write!(text, "noise {noise:.4} ({}), ", found.noise_choice);
    }
    let _ = writeln!(text, "log evidence {:.2}\n", found.log_evidence);
    text += &scores(found);
    if let Some(chosen) = found.chosen {
        let taken = match chosen.predictor {
            Predictor::Laplace => "the posterior",
            Predictor::Temperature => "the network at its temperature",
        };
        let _ = writeln!(
            text,
            "\n{} chose {taken}: NLL {:.4} at the temperature, {:.4} of the posterior, {:.4} of the network alone.",
            count(chosen.n_samples, "validation sample"),
            chosen.scaled_nll,
            chosen.laplace_nll,
            chosen.network_nll
        );
    }
    if let Some(found) = &found.conformal {
        let _ = write!(text, "\n{}", regions(found));
    }
    for repair in &found.repairs {
        let _ = writeln!(text, "note: {repair}");
    }
    if found.clipped > 0 {
        let samples = count(found.clipped, "sample");
        let _ = writeln!(text, "note: the residual of {samples} had a negative part, which was cut off");
    }
    let _ = writeln!(text, "\nPredictions, figures and the posterior are in {}", folder.display());
    text
}

/// `Sets for a coverage of 90 %, from 89 samples: 1.03 classes on average, 2.0 % empty; 91.3 % ± 1.5 % covered.`
pub(in crate::commands) fn regions(found: &RegionFindings) -> String {
    let (kind, size) = match found.empty {
        Some(_) => ("Sets", format!("{:.2} classes on average", found.size)),
        None => ("Intervals", format!("{:.4} wide on average", found.size)),
    };
    let coverage = 100.0 * found.coverage;
    let samples = count(found.n_calibration, "sample");
    let mut text = format!("{kind} for a coverage of {coverage} %, calibrated by {samples}: {size}");
    if let (Some(empty), Some(single)) = (found.empty, found.single) {
        let _ = write!(text, ", {:.1} % single, {:.1} % empty", 100.0 * single, 100.0 * empty);
    }
    if let Some(found) = &found.found {
        let _ = write!(text, "; {:.1} % ± {:.1} % covered", 100.0 * found.covered, 100.0 * found.standard_error);
    }
    text + ".\n"
}

/// Compares the network alone with the posterior.
fn scores(found: &UncertaintyFindings) -> String {
    let mut head = vec![String::new()];
    let mut listed = vec![("network".to_owned(), &found.map)];
    if let (Some(scaled), Some(chosen)) = (&found.scaled, found.chosen) {
        listed.push((format!("network at temperature {:.3}", chosen.temperature), scaled));
    }
    listed.push((format!("Laplace ({})", found.predictive), &found.laplace));
    let mut rows: Vec<Vec<String>> = listed.iter().map(|(name, _)| vec![name.clone()]).collect();
    let mut column = |name: &str, values: Vec<Option<f64>>, percent: bool| {
        if values.iter().all(Option::is_none) {
            return;
        }
        head.push(name.to_owned());
        for (row, value) in rows.iter_mut().zip(values) {
            row.push(value.map_or("–".to_owned(), |value| match percent {
                true => format!("{:.2} %", 100.0 * value),
                false => format!("{value:.4}"),
            }));
        }
    };
    let all = |read: &dyn Fn(&Scores) -> Option<f64>| listed.iter().map(|(_, scores)| read(scores)).collect::<Vec<_>>();
    let classes = |read: fn(&ClassScores) -> f64| all(&|scores| scores.classes.as_ref().map(read));
    column("accuracy", classes(|scores| scores.accuracy), true);
    column("NLL", classes(|scores| scores.nll), false);
    column("ECE", classes(|scores| scores.ece), false);
    column("Brier", classes(|scores| scores.brier), false);
    let values = |read: fn(&RegressionScores) -> f64| all(&|scores| scores.values.as_ref().map(read));
    column("RMSE", values(|scores| scores.rmse), false);
    column("NLL", values(|scores| scores.nll), false);
    let detection = |read: fn(&Detection) -> f64| all(&|scores| scores.detection.as_ref().map(read));
    column("AUROC", detection(|found| found.auroc), false);
    column("AUPR", detection(|found| found.aupr), false);
    if head.len() == 1 {
        return "no labels and no other data: nothing to score\n".to_owned();
    }
    let right: Vec<usize> = (1..head.len()).collect();
    rows.insert(0, head);
    table(&rows, &right)
}
