//! The commands, one file each.

mod completions;
mod eigen;
mod kernel;
mod replay;

use crate::console::Console;
use mercer::Error;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Eigen(Box<eigen::EigenArguments>),
    Kernel(Box<kernel::KernelArguments>),
    Replay(replay::ReplayArguments),
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        match self {
            Self::Eigen(arguments) => arguments.run(console),
            Self::Kernel(arguments) => arguments.run(console),
            Self::Replay(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
