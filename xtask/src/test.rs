//! `cargo xtask test`: everything that has to pass, with what it needs from the package registries.

use crate::python::{Environment, run};
use crate::{Outcome, root};
use std::process::Command;

/// The Rust tests of the workspace, then the Python tests of what is exported; with `--torch`, PyTorch reads it too.
pub(crate) fn all(arguments: &[String]) -> Outcome {
    let cargo = || Command::new(env!("CARGO"));
    run(cargo().current_dir(root()).args(["test", "--workspace", "--quiet"]))?;
    let exports = root().join("target/exports");
    // A folder of its own each time: what is there is never overwritten.
    if exports.exists() {
        std::fs::remove_dir_all(&exports)?;
    }
    let example = ["run", "--quiet", "--package", "mercer-net", "--example", "export_fixture", "--"];
    run(cargo().current_dir(root()).args(example).arg(&exports))?;
    let requirements = std::fs::read_to_string(root().join("tests/python/requirements.txt"))?;
    let mut packages: Vec<&str> = requirements.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let torch = arguments.iter().any(|argument| argument == "--torch");
    packages.extend(torch.then_some("torch"));
    let python = Environment::new(if torch { "python-tests-torch" } else { "python-tests" }, &packages)?;
    run(python.command().current_dir(root()).env("MERCER_EXPORTS", &exports).args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/python/test_export.py",
    ]))?;
    Ok(true)
}
