//! The commands, one file each.

mod completions;
mod demo;
mod eigen;
mod info;
mod kernel;
mod predict;
mod train;

use crate::console::Console;
use crate::failure::Failure;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArguments),
    Eigen(Box<eigen::EigenArguments>),
    Info(info::InfoArguments),
    Kernel(Box<kernel::KernelArguments>),
    Predict(predict::PredictArguments),
    Train(train::TrainArguments),
    Completions(completions::CompletionsArguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        match self {
            Self::Demo(arguments) => arguments.run(console),
            Self::Eigen(arguments) => arguments.run(console),
            Self::Train(arguments) => arguments.run(console),
            Self::Info(arguments) => arguments.run(console),
            Self::Kernel(arguments) => arguments.run(console),
            Self::Predict(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
        }
    }
}
