//! The command line as a whole.

use crate::commands::{self, GROUPS};
use crate::options::parse_bytes;
use clap::{ArgAction, Command, CommandFactory, FromArgMatches, Parser};
use mercer::Error;
use std::ffi::OsString;
use std::fmt::Write;
use std::num::NonZeroUsize;

const EXAMPLES: &str = "\
Examples:
  mercer demo                                                          train a small network and look at it
  mercer info model.onnx                                               what a network is made of
  mercer predict --net model.onnx --data test.npz:x --labels test.npz:y
  mercer eigen nystrom --kernel 'rbf()' --data x.npy -o functions      the leading eigenfunctions
  mercer predict --from functions --data new.npy -o psi.npy            their values on new samples
  mercer help eigen nystrom                                            everything about a command

Data are .npy, .npz, IDX (also gzipped) and CSV files, written as FILE or FILE:KEY. KEY is an array of an .npz file or a
column of a CSV file. Results go to standard output and to files, progress and errors to standard error. Existing files
are replaced only with --force.

Exit codes: 0 done, 1 a check you asked for failed, 2 an error, 130 interrupted, 101 a bug in mercer.";

/// A workbench for neural kernels: a trained network as a kernel machine
#[derive(Debug, Parser)]
#[command(name = "mercer", version, after_help = EXAMPLES, max_term_width = 120, disable_help_flag = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: commands::Command,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Number of threads; this does not change the results [default: one per core]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// Memory limit, such as 4GiB [default: three quarters of the free memory]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<usize>,

    /// Print only results and errors, no progress or notes
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print long lists in full
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Print help; `mercer help COMMAND` says more
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
}

/// The tree of commands. The first page lists them in groups.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let page = page(&command);
    command.help_template(page)
}

/// The arguments of this process. Exits with help if they ask for it, or with an error if they are invalid.
pub(crate) fn arguments(line: impl IntoIterator<Item = OsString>) -> Arguments {
    Arguments::from_arg_matches(&command().get_matches_from(line)).unwrap_or_else(|error| error.exit())
}

/// The arguments of a call from another program, without the name of the program.
pub(crate) fn parse(line: &[OsString]) -> Result<Arguments, Error> {
    let line = std::iter::once(OsString::from("mercer")).chain(line.iter().cloned());
    let matches = command().try_get_matches_from(line);
    matches.and_then(|matches| Arguments::from_arg_matches(&matches)).map_err(|error| invalid(&error))
}

/// What is wrong with a line, in one sentence without colours or usage.
fn invalid(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    Error::new(first.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The first page of help, with the one-line description of every command.
fn page(command: &Command) -> String {
    let mut page = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = write!(page, "\n{title}:\n");
        for &name in names {
            let about = match command.find_subcommand(name).and_then(Command::get_about) {
                Some(about) => about.to_string(),
                None => "Explain a command and all of its options".to_owned(),
            };
            let _ = writeln!(page, "  {name:<12} {about}");
        }
    }
    page + "\nOptions:\n{options}{after-help}"
}
