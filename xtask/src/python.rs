//! Python environments for comparisons with other people's software.

use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A virtual environment, under `target` unless it is the user's own.
pub(crate) struct Environment {
    interpreter: PathBuf,
}

impl Environment {
    /// Makes the environment once; `packages` are requirements by name, with their versions.
    pub(crate) fn new(name: &str, packages: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        let folder = root().join("target").join(name);
        let environment = Self { interpreter: folder.join("bin/python") };
        // What is installed is written down last, so that a broken-off installation is done again.
        let stamp = folder.join("mercer-packages.txt");
        let wanted = packages.join("\n");
        if std::fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            return Ok(environment);
        }
        std::fs::create_dir_all(&folder)?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(environment.command().args(pip).args(packages))?;
        std::fs::write(stamp, wanted)?;
        Ok(environment)
    }

    /// An environment that is there already, by its interpreter.
    pub(crate) fn existing(interpreter: &str) -> Self {
        Self { interpreter: interpreter.into() }
    }

    /// The environment's interpreter.
    pub(crate) fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// A call of the environment's interpreter.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.interpreter)
    }
}

/// Runs a command to its end; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), Box<dyn std::error::Error>> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}
