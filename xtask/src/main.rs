//! Developer commands: `cargo xtask COMMAND`.

mod bench;
mod cifar10;
mod convergence;
mod eigen;
mod exports;
mod golden;
mod machines;
mod memory;
mod onnx_suite;
mod posteriors;
mod python;
mod scale;
mod sketches;
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
  exports [--python PATH]    exports well-known networks from PyTorch and compares with it
  cifar10                    checks the accuracy of a ResNet-20 on the test images of CIFAR-10
  convergence [--only circle|rates] [--widths N,N] [--seeds N] [--steps N] [--networks N] [-o FIGURE.svg]
                             tangent kernels of wide networks on a circle, before and after training, and how fast means
                             over networks and single ones approach the limit of infinite width (1.6 GB at width 10000)
  sketches [--seeds N] [--k K,K] [--samples N] [--only TEXT]
                             prints error against time of all sketches on the tangent kernel of a ResNet-20
  eigen EXPERIMENT [--data-dir DIR] [--seed N] [--output DIR] …
                             experiments with eigenfunctions: classic, growth, moons, ntk, mnist, contrastive
  golden --dir PATH [--tokens FILE.npz]
                             runs the reference networks of a folder and prints their errors
  posteriors                 posteriors through eigenfunctions and sketches against the full one, in and out of distribution
  scale [--sizes N,N] [--threads N]
                             how kernels of a ResNet-20 grow with the number of CIFAR-10 images, and their memory
  machines EXPERIMENT [OPTIONS]
                             machines on kernels: regression, logistic, widths, uci --data-dir DIR, iterative
  memory [--only TEXT] [--binary PATH]
                             peak memory of kernels against what was promised, near the smallest that is accepted
  onnx-suite [--only TEXT]   runs the official ONNX backend suite and prints a table";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let outcome = match command.as_deref() {
        Some("bench") => bench::all(&rest),
        Some("eigen") => eigen::experiment(&rest),
        Some("exports") => exports::run(&rest),
        Some("convergence") => convergence::run(&rest),
        Some("cifar10") => cifar10::accuracy(&rest),
        Some("golden") => golden::run(&rest),
        Some("machines") => machines::run(&rest),
        Some("memory") => memory::table(&rest),
        Some("onnx-suite") => onnx_suite::run(&rest),
        Some("posteriors") => posteriors::tables(&rest),
        Some("scale") => scale::run_all(&rest),
        Some("sketches") => sketches::table(&rest),
        Some("test") => test::all(&rest),
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
