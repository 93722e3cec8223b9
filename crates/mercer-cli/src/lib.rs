//! The `mercer` command: arguments, progress and exit codes over the [`mercer`] library.
//!
//! [`run`] is the command of a process. [`call`] runs a command inside another program, on that program's arrays, and
//! [`describe`] describes all commands and flags as data: other interfaces are made from it.
//!
//! Exit codes: 0 done, 1 a check the user asked for failed, 2 an error, 101 a bug of ours, 130 interrupted.
//!
//! ```
//! use mercer::run::Context;
//! use mercer::spec::Inputs;
//!
//! let points = ndarray::array![[0.0], [1.0], [2.0]];
//! let inputs = Inputs::none().with("x", mercer::data::Dataset::from_array("x", points.view().into_dyn())?);
//! let line = ["eigen", "exact", "--kernel", "rbf()", "--data", "\0x", "-k", "2", "-o", "functions", "--dry-run"];
//! let plan = mercer_cli::call(&line.map(Into::into), inputs, Context::new())?;
//! assert!(plan.contains("exact"));
//! # Ok::<(), mercer::Error>(())
//! ```

mod arguments;
mod commands;
mod console;
mod describe;
mod format;
#[cfg(test)]
mod grammar;
mod interrupt;
mod options;
mod output;
mod progress;
mod visible;

pub use describe::{Choice, Described, Flag, describe};
pub use options::parse_bytes;

use console::Console;
use mercer::Error;
use mercer::run::Context;
use mercer::spec::Inputs;
use std::ffi::OsString;
use std::io::Write;

/// The exit code of a panic, as in any Rust program. It must not be mistaken for a user error.
const BUG: u8 = 101;

/// Runs the command of this process and returns its exit code. The first argument is the name of the program.
pub fn run(line: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = arguments::arguments(line);
    mercer::linalg::memory::arrange(arguments.common.memory);
    std::panic::set_hook(Box::new(apologise));
    let console = match Console::new(&arguments.common) {
        Ok(console) => console,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {}", visible::text(&error.to_string()));
            return exit_code(&error);
        }
    };
    interrupt::watch();
    // Unwinding, instead of leaving at once, removes temporary files.
    let work = || console.context().install(|| arguments.command.run(&console));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            console.fail(&error);
            exit_code(&error)
        }
        Err(_) => BUG,
    }
}

/// Runs a command inside another program and returns its result as JSON. Nothing is printed, and the process never
/// exits. Where a flag takes a file of samples, `\\0name` names an array of `inputs`.
///
/// # Errors
/// If the arguments are not valid, and for every error of the command.
pub fn call(line: &[OsString], inputs: Inputs, context: Context) -> Result<String, Error> {
    let arguments = arguments::parse(line)?;
    let console = Console::embedded(inputs, context);
    console.context().install(|| arguments.command.run(&console))?;
    Ok(console.into_captured())
}

/// The exit code of an error.
fn exit_code(error: &Error) -> u8 {
    match error {
        error if error.is_interrupted() => interrupt::EXIT,
        error if error.is_failed_check() => 1,
        _ => 2,
    }
}

/// Reports a bug of ours in two lines instead of a backtrace.
fn apologise(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()));
    let text = panic.payload();
    let message = text.downcast_ref::<&str>().copied().or_else(|| text.downcast_ref::<String>().map(String::as_str));
    let message = visible::text(message.unwrap_or("no message"));
    // Nobody may be listening.
    let _ = writeln!(
        std::io::stderr(),
        "error: this is a bug in mercer {}{place}: {message}\n  \
         try: report it with the command you ran, and with the file if you can share it",
        env!("CARGO_PKG_VERSION"),
    );
}
