//! The commands, one file each.

mod completions;
mod info;
mod predict;

use crate::console::Console;
use crate::failure::Failure;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Info(info::InfoArguments),
    Predict(predict::PredictArguments),
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        match self {
            Self::Info(arguments) => arguments.run(console),
            Self::Predict(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
