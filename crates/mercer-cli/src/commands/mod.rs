//! The commands, one file each.

mod audit;
mod compare;
mod completions;
mod demo;
mod eigen;
mod explain;
mod fit;
mod info;
mod kernel;
mod manual;
mod predict;
mod probe;
mod replay;
mod report;
mod shift;
mod spectrum;
mod train;
mod uncertainty;

use crate::console::Console;
use mercer::Error;

/// The commands. `mercer --help` lists them in these groups, in this order.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Train(Box<train::TrainArguments>),
    Predict(Box<predict::PredictArguments>),
    Kernel(Box<kernel::KernelArguments>),
    Eigen(Box<eigen::EigenArguments>),
    Fit(Box<fit::FitArguments>),
    Uncertainty(Box<uncertainty::UncertaintyArguments>),
    Explain(Box<explain::ExplainArguments>),
    Audit(Box<audit::AuditArguments>),
    Probe(Box<probe::ProbeArguments>),
    Spectrum(Box<spectrum::SpectrumArguments>),
    Shift(Box<shift::ShiftArguments>),
    Info(info::InfoArguments),
    Compare(Box<compare::CompareArguments>),
    Report(report::ReportArguments),
    Demo(demo::DemoArguments),
    Replay(replay::ReplayArguments),
    Completions(completions::CompletionsArguments),
    Manual(manual::ManualArguments),
}

/// The commands, grouped by purpose.
pub(crate) const GROUPS: [(&str, &[&str]); 4] = [
    ("Compute and learn", &["train", "predict", "kernel", "eigen", "fit", "uncertainty"]),
    ("Explain and check", &["explain", "audit", "probe", "spectrum", "shift"]),
    ("Look and compare", &["info", "compare", "report", "demo"]),
    ("Housekeeping", &["replay", "completions", "manual", "help"]),
];

impl Command {
    /// Runs the command.
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        match self {
            Self::Audit(arguments) => arguments.run(console),
            Self::Compare(arguments) => arguments.run(console),
            Self::Demo(arguments) => arguments.run(console),
            Self::Eigen(arguments) => arguments.run(console),
            Self::Explain(arguments) => arguments.run(console),
            Self::Fit(arguments) => arguments.run(console),
            Self::Info(arguments) => arguments.run(console),
            Self::Kernel(arguments) => arguments.run(console),
            Self::Predict(arguments) => arguments.run(console),
            Self::Probe(arguments) => arguments.run(console),
            Self::Replay(arguments) => arguments.run(console),
            Self::Shift(arguments) => arguments.run(console),
            Self::Report(arguments) => arguments.run(console),
            Self::Spectrum(arguments) => arguments.run(console),
            Self::Train(arguments) => arguments.run(console),
            Self::Uncertainty(arguments) => arguments.run(console),
            Self::Completions(arguments) => arguments.run(console),
            Self::Manual(arguments) => arguments.run(console),
        }
    }
}
