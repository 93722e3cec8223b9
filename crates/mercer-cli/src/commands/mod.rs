//! The commands, one file each.

mod completions;
mod fit;
mod kernel;
mod predict;
mod replay;
mod train;
mod uncertainty;

use crate::console::Console;
use mercer::Error;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Fit(Box<fit::FitArguments>),
    Kernel(Box<kernel::KernelArguments>),
    Predict(Box<predict::PredictArguments>),
    Replay(replay::ReplayArguments),
    Uncertainty(Box<uncertainty::UncertaintyArguments>),
    Train(Box<train::TrainArguments>),
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        match self {
            Self::Fit(arguments) => arguments.run(console),
            Self::Kernel(arguments) => arguments.run(console),
            Self::Predict(arguments) => arguments.run(console),
            Self::Replay(arguments) => arguments.run(console),
            Self::Uncertainty(arguments) => arguments.run(console),
            Self::Train(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
