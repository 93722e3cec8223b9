//! The training data and the output folder, for every machine.

use crate::options::{DataOptions, GRAM, KernelOptions, ParameterOptions, references};
use crate::output::OutputFolder;
use mercer::Error;
use mercer::job::fit::{MachineSpec, Training};
use mercer::job::{Destination, FitJob};

/// The flags that all machines share. Rarely used flags appear only in `mercer help`.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Data",
    mut_arg("data", |arg| arg.required(false)),
    mut_arg("labels", |arg| arg.required(true)),
    mut_arg("include", |arg| arg.hide_short_help(true)),
    mut_arg("exclude", |arg| arg.hide_short_help(true)),
    mut_arg("unmerge", |arg| arg.hide_short_help(true)),
    mut_arg("import_limit", |arg| arg.hide_short_help(true))
)]
pub(super) struct TrainingOptions {
    #[command(flatten)]
    data: DataOptions,

    #[arg(long, value_name = "FILE", help = GRAM, help_heading = "Data", conflicts_with_all = ["features", "data"])]
    gram: Option<String>,

    /// Features computed before, one row per sample
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Data", conflicts_with = "data")]
    features: Option<String>,

    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    pub(super) output: OutputFolder,
}

impl TrainingOptions {
    /// The job that fits this machine.
    pub(super) fn job(&self, machine: MachineSpec) -> Result<FitJob, Error> {
        let kernel = self.kernel.spec(&self.parameters);
        let (seed, has_kernel) = (kernel.seed, kernel.is_given());
        let training = match (&self.gram, &self.features) {
            (Some(gram), _) => Training::Gram(gram.clone().into()),
            (None, Some(features)) => Training::Features(features.clone().into()),
            (None, None) if self.data.data.is_empty() => {
                return Err(Error::new("there are no training samples")
                    .hint("--gram FILE, --features FILE, or --data FILE with a kernel"));
            }
            (None, None) => Training::Kernel {
                kernel: Box::new(kernel),
                data: references(&self.data.data),
                preprocess: self.data.preprocess.spec(),
                decoding: self.data.decoding.spec(),
            },
        };
        if has_kernel && !matches!(training, Training::Kernel { .. }) {
            let flag = if self.gram.is_some() { "--gram" } else { "--features" };
            return Err(Error::new(format!("{flag}: a kernel needs --data, not a matrix computed before")));
        }
        if self.data.preprocess.spec().is_given() && !matches!(training, Training::Kernel { .. }) {
            return Err(Error::new("--scale, --mean, --std, --layout and --standardise are for --data"));
        }
        if !self.data.decoding.spec().is_empty() && !matches!(training, Training::Kernel { .. }) {
            return Err(Error::new("--tokenizer, --max-tokens and --resize are for --data"));
        }
        // The parser has seen to it that there are labels.
        let (labels, classes) =
            (self.data.labels.clone().unwrap_or_default().into(), self.data.classes.classes.clone());
        Ok(FitJob { machine, training, labels, classes, seed })
    }

    pub(super) fn destination(&self) -> Destination {
        self.output.destination()
    }
}
