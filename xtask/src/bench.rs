//! `cargo xtask bench`: the benchmarks, on their own or beside PyTorch.

use crate::Outcome;
use crate::build::{Profile, built};
use crate::python::{Environment, run};
use std::process::Command;

/// Builds and runs the benchmarks in release; `--torch` installs PyTorch and measures it in the same rounds.
pub(crate) fn all(arguments: &[String]) -> Outcome {
    let mut command = Command::new(built("mercer-bench", "mercer-bench", Profile::Release)?);
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        if argument != "--torch" {
            command.arg(argument);
            continue;
        }
        // An interpreter that has PyTorch may be named; else one is made.
        match rest.next_if(|next| !next.starts_with("--")) {
            Some(python) => command.args(["--torch", python]),
            None => {
                let environment = Environment::new("torch", &["torch", "numpy"])?;
                command.arg("--torch").arg(environment.interpreter())
            }
        };
    }
    run(&mut command)?;
    Ok(true)
}
