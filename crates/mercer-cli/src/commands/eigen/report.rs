//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::eigen::{CodeScore, CodesFindings, Compared, EigenFindings, EigenPlan};
use mercer::spectral::Measured;
use mercer::spectral::retrieval::Retrieval;
use mercer::text::{bytes, count, duration, grouped};
use std::path::Path;

/// Describes the planned work.
pub(super) fn plan(plan: &EigenPlan) -> String {
    let mut text = format!(
        "{}, {}: {} of {}",
        plan.method,
        plan.precision,
        count(plan.wanted, "function"),
        count(plan.samples, "sample")
    );
    if let Some(steps) = plan.steps {
        text += &format!(", {}", count(steps, "step"));
    }
    if let Some(needs) = &plan.memory {
        let (rows, columns) = (grouped(needs.rows), grouped(needs.columns));
        text += &format!(", {} of {rows} × {columns} in {}", needs.what, bytes(needs.bytes));
    }
    if plan.piecewise {
        text += ", the matrix read piece by piece";
    }
    text + "; nothing was done\n"
}

/// What was found.
pub(super) fn outcome(outcome: &Outcome<EigenFindings>, output: &Path) -> String {
    let found = &outcome.findings;
    let mut head = vec!["".to_owned(), "μ".to_owned()];
    // If some eigenvalues are negative, the others sum to more than the diagonal.
    let diagonal = found.mean_diagonal.filter(|_| found.repairs.negative == 0);
    if diagonal.is_some() {
        head.push("sum".to_owned());
    }
    let number = |numbers: &[f64], j: usize| match numbers.get(j) {
        // Rounding may make a zero difference negative.
        Some(number) if number.abs() < 5e-5 => "0.0000".to_owned(),
        Some(number) => format!("{number:.4}"),
        None => "–".to_owned(),
    };
    if let Some(Compared { measured, .. }) = &found.truth {
        head.extend(["true μ", "|cos|", "angle"].map(str::to_owned));
        if measured.held_out.is_some() {
            head.extend(["|cos| held out", "gap"].map(str::to_owned));
        }
    }
    if found.before.is_some() {
        head.push("μ before".to_owned());
        if found.truth.is_some() {
            head.push("|cos| before".to_owned());
            if found.truth.as_ref().is_some_and(|truth| truth.measured.held_out.is_some()) {
                head.push("held out".to_owned());
            }
        }
    }
    let mut rows = vec![head];
    let mut sum = 0.0;
    for (j, value) in found.values.iter().enumerate() {
        sum += value;
        let mut row = vec![(j + 1).to_string(), format!("{value:.6e}")];
        if let Some(diagonal) = diagonal {
            row.push(format!("{:.2} %", 100.0 * sum / diagonal));
        }
        if let Some(Compared { values, measured: Measured { data, held_out } }) = &found.truth {
            row.push(values.get(j).map_or("–".to_owned(), |value| format!("{value:.6e}")));
            row.push(number(&data.cosines, j));
            row.push(data.subspace_angles.get(j).map_or("–".to_owned(), |angle| format!("{angle:.2}°")));
            if let Some(held_out) = held_out {
                row.extend([number(&held_out.cosines, j), number(&held_out.gaps, j)]);
            }
        }
        if let Some(before) = &found.before {
            row.push(before.values.get(j).map_or("–".to_owned(), |value| format!("{value:.6e}")));
            if let Some(Measured { data, held_out }) = before.comparison.as_ref().filter(|_| found.truth.is_some()) {
                row.push(number(&data.cosines, j));
                row.extend(held_out.iter().map(|held_out| number(&held_out.cosines, j)));
            }
        }
        rows.push(row);
    }
    let mut text = table(&rows, &[]);
    if let Some(residual) = found.trace_residual {
        let landmarks = count(found.landmarks.unwrap_or(0), "landmark");
        text += &format!("{landmarks} leave {residual:.2e} of the kernel's trace unexplained\n");
    }
    text += &format!(
        "{} of {} by {}, {}, in {}, in {}\n",
        count(found.values.len(), "function"),
        count(found.samples, "sample"),
        found.method,
        found.precision,
        duration(outcome.measurements.seconds),
        output.display()
    );
    if let Some(evaluated) = found.evaluated {
        text += &format!("evaluated on {}: psi.npy\n", count(evaluated, "sample"));
    }
    if let Some(codes) = &found.codes {
        text += "\n";
        text += &self::codes(codes);
    }
    text
}

/// The quality of codes by their length.
fn codes(codes: &CodesFindings) -> String {
    let head = ["code length", "accuracy", &format!("precision at {}", codes.nearest), "mAP"].map(str::to_owned);
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let row = |score: &CodeScore| {
        let Retrieval { length, precision, mean_average_precision } = score.found;
        vec![length.to_string(), percent(score.accuracy), percent(precision), percent(mean_average_precision)]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(codes.lengths.iter().map(row)).collect();
    table(&rows, &[0, 1, 2, 3])
}
