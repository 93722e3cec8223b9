//! `cargo xtask test`: everything that has to pass, with what it needs from the package registries.

use crate::build::target;
use crate::package::staged;
use crate::python::{Environment, run};
use crate::{Outcome, root};
use std::process::Command;

/// The Rust tests of the workspace, which build the binary and write what Python reads; then the Python tests, also those
/// of the package `mercer`. With `--torch`, PyTorch takes part.
pub(crate) fn all(arguments: &[String]) -> Outcome {
    run(Command::new(env!("CARGO")).current_dir(root()).args(["test", "--workspace", "--quiet"]))?;
    let requirements = std::fs::read_to_string(root().join("tests/python/requirements.txt"))?;
    let mut packages: Vec<&str> = requirements.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let torch = arguments.iter().any(|argument| argument == "--torch");
    packages.extend(torch.then_some("torch"));
    let python = Environment::new(if torch { "python-tests-torch" } else { "python-tests" }, &packages)?;
    let mut tests = python.command();
    tests.env("PYTHONPATH", staged()?);
    // Cargo's folder for what integration tests write.
    let written = target()?.join("tmp");
    for (variable, folder) in [
        ("MERCER_EXPORTS", "exports"),
        ("MERCER_STORES", "stores"),
        ("MERCER_MACHINES", "machines"),
        ("MERCER_REPORTS", "reports"),
    ] {
        tests.env(variable, written.join(folder));
    }
    tests.env("MERCER_BINARY", target()?.join("debug").join(format!("mercer{}", std::env::consts::EXE_SUFFIX)));
    run(tests.current_dir(root()).args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python"]))?;
    if !has_browser() {
        eprintln!(
            "\n*** THE REPORT WAS NOT TESTED IN A BROWSER: chromium was not found. ***\n\
             *** Install it (Debian: apt-get install chromium), or name one with MERCER_BROWSER. ***\n"
        );
    }
    Ok(true)
}

/// Whether there is a browser for the tests of reports; `tests/python/test_report.py` looks in the same places.
fn has_browser() -> bool {
    let folders: Vec<_> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let found = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
    std::env::var_os("MERCER_BROWSER").is_some() || found("chromium") || found("chromium-browser")
}

/// Writes the stubs of the Python package.
pub(crate) fn stubs() -> Outcome {
    let path = root().join("python/mercer/__init__.pyi");
    run(Command::new("python3").env("PYTHONPATH", staged()?).args(["-m", "mercer._stubs"]).arg(path))?;
    Ok(true)
}
