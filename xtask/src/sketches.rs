//! `cargo xtask sketches`: error against time of all sketches of a tangent kernel.
//!
//! Fetches the test images of CIFAR-10 as `cargo xtask cifar10` does and runs `benches/src/bin/sketches.rs` in release.

use crate::python::run;
use crate::{Outcome, cifar10, root};
use std::process::Command;

/// Prints the table; arguments are those of the binary.
pub(crate) fn table(arguments: &[String]) -> Outcome {
    let folder = root().join("target/cifar10");
    cifar10::fetch(&folder)?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(["run", "--release", "--quiet", "--package", "mercer-bench", "--bin", "sketches"]);
    run(command.arg("--").arg("--images").arg(folder.join("images.npy")).args(arguments))?;
    Ok(true)
}
