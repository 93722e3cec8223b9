//! What every machine learns from, and where it goes.

use crate::options::{ClassOptions, KernelOptions, ParameterOptions, PreprocessOptions, references};
use mercer::Error;
use mercer::job::fit::{MachineSpec, Training};
use mercer::job::{Destination, FitJob};
use std::path::PathBuf;

/// The flags that all machines share.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Data")]
pub(super) struct TrainingOptions {
    /// The training samples, for a kernel of them
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    data: Vec<String>,

    /// The class of each sample, or numbers for a regression
    #[arg(long, value_name = "FILE[:KEY]", required = true)]
    labels: String,

    /// The Gram matrix of the training samples: .npy, or .zarr
    #[arg(long, value_name = "FILE", conflicts_with_all = ["features", "data"])]
    gram: Option<String>,

    /// Features of the training samples, one row per sample
    #[arg(long, value_name = "FILE[:KEY]", conflicts_with = "data")]
    features: Option<String>,

    #[command(flatten)]
    classes: ClassOptions,

    #[command(flatten)]
    preprocess: PreprocessOptions,

    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    /// Write the machine to this folder
    #[arg(short = 'o', long = "out", value_name = "DIR", help_heading = "Output")]
    pub(super) out: PathBuf,

    /// Replace what is there
    #[arg(long, help_heading = "Output")]
    force: bool,
}

impl TrainingOptions {
    /// The job that fits this machine.
    pub(super) fn job(&self, machine: MachineSpec) -> Result<FitJob, Error> {
        let kernel = self.kernel.spec(&self.parameters);
        let (seed, has_kernel) = (kernel.seed, kernel.is_given());
        let training = match (&self.gram, &self.features) {
            (Some(gram), _) => Training::Gram(gram.clone().into()),
            (None, Some(features)) => Training::Features(features.clone().into()),
            (None, None) if self.data.is_empty() => {
                return Err(Error::new("there are no training samples")
                    .hint("--gram FILE, --features FILE, or --data FILE with a kernel"));
            }
            (None, None) => Training::Kernel {
                kernel: Box::new(kernel),
                data: references(&self.data),
                preprocess: self.preprocess.spec(),
            },
        };
        if has_kernel && !matches!(training, Training::Kernel { .. }) {
            let flag = if self.gram.is_some() { "--gram" } else { "--features" };
            return Err(Error::new(format!("{flag}: a kernel needs --data, not a matrix computed before")));
        }
        if self.preprocess.spec().is_given() && !matches!(training, Training::Kernel { .. }) {
            return Err(Error::new("--scale, --mean, --std, --layout and --standardise are for --data"));
        }
        let (labels, classes) = (self.labels.clone().into(), self.classes.classes.clone());
        Ok(FitJob { machine, training, labels, classes, seed })
    }

    pub(super) fn destination(&self) -> Destination {
        Destination { force: self.force, ..Destination::new(&self.out) }
    }
}
