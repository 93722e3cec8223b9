//! Developer commands: `cargo xtask COMMAND`.

mod bench;
mod build;
mod check;
mod cifar10;
mod command;
mod fetch;
mod memory;
mod package;
mod python;
mod reproduce;
mod scale;
mod site;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

/// What a command returns: whether it found everything in order, or why it could not run.
type Outcome = Result<bool, Box<dyn std::error::Error>>;

const USAGE: &str = "\
cargo xtask COMMAND

  test [--torch]             runs all tests, Rust and Python; installs what they need (--torch: PyTorch too)
  bench [--only TEXT] [--rounds N] [--torch [PYTHON]]
                             runs the benchmarks; with --torch beside PyTorch in the same rounds
  reproduce [NAME [--data-dir DIR] [--quick] …] [--render]
                             lists the experiments, runs one and records its result, or writes docs/experiments.md
  cifar10                    checks the accuracy of a ResNet-20 on the test images of CIFAR-10
  exports [--only TEXT] [--python PATH]
                             exports well-known networks from PyTorch and compares with it
  golden --dir PATH [--tokens FILE.npz]
                             runs the reference networks of a folder and prints their errors
  memory [--only TEXT] [--binary PATH]
                             peak memory of kernels against what was promised, near the smallest that is accepted
  onnx-suite [--only TEXT]   runs the official ONNX backend suite and prints a table
  scale [--sizes N,N] [--threads N]
                             how kernels of a ResNet-20 grow with the number of CIFAR-10 images, and their memory
  site                       builds the documentation site into target/site; a broken link is an error
  stubs                      writes the type stubs of the Python package from the commands' flags
  wheel [--light]            builds the Python wheel and tries it with every CPython that is found (--light: quicker
                             to build)";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let outcome = match command.as_deref() {
        Some("bench") => bench::all(&rest),
        Some("cifar10") => cifar10::accuracy(&rest),
        Some("exports") => check::exports(&rest),
        Some("golden") => check::golden(&rest),
        Some("memory") => memory::table(&rest),
        Some("onnx-suite") => check::onnx_suite(&rest),
        Some("reproduce") => reproduce::experiments(&rest),
        Some("scale") => scale::run_all(&rest),
        Some("site") => site::build(),
        Some("stubs") => test::stubs(),
        Some("test") => test::all(&rest),
        Some("wheel") => package::wheel(&rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The workspace.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The value after a flag.
fn option<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == flag)?;
    arguments.get(at + 1).map(String::as_str)
}
