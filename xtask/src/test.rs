//! `cargo xtask test`: everything that has to pass, with what it needs from the package registries.

use crate::python::{Environment, run};
use crate::{Outcome, root};
use std::path::PathBuf;
use std::process::Command;

/// The Rust tests of the workspace, then the Python tests of what is exported, stored and learnt, and of the binary; with `--torch`, PyTorch reads it too.
pub(crate) fn all(arguments: &[String]) -> Outcome {
    run(Command::new(env!("CARGO")).current_dir(root()).args(["test", "--workspace", "--quiet"]))?;
    let exports = made_by("mercer-net", "export_fixture", "exports")?;
    let stores = made_by("mercer-kernel", "store_fixture", "stores")?;
    let machines = made_by("mercer-learn", "machine_fixture", "machines")?;
    run(Command::new(env!("CARGO")).current_dir(root()).args(["build", "--quiet", "--package", "mercer-cli"]))?;
    // Cargo puts it beside this program.
    let binary = std::env::current_exe()?.with_file_name(format!("mercer{}", std::env::consts::EXE_SUFFIX));
    let requirements = std::fs::read_to_string(root().join("tests/python/requirements.txt"))?;
    let mut packages: Vec<&str> = requirements.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let torch = arguments.iter().any(|argument| argument == "--torch");
    packages.extend(torch.then_some("torch"));
    let python = Environment::new(if torch { "python-tests-torch" } else { "python-tests" }, &packages)?;
    let pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python"];
    let mut tests = python.command();
    tests.env("MERCER_EXPORTS", &exports).env("MERCER_STORES", &stores).env("MERCER_MACHINES", &machines);
    tests.env("MERCER_BINARY", &binary);
    run(tests.current_dir(root()).args(pytest))?;
    Ok(true)
}

/// What an example writes to a folder of `target`.
fn made_by(package: &str, example: &str, name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = root().join("target").join(name);
    // A folder of its own each time: what is there is never overwritten.
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let example = ["run", "--quiet", "--package", package, "--example", example, "--"];
    run(Command::new(env!("CARGO")).current_dir(root()).args(example).arg(&folder))?;
    Ok(folder)
}
