//! Checks against reference values that other programs computed; `cargo xtask golden`, `exports` and `onnx-suite` make what it reads and run it.

mod exports;
mod golden;
mod onnx_suite;

use std::path::Path;
use std::process::ExitCode;

/// What a check returns: whether it found everything in order, or why it could not run.
type Outcome = Result<bool, Box<dyn std::error::Error>>;

const USAGE: &str = "\
check golden DIR [--lengths DIR] [--tokens FILE.npz]
check exports DIR [--only TEXT]
check onnx-suite DIR --list FILE [--only TEXT]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [command, folder, rest @ ..] => match command.as_str() {
            "golden" => golden::run(Path::new(folder), rest),
            "exports" => exports::run(Path::new(folder), option(rest, "--only").unwrap_or_default()),
            "onnx-suite" => onnx_suite::run(Path::new(folder), rest),
            _ => Err(USAGE.into()),
        },
        _ => Err(USAGE.into()),
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

/// The value after a flag.
fn option<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == flag)?;
    arguments.get(at + 1).map(String::as_str)
}
