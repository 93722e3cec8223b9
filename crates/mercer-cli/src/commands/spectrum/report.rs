//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::spectrum::{CheckpointSpectra, SpectrumFindings, SpectrumPlan, WeightSpectrum};
use mercer::lens::spectra::SpectrumKind;
use mercer::text::{bytes, count, duration, shape};
use std::fmt::Write;
use std::path::Path;

/// Weights that are printed; result.json has all.
const MOST: usize = 60;

/// Describes the planned work.
pub(super) fn plan(plan: &SpectrumPlan) -> String {
    let kernels = match (plan.n_samples, plan.matrix_free) {
        (0, _) => String::new(),
        (n, false) => format!(", kernels of {}", count(n, "sample")),
        (n, true) => format!(", kernels of {} from products", count(n, "sample")),
    };
    format!(
        "{} at {}{kernels}, {} at most; nothing was done\n",
        count(plan.weights.len(), "weight"),
        count(plan.n_checkpoints, "checkpoint"),
        bytes(plan.bytes)
    )
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<SpectrumFindings>, folder: Option<&Path>) -> String {
    let found = &outcome.findings;
    let mut text = format!("{}: {}\n", found.network, duration(outcome.measurements.seconds));
    let _ = writeln!(text, "({})", found.normalisation);
    for checkpoint in &found.checkpoints {
        let _ = writeln!(text, "\n{}", checkpoint.name);
        text += &weights(&checkpoint.weights);
        text += &kernels(checkpoint);
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

fn kind(kind: SpectrumKind) -> &'static str {
    match kind {
        SpectrumKind::Bulk => "bulk",
        SpectrumKind::Spikes => "spikes",
        SpectrumKind::HeavyTail => "heavy tail",
        SpectrumKind::Other => "other",
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| match value.abs() {
        size if size > 0.0 && !(1e-2..1e5).contains(&size) => format!("{value:.2e}"),
        _ => format!("{value:.3}"),
    })
}

/// A line per weight.
fn weights(weights: &[WeightSpectrum]) -> String {
    const HEAD: [&str; 9] = ["weight", "shape", "stable rank", "σ", "edge", "largest", "spikes", "alpha", "kind"];
    if weights.is_empty() {
        return String::new();
    }
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for own in weights.iter().take(MOST) {
        let alpha = match (own.alpha, own.alpha_error) {
            (Some(alpha), Some(error)) => format!("{alpha:.2} ± {error:.2}"),
            _ => "–".to_owned(),
        };
        rows.push(vec![
            own.layer.clone(),
            shape(&own.shape),
            number(own.stable_rank),
            number(own.sigma),
            number(own.edge),
            number(Some(own.largest)),
            own.n_spikes.to_string(),
            alpha,
            kind(own.kind).to_owned(),
        ]);
    }
    let mut text = table(&rows, &[2, 3, 4, 5, 6, 7]);
    if weights.len() > MOST {
        let _ = writeln!(text, "  … and {} more", weights.len() - MOST);
    }
    text
}

/// A line per kernel.
fn kernels(checkpoint: &CheckpointSpectra) -> String {
    const HEAD: [&str; 7] =
        ["kernel", "trace", "largest", "effective rank", "alpha", "KTA", "first eigenvector and labels"];
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    let targets = [checkpoint.kta.and_then(|kta| kta.ck), checkpoint.kta.map(|kta| kta.ntk)];
    for (own, kta) in [&checkpoint.ck, &checkpoint.ntk].into_iter().zip(targets) {
        let Some(own) = own else { continue };
        rows.push(vec![
            own.kernel.clone(),
            format!("{:.4e}", own.trace),
            format!("{:.4e}", own.largest),
            number(own.effective_rank.or(own.participation_ratio)),
            number(own.alpha),
            number(kta.and_then(|kta| kta.plain)),
            number(own.label_alignment.first().copied()),
        ]);
    }
    match rows.len() {
        1 => String::new(),
        _ => format!("\n{}", table(&rows, &[1, 2, 3, 4, 5, 6])),
    }
}
