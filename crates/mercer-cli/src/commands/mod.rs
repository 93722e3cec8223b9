//! The commands, one file each.

mod completions;
mod kernel;
<<<<<<< HEAD
mod uncertainty;
=======
mod replay;
>>>>>>> hall

use crate::console::Console;
use mercer::Error;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Kernel(Box<kernel::KernelArguments>),
<<<<<<< HEAD
    Uncertainty(Box<uncertainty::UncertaintyArguments>),
=======
    Replay(replay::ReplayArguments),
>>>>>>> hall
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        match self {
            Self::Kernel(arguments) => arguments.run(console),
<<<<<<< HEAD
            Self::Uncertainty(arguments) => arguments.run(console),
=======
            Self::Replay(arguments) => arguments.run(console),
>>>>>>> hall
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
