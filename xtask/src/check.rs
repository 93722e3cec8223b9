//! `cargo xtask golden`, `exports` and `onnx-suite`: what other programs compute, beside ours.
//!
//! The reference values are made here, by Python packages of pinned versions; the binary `check` of `mercer-bench` compares.

use crate::build::{Profile, built};
use crate::python::{Environment, run};
use crate::{Outcome, option, root};
use std::path::Path;
use std::process::Command;

/// For the lengths of the sentence transformer that have no reference values.
const ONNXRUNTIME: &[&str] = &["onnxruntime==1.31.1", "numpy==2.4.6"];

const TORCH: &[&str] =
    &["torch==2.15.0", "torchvision==0.29.2", "transformers==5.22.2", "onnx==1.23.2", "onnxscript", "numpy==2.4.6"];

/// Results are of one suite, not of whatever is newest.
const ONNX: &[&str] = &["onnx==1.23.2", "numpy==2.4.6"];

/// `--dir PATH [--tokens FILE.npz]`: the reference networks of a folder. Text is compared with onnxruntime, too.
pub(crate) fn golden(arguments: &[String]) -> Outcome {
    let folder = option(arguments, "--dir").ok_or("give the folder: --dir PATH")?;
    let mut command = check("golden", Path::new(folder))?;
    let model = Path::new(folder).join("text/minilm_l6.onnx");
    if model.exists() {
        let lengths = root().join("target/golden");
        std::fs::create_dir_all(&lengths)?;
        let python = Environment::new("golden-venv", ONNXRUNTIME)?;
        run(python.command().arg(root().join("xtask/src/scripts/lengths.py")).arg(model).arg(&lengths))?;
        command.arg("--lengths").arg(lengths);
    }
    if let Some(tokens) = option(arguments, "--tokens") {
        command.args(["--tokens", tokens]);
    }
    verdict(&mut command)
}

/// `[--only TEXT] [--python PATH]`: networks that PyTorch exports. `--python` is an interpreter that has the packages.
pub(crate) fn exports(arguments: &[String]) -> Outcome {
    let python = match option(arguments, "--python") {
        Some(path) => Environment::existing(path),
        None => Environment::new("exports-venv", TORCH)?,
    };
    let (folder, only) = (root().join("target/exports"), option(arguments, "--only").unwrap_or_default());
    run(python.command().arg(root().join("tests/python/exports.py")).arg(&folder).arg(only))?;
    verdict(check("exports", &folder)?.args(["--only", only]))
}

/// `[--only TEXT]`: the official suite, which comes with the Python package `onnx`.
pub(crate) fn onnx_suite(arguments: &[String]) -> Outcome {
    let folder = root().join("target/onnx-suite");
    let complete = folder.join("complete.txt");
    if !complete.exists() {
        let python = Environment::new("onnx-suite-venv", ONNX)?;
        let script = root().join("xtask/src/scripts/collect.py");
        run(python.command().args(["-W", "ignore"]).arg(script).arg(&folder))?;
        std::fs::write(&complete, ONNX.join("\n"))?;
    }
    let mut command = check("onnx-suite", &folder)?;
    command.arg("--list").arg(root().join("target/onnx-suite.txt"));
    if let Some(text) = option(arguments, "--only") {
        command.args(["--only", text]);
    }
    verdict(&mut command)
}

fn check(what: &str, folder: &Path) -> Result<Command, Box<dyn std::error::Error>> {
    let mut command = Command::new(built("mercer-bench", "check", Profile::Release)?);
    command.arg(what).arg(folder);
    Ok(command)
}

/// Whether the check found everything in order.
fn verdict(command: &mut Command) -> Outcome {
    match command.status()?.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("{command:?} failed").into()),
    }
}
