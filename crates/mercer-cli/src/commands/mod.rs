//! The commands, one file each.

mod completions;
mod demo;
mod fit;
mod info;
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
    Demo(demo::DemoArguments),
    Fit(Box<fit::FitArguments>),
    Info(info::InfoArguments),
    Kernel(Box<kernel::KernelArguments>),
    Predict(Box<predict::PredictArguments>),
    Replay(replay::ReplayArguments),
    Train(Box<train::TrainArguments>),
    Uncertainty(Box<uncertainty::UncertaintyArguments>),
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        match self {
            Self::Demo(arguments) => arguments.run(console),
            Self::Fit(arguments) => arguments.run(console),
            Self::Info(arguments) => arguments.run(console),
            Self::Kernel(arguments) => arguments.run(console),
            Self::Predict(arguments) => arguments.run(console),
            Self::Replay(arguments) => arguments.run(console),
            Self::Train(arguments) => arguments.run(console),
            Self::Uncertainty(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
