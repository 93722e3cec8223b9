//! The commands, one file each.

mod completions;
mod demo;
mod info;
mod kernel;
mod replay;
mod train;

use crate::console::Console;
use mercer::Error;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArguments),
    Info(info::InfoArguments),
    Kernel(Box<kernel::KernelArguments>),
    Replay(replay::ReplayArguments),
    Train(Box<train::TrainArguments>),
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        match self {
            Self::Demo(arguments) => arguments.run(console),
            Self::Info(arguments) => arguments.run(console),
            Self::Kernel(arguments) => arguments.run(console),
            Self::Replay(arguments) => arguments.run(console),
            Self::Train(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
