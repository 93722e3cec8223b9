//! What is built, and where it is then.

use crate::python::run;
use crate::root;
use std::path::PathBuf;
use std::process::Command;

type Error = Box<dyn std::error::Error>;

/// The profiles that commands build with.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// That of this program.
    Dev,
    /// For what takes long.
    Release,
}

/// Builds a binary of a package and says where it is.
pub(crate) fn built(package: &str, binary: &str, profile: Profile) -> Result<PathBuf, Error> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(["build", "--quiet", "--package", package, "--bin", binary]);
    if let Profile::Release = profile {
        command.arg("--release");
    }
    run(&mut command)?;
    let folder = target()?.join(match profile {
        Profile::Dev => "debug",
        Profile::Release => "release",
    });
    Ok(folder.join(format!("{binary}{}", std::env::consts::EXE_SUFFIX)))
}

/// The folder that Cargo builds into: this program is in a profile's folder of it.
pub(crate) fn target() -> Result<PathBuf, Error> {
    let here = std::env::current_exe()?;
    Ok(here.ancestors().nth(2).ok_or("there is no target folder")?.to_owned())
}
