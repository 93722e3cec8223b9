//! The surrogate of a network, and the names of its training samples.

use super::{FoldOptions, KERNEL, NEIGHBOURS, PENALTY, choice};
use mercer::job::explain::{FitTo, SurrogateMachine, SurrogateSpec};
use mercer::learn::surrogate::PenaltyNorm;
use std::path::PathBuf;

/// A kernel machine that stands in for a network.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Surrogate")]
pub(crate) struct SurrogateOptions {
    #[arg(long, value_name = "EXPRESSION", help = KERNEL, default_value = mercer::job::explain::DEFAULT_KERNEL)]
    pub(crate) kernel: Vec<String>,

    /// Machine on the kernel; several are compared, and the first explains
    #[arg(long, value_name = "MACHINE", default_value = "glm", value_parser = choice::<SurrogateMachine>(),
        hide_possible_values = true, value_delimiter = ',')]
    machine: Vec<SurrogateMachine>,

    /// Fit it to the `labels`, or to the outputs of the `network`
    #[arg(long, value_name = "TARGET", default_value = "labels", value_parser = choice::<FitTo>(),
        hide_possible_values = true)]
    to: FitTo,

    #[arg(long, value_name = "NUMBERS", help = PENALTY, value_delimiter = ',')]
    penalty: Vec<f64>,

    /// Norm that glm penalises: of the `weights` of kernel rows, or of the `function`
    #[arg(long, value_name = "NORM", default_value = "weights", value_parser = choice::<PenaltyNorm>(),
        hide_possible_values = true)]
    penalty_norm: PenaltyNorm,

    #[command(flatten)]
    folds: FoldOptions,

    #[arg(long, value_name = "N", help = NEIGHBOURS, default_value_t = 5)]
    neighbours: usize,

    /// Folder to cache kernel values in: an interrupted run goes on with them, and other runs use them
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

/// What training samples are called.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct TrainingNames {
    /// Names of the samples of --data, one each [default: files of a folder of images, or row numbers]
    #[arg(long, value_name = "FILE[:KEY]")]
    pub(crate) ids: Option<String>,
}

impl SurrogateOptions {
    /// Machines to compare with the first.
    pub(crate) fn other_machines(&self) -> Vec<SurrogateMachine> {
        self.machine.iter().skip(1).copied().collect()
    }

    /// As data.
    pub(crate) fn spec(&self) -> SurrogateSpec {
        SurrogateSpec {
            machine: self.machine.first().copied().unwrap_or_default(),
            to: self.to,
            norm: self.penalty_norm,
            penalty: self.penalty.clone(),
            folds: self.folds.folds,
            neighbours: self.neighbours,
        }
    }
}
