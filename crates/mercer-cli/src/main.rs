//! The `mercer` command: arguments, progress and exit codes over the [`mercer`] library.
//!
//! Exit codes: 0 done, 1 a check the user asked for failed, 2 an error, 101 a bug of ours, 130 interrupted.

mod arguments;
mod commands;
mod console;
mod format;
#[cfg(test)]
mod grammar;
mod interrupt;
mod options;
mod output;
mod progress;
mod visible;

use console::Console;
use mercer::Error;
use std::io::Write;
use std::process::ExitCode;

/// The exit code of a panic, as in any Rust program. It must not be mistaken for a user error.
const BUG: u8 = 101;

fn main() -> ExitCode {
    let arguments = arguments::arguments();
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
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            console.fail(&error);
            exit_code(&error)
        }
        Err(_) => ExitCode::from(BUG),
    }
}

/// The exit code of an error.
fn exit_code(error: &Error) -> ExitCode {
    ExitCode::from(match error {
        error if error.is_interrupted() => interrupt::EXIT,
        error if error.is_failed_check() => 1,
        _ => 2,
    })
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
