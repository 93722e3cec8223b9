//! The output of the command.

use mercer::job::Outcome;
use mercer::job::fit::{FitFindings, SelectionFindings, SolutionFindings, Tuning};
use mercer::text::{count, duration};
use std::path::Path;

pub(super) fn outcome(outcome: &Outcome<FitFindings>, folder: &Path) -> String {
    let found = &outcome.findings;
    let samples = count(found.n_samples, "sample");
    let mut text = format!("{} on {samples} in {}\n", found.machine, duration(outcome.measurements.seconds));
    if let Some(accuracy) = found.training_accuracy {
        text += &format!("training accuracy {:.2} %\n", 100.0 * accuracy);
    }
    if let Some(columns) = &found.training_r_squared {
        let value = |r: &Option<f64>| r.map_or_else(|| "–".to_owned(), |r| format!("{r:.6}"));
        text += &format!("training R² {}\n", columns.iter().map(value).collect::<Vec<_>>().join(", "));
    }
    text += &solution(&found.solution);
    for repair in &found.repairs {
        text += &format!("repaired: {repair}\n");
    }
    text + &format!("machine in {}\n", folder.display())
}

/// The lines about the solver.
fn solution(found: &SolutionFindings) -> String {
    let mut text = String::new();
    if let Some(choice) = &found.selection {
        let (setting, value) = match found.cost {
            Some(cost) => ("cost", cost),
            None => ("penalty", found.penalty.unwrap_or_default()),
        };
        text += &selection(choice, setting, value);
    }
    if let Some(objective) = found.objective {
        text += &format!("objective {objective:.6} after {}\n", count(found.iterations.unwrap_or(0), "iteration"));
    }
    if let Some(residual) = found.residual {
        text +=
            &format!("relative residual {residual:.1e} after {}\n", count(found.iterations.unwrap_or(0), "product"));
    }
    if found.converged == Some(false) {
        text += "the solver stopped before it reached its tolerance; this is its best result\n";
    }
    if let Some(vectors) = found.support_vectors {
        text += &format!("{}\n", count(vectors, "support vector"));
    }
    if let Some(by) = found.neighbours_by {
        text += &format!("neighbours by {by}\n");
    }
    if let Some(tuning) = &found.tuning {
        text += &tuned(tuning);
    }
    if let Some(value) = found.log_marginal_likelihood {
        let before = found.tuning.as_ref().and_then(|tuning| tuning.log_marginal_likelihood_before);
        let before = before.map(|before| format!(" (before tuning {before:.6})")).unwrap_or_default();
        text += &format!("log marginal likelihood {value:.6}{before}\n");
    }
    text
}

/// The candidates with their scores; the chosen one is marked.
fn selection(choice: &SelectionFindings, setting: &str, chosen: f64) -> String {
    let folds = choice.folds.map(|folds| format!(", {folds} folds")).unwrap_or_default();
    let criterion = choice.criterion.replace('-', " ");
    let mut text = format!("{setting} {chosen} by {} ({criterion}{folds})\n", choice.by);
    let width = choice.candidates.iter().map(|tried| tried.value.to_string().len()).max().unwrap_or(0);
    for tried in &choice.candidates {
        let mark = if tried.value == chosen { " *" } else { "" };
        text += &format!("  {:>width$}  {:.6}{mark}\n", tried.value, tried.score);
    }
    text
}

/// The parameters before and after.
fn tuned(tuning: &Tuning) -> String {
    let mut text = format!("tuned in {}: {}\n", count(tuning.evaluations, "evaluation"), tuning.kernel);
    let width = tuning.tuned.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for one in &tuning.tuned {
        text += &format!("  {:width$}  {:.6} -> {:.6}\n", one.name, one.before, one.after);
    }
    text
}
