//! The `mercer` command, and what it reports.

use crate::build::{Profile, built};
use crate::root;
use serde_json::Value;
use std::process::{Command, Stdio};

type Error = Box<dyn std::error::Error>;

/// The command, built in release; it runs in the workspace.
pub(crate) struct Mercer(std::path::PathBuf);

impl Mercer {
    pub(crate) fn build() -> Result<Self, Error> {
        built("mercer-cli", "mercer", Profile::Release).map(Self)
    }

    /// A call that reports in JSON.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.0);
        command.current_dir(root()).args([name, "--json", "--quiet"]);
        command
    }
}

/// What a call reports; an error if it fails.
pub(crate) fn report(command: &mut Command) -> Result<Report, Error> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status).into());
    }
    Ok(Report(serde_json::from_slice(&output.stdout)?))
}

pub(crate) struct Report(Value);

impl Report {
    /// A finding or a measurement.
    pub(crate) fn number(&self, key: &str) -> Result<f64, Error> {
        let found = self.0[key].as_f64().or_else(|| self.0["measurements"][key].as_f64());
        found.ok_or_else(|| format!("the report has no number {key}").into())
    }
}
