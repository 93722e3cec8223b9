//! The command line as a whole.

use crate::commands::{self, GROUPS};
use crate::options::parse_bytes;
use clap::error::ErrorKind;
use clap::{ArgAction, Command, CommandFactory, FromArgMatches, Parser};
use mercer::Error;
use std::any::TypeId;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
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
    let command = with_signs(Arguments::command());
    let page = page(&command);
    command.help_template(page)
}

/// Lets every number have a sign, so that a negative one is a value that is refused or used, and not an unknown flag.
fn with_signs(command: Command) -> Command {
    let numbers = [
        TypeId::of::<f64>(),
        TypeId::of::<f32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<NonZeroUsize>(),
    ];
    let signed = |arg: clap::Arg| {
        let is_number = numbers.iter().any(|own| arg.get_value_parser().type_id() == *own);
        match arg.get_value_delimiter() {
            _ if !is_number || !arg.get_action().takes_values() => arg,
            // `-1,2` is no number.
            Some(_) => arg.allow_hyphen_values(true),
            None => arg.allow_negative_numbers(true),
        }
    };
    command.mut_args(signed).mut_subcommands(with_signs)
}

/// The arguments of this process. Exits with help if they ask for it, or with an error if they are invalid.
pub(crate) fn arguments(line: impl IntoIterator<Item = OsString>) -> Arguments {
    let matches = command().try_get_matches_from(line);
    matches.and_then(|matches| Arguments::from_arg_matches(&matches)).unwrap_or_else(|error| leave(&error))
}

/// Prints help, or what is wrong, and exits.
fn leave(error: &clap::Error) -> ! {
    if error.kind() != ErrorKind::ValueValidation {
        error.exit();
    }
    let text = error.render();
    let text = match std::io::stderr().is_terminal() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    // Nobody may be listening.
    let _ = write!(std::io::stderr(), "{}", plain(&text));
    std::process::exit(error.exit_code())
}

/// What the parsers of numbers say, in words about the value.
fn plain(text: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("number would be zero for non-zero type", "at least 1 is needed"),
        ("invalid digit found in string", "a whole number is needed, 0 or larger"),
        ("cannot parse integer from empty string", "a whole number is needed"),
        ("number too large to fit in target type", "the number is too large"),
        ("invalid float literal", "a number is needed"),
        ("cannot parse float from empty string", "a number is needed"),
    ];
    WORDS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The arguments of a call from another program, without the name of the program.
pub(crate) fn parse(line: &[OsString]) -> Result<Arguments, Error> {
    let line = std::iter::once(OsString::from("mercer")).chain(line.iter().cloned());
    let matches = command().try_get_matches_from(line);
    matches.and_then(|matches| Arguments::from_arg_matches(&matches)).map_err(|error| invalid(&error))
}

/// What is wrong with a line, in one sentence without colours or usage.
fn invalid(error: &clap::Error) -> Error {
    let text = plain(&error.render().to_string());
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
