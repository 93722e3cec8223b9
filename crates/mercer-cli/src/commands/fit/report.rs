//! What the command says.

use mercer::job::Outcome;
use mercer::job::fit::FitFindings;
use mercer::text::{count, duration};
use std::path::Path;

pub(super) fn outcome(outcome: &Outcome<FitFindings>, folder: &Path) -> String {
    let found = &outcome.findings;
    let samples = count(found.n_samples, "sample");
    let mut text = format!("{} on {samples} in {}\n", found.machine, duration(outcome.measurements.seconds));
    if let Some(accuracy) = found.training_accuracy {
        text += &format!("accuracy on them {:.2} %\n", 100.0 * accuracy);
    }
    if let Some(columns) = &found.training_r_squared {
        let value = |r: &Option<f64>| r.map_or_else(|| "–".to_owned(), |r| format!("{r:.6}"));
        text += &format!("R² on them {}\n", columns.iter().map(value).collect::<Vec<_>>().join(", "));
    }
    for detail in &found.details {
        text += &format!("{detail}\n");
    }
    for repair in &found.repairs {
        text += &format!("repaired: {repair}\n");
    }
    text + &format!("machine in {}\n", folder.display())
}
