//! The official ONNX backend suite. Every model runs as a whole, as a function of tensors, which checks
//! every operator; and where its inputs share a leading axis, also on samples along it, which may be refused because
//! samples mix but must agree when it runs. Tolerances are those of the official runner: relative 1e-3, absolute 1e-7,
//! unless a case brings its own.

mod case;
mod judge;
mod table;

use crate::{Outcome, option};
use case::Case;
use judge::{Verdict, judge};
use std::fmt::Write as _;
use std::path::Path;

/// What the suite must show: group, and how many of its cases must pass.
const REQUIRED: &[(&str, usize)] = &[("pytorch-converted", 65), ("light", 9)];

/// Runs the suite of a folder; `--only TEXT` restricts it to cases whose path contains the text, `--list FILE` is where each case goes
/// with its reason.
pub(crate) fn run(folder: &Path, arguments: &[String]) -> Outcome {
    let (only, path) = (option(arguments, "--only"), option(arguments, "--list").ok_or("--list FILE is missing")?);
    let mut results: Vec<(Case, Verdict)> = Vec::new();
    // A panic is a verdict on the case, not a reason to print a trace.
    std::panic::set_hook(Box::new(|_| {}));
    for case in Case::all(folder)? {
        if only.is_none_or(|text| case.path().contains(text)) {
            let verdict = judge(&case);
            results.push((case, verdict));
        }
    }
    let _ = std::panic::take_hook();
    let mut list = String::new();
    for (case, verdict) in &results {
        writeln!(list, "{:<12} {} {}", verdict.whole.word(), case.path(), verdict.whole.reason())?;
        if let Some(samples) = &verdict.samples {
            writeln!(list, "  as samples: {:<12} {}", samples.word(), samples.reason())?;
        }
    }
    std::fs::write(path, list)?;
    println!("{}", table::table(&results));
    println!("Each case with its reason: {path}");
    let wrong = results.iter().filter(|(_, verdict)| verdict.is_wrong()).count();
    for (case, verdict) in results.iter().filter(|(_, verdict)| verdict.is_wrong()) {
        println!("WRONG {} {}", case.path(), verdict.complaint());
    }
    let short = REQUIRED.iter().filter(|(group, least)| {
        let passed = |(case, verdict): &&(Case, Verdict)| case.group == *group && verdict.whole.is_passed();
        only.is_none() && results.iter().filter(passed).count() < *least
    });
    let mut complete = true;
    for (group, least) in short {
        println!("SHORT {group}: at least {least} must pass");
        complete = false;
    }
    Ok(wrong == 0 && complete)
}
