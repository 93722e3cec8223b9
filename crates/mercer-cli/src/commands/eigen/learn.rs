//! Methods that learn functions as networks.

use super::pairs::PairOptions;
use super::source::{OfMatrix, ResultOptions};
use crate::options::{ComponentsOption, SeedOption, StepOptions, choice, with_default};
use crate::output::ResumeOption;
use mercer::job::EigenJob;
use mercer::job::eigen::{EigenMethod, LearnSpec, Objective};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Learn one network per function by SpIN (spectral inference networks)
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("precision", |arg| arg.default_value("f64")),
    mut_arg("learning_rate", |arg| with_default(arg, "1e-3")),
    mut_arg("keep", |arg| with_default(arg, "0.01")),
    after_help = "\
Examples:
  mercer eigen spin --kernel 'rbf()' --data x.npy -k 5 -o functions
  mercer eigen spin --gram gram.zarr --data x.npy --test new.npy --iterations 10000 -o functions"
)]
pub(super) struct Spin {
    #[command(flatten)]
    learn: LearnOptions,

    #[command(flatten)]
    pub(super) of: OfMatrix,

    #[command(flatten)]
    pub(super) resume: ResumeOption,
}

/// Learn one network per function by NeuralEF
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("learning_rate", |arg| with_default(arg, "1e-3")),
    mut_arg("keep", |arg| with_default(arg, "0.9")),
    mut_arg("objective", |arg| with_default(arg, "game")),
    after_help = "\
Examples:
  mercer eigen neuralef --kernel 'rbf()' --data x.npy -k 10 --truth -o functions
  mercer eigen neuralef --net model.onnx --data train.npz:x --functions mlp.toml --test test.npz:x -o functions"
)]
pub(super) struct Neuralef {
    #[command(flatten)]
    learn: LearnOptions,

    #[command(flatten)]
    objective: ObjectiveOption,

    #[command(flatten)]
    pub(super) of: OfMatrix,

    #[command(flatten)]
    pub(super) resume: ResumeOption,
}

/// Learn one network with k outputs, one for each function
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("learning_rate", |arg| with_default(arg, "1e-3")),
    mut_arg("keep", |arg| with_default(arg, "0.9")),
    mut_arg("objective", |arg| with_default(arg, "game")),
    after_help = "\
Examples:
  mercer eigen shared --kernel 'rbf()' --data x.npy -k 10 --objective joint -o functions
  mercer eigen shared --gram gram.zarr --data train.npz:x --test test.npz:x -o functions"
)]
pub(super) struct Shared {
    #[command(flatten)]
    learn: LearnOptions,

    #[command(flatten)]
    objective: ObjectiveOption,

    #[command(flatten)]
    pub(super) of: OfMatrix,

    #[command(flatten)]
    pub(super) resume: ResumeOption,
}

/// Learn one network with k outputs from pairs of views, which take the place of a kernel
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("learning_rate", |arg| with_default(arg, "2e-3, falling along a cosine")),
    mut_arg("keep", |arg| with_default(arg, "0.9")),
    mut_arg("objective", |arg| with_default(arg, "joint")),
    after_help = "\
Examples:
  mercer eigen contrastive --data images.npy --scale 1/255 --layout nhwc -k 64 -o codes
  mercer eigen contrastive --data first.npy --pairs second.npy -k 16 -o codes
  mercer eigen contrastive --data train.npz:x --labels train.npz:y --test test.npz:x --test-labels test.npz:y -o codes"
)]
pub(super) struct Contrastive {
    #[command(flatten)]
    components: ComponentsOption,

    #[command(flatten)]
    pairs: PairOptions,

    #[command(flatten)]
    learn: LearnOptions,

    #[command(flatten)]
    objective: ObjectiveOption,

    #[command(flatten)]
    pub(super) results: ResultOptions,

    #[command(flatten)]
    pub(super) resume: ResumeOption,

    #[command(flatten)]
    seed: SeedOption,
}

/// Settings for learning the functions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Training", mut_arg("batch", |arg| with_default(arg, "256")))]
pub(super) struct LearnOptions {
    /// Network to learn with, or a model to start from [default: a small network]
    #[arg(long, value_name = "FILE.toml|MODEL.onnx")]
    functions: Option<PathBuf>,

    /// Learn N more functions and drop them at the end; this improves the others
    #[arg(long, value_name = "N", default_value_t = 0)]
    extra: usize,

    /// Training steps
    #[arg(long, value_name = "N", default_value_t = 2000)]
    iterations: usize,

    #[command(flatten)]
    step: StepOptions,

    /// Share of the moving averages that is kept at every step
    #[arg(long, value_name = "SHARE", help_heading = "Training")]
    keep: Option<f64>,

    /// Save the state every N steps, for --resume
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = "Training")]
    checkpoint: usize,
}

/// The training objective.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Training")]
struct ObjectiveOption {
    /// Training objective
    #[arg(long, value_name = "OBJECTIVE", value_parser = choice::<Objective>())]
    objective: Option<Objective>,
}

impl LearnOptions {
    /// The given settings, with defaults for the others.
    fn spec(&self, usual: LearnSpec) -> LearnSpec {
        LearnSpec {
            functions: self.functions.clone(),
            extra: self.extra,
            iterations: self.iterations,
            batch: self.step.batch.map_or(usual.batch, NonZeroUsize::get),
            learning_rate: self.step.learning_rate.unwrap_or(usual.learning_rate),
            keep: self.keep.unwrap_or(usual.keep),
            checkpoint: self.checkpoint,
        }
    }
}

impl Spin {
    pub(super) fn job(&self) -> EigenJob {
        self.of.job(EigenMethod::Spin { learning: self.learn.spec(LearnSpec::spin()) })
    }
}

impl Neuralef {
    pub(super) fn job(&self) -> EigenJob {
        let objective = self.objective.objective.unwrap_or(Objective::Game);
        self.of.job(EigenMethod::Neuralef { learning: self.learn.spec(LearnSpec::neural()), objective })
    }
}

impl Shared {
    pub(super) fn job(&self) -> EigenJob {
        let objective = self.objective.objective.unwrap_or(Objective::Game);
        self.of.job(EigenMethod::Shared { learning: self.learn.spec(LearnSpec::neural()), objective })
    }
}

impl Contrastive {
    pub(super) fn job(&self) -> EigenJob {
        let learning = self.learn.spec(LearnSpec::contrastive());
        let objective = self.objective.objective.unwrap_or(Objective::CONTRASTIVE);
        let method = EigenMethod::Contrastive { learning, objective, views: self.pairs.views() };
        self.results.job(method, self.components, self.seed.seed)
    }
}
