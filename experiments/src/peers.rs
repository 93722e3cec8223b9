//! Other people's software, in the Python of `--peers`.

use crate::Fallible;
use crate::record::home;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a script of `xtask/src/scripts`; what it prints names the software and its version.
pub(crate) fn script<S: AsRef<OsStr>>(
    python: &Path,
    name: &str,
    arguments: impl IntoIterator<Item = S>,
) -> Fallible<String> {
    let mut command = Command::new(python);
    command.arg(home().join("../xtask/src/scripts").join(name)).args(arguments).stderr(Stdio::piped());
    let output = command.output().map_err(|error| format!("--peers {}: {error}", python.display()))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
