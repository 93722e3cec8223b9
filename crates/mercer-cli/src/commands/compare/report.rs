//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::compare::{CompareFindings, ComparePlan, MatrixFindings, PairFindings};
use mercer::text::{bytes, count, duration};
use std::fmt::Write;
use std::path::Path;

/// Describes the planned work.
pub(super) fn plan(plan: &ComparePlan) -> String {
    let sides: Vec<String> = plan.kernels.iter().map(|(name, rows)| format!("{name} of side {rows}")).collect();
    let test = if plan.n_test > 0 { format!(", {}", count(plan.n_test, "test sample")) } else { String::new() };
    format!(
        "{}; {}{test}, {}, {} at most; nothing was done\n",
        sides.join(", "),
        count(plan.n_samples, "sample"),
        count(plan.n_networks, "network"),
        bytes(plan.bytes)
    )
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<CompareFindings>, folder: Option<&Path>) -> String {
    let found = &outcome.findings;
    let mut text = String::new();
    if let Some(network) = &found.network {
        let test = if found.n_test > 0 { format!(", {}", count(found.n_test, "test sample")) } else { String::new() };
        let _ = writeln!(text, "{network}: {}{test}\n", count(found.n_samples, "sample"));
    }
    for one in &found.networks {
        let _ = writeln!(text, "{}", one.name);
        text += &pairs(&one.pairs);
        text.push('\n');
    }
    if found.networks.is_empty() {
        text += &pairs(&found.pairs);
        text.push('\n');
        text += &matrices(&found.matrices);
    }
    for sentence in &found.sentences {
        let _ = writeln!(text, "{sentence}");
    }
    let _ = writeln!(text, "compared in {}", duration(outcome.measurements.seconds));
    if let Some(folder) = folder {
        let _ = writeln!(text, "\nFigures and all numbers are in {}", folder.display());
    }
    text
}

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| match value.abs() {
        size if size > 0.0 && !(1e-3..1e4).contains(&size) => format!("{value:.2e}"),
        _ => format!("{value:.4}"),
    })
}

fn percent(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{:.2} %", 100.0 * value))
}

/// A line per pair; predictions only if there are any.
fn pairs(pairs: &[PairFindings]) -> String {
    let predicts = pairs.iter().any(|pair| pair.predictions.is_some());
    let mut head = vec!["", "", "distance", "scaled", "CKA", "λmax", "λmin", "condition"];
    if predicts {
        head.extend(["predictions", "right (first)", "right (second)"]);
    }
    let mut rows = vec![head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()];
    for pair in pairs {
        let mut row = vec![
            pair.a.clone(),
            pair.b.clone(),
            format!("{:.4}", pair.likeness.frobenius),
            format!("{:.4}", pair.likeness.scaled_frobenius),
            number(pair.likeness.cka),
            number(pair.lambda_max),
            number(pair.lambda_min),
            number(pair.condition),
        ];
        if predicts {
            row.extend([number(pair.predictions), percent(pair.accuracy_a), percent(pair.accuracy_b)]);
        }
        rows.push(row);
    }
    let right: Vec<usize> = (2..head.len()).collect();
    table(&rows, &right)
}

/// A line per kernel.
fn matrices(matrices: &[MatrixFindings]) -> String {
    let (has_mass, has_fit) =
        (matrices.iter().any(|one| one.mass.is_some()), matrices.iter().any(|one| one.fit.is_some()));
    let mut head = vec!["", "largest λ", "smallest λ", "condition"];
    if has_mass {
        head.push("off/on");
    }
    if has_fit {
        head.extend(["σ", "residual"]);
    }
    let mut rows = vec![head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()];
    for one in matrices {
        let condition = one.extent.condition.map_or("–".to_owned(), |condition| format!("{condition:.3e}"));
        let mut row = vec![
            one.name.clone(),
            format!("{:.4e}", one.extent.lambda_max),
            format!("{:.4e}", one.extent.lambda_min),
            condition,
        ];
        if has_mass {
            row.push(number(one.mass.and_then(|mass| mass.ratio)));
        }
        if has_fit {
            row.extend([number(one.fit.map(|fit| fit.ridge)), number(one.fit.map(|fit| fit.residual))]);
        }
        rows.push(row);
    }
    let right: Vec<usize> = (1..head.len()).collect();
    format!("{}\n", table(&rows, &right))
}
