//! The `mercer` command: arguments, progress and exit codes over the [`mercer`] library.
//!
//! Exit codes: 0 done, 1 a check the user asked for failed, 2 an error, 101 a bug of ours, 130 interrupted.

mod arguments;
mod blocks;
mod commands;
mod console;
mod failure;
mod format;
mod interrupt;
mod options;
mod output;
mod progress;
mod score;
mod visible;

use arguments::Arguments;
use clap::Parser;
use console::Console;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

/// The exit code of a panic, as any program in Rust has it: it is not to be taken for an error of the user's.
const BUG: u8 = 101;

fn main() -> ExitCode {
    mercer::linalg::memory::prefer_huge_pages();
    let arguments = Arguments::parse();
    let console = Console::new(&arguments.common);
    std::panic::set_hook(Box::new(apologise));
    // Unwinding, instead of leaving at once, removes temporary files.
    let outcome = std::panic::catch_unwind(|| run(&arguments, &console));
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            console.fail(&failure);
            failure.exit_code()
        }
        Err(_) => ExitCode::from(BUG),
    }
}

fn run(arguments: &Arguments, console: &Console) -> Result<(), Failure> {
    if let Some(threads) = arguments.common.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
        pool.map_err(|error| Failure::new(format!("--threads {threads}: {error}")))?;
    }
    arguments.command.run(console)
}

/// A bug is ours: say so in two lines instead of a backtrace.
fn apologise(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()));
    let text = panic.payload();
    let message = text.downcast_ref::<&str>().copied().or_else(|| text.downcast_ref::<String>().map(String::as_str));
    let message = visible::text(message.unwrap_or("no message"));
    // Nobody may be listening.
    let _ = writeln!(
        std::io::stderr(),
        "error: mercer {} has met a bug in itself{place}: {message}\n  \
         try: report it with the command you ran, and with the file if you can share it",
        env!("CARGO_PKG_VERSION"),
    );
}
