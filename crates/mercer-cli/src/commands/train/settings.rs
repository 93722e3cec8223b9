//! How to train: options of the command line as data of the job.

use crate::options::{PrecisionOption, SeedOption, StepOptions, WEIGHT_DECAY, choice, with_default};
use mercer::job::train::{LossName, OptimiserName, ScheduleName, TrainingSpec};
use mercer::spec::Precision;
use std::num::NonZeroUsize;

/// Help of `--checkpoint-at`, which is one flag of several commands.
pub(crate) const CHECKPOINT_AT: &str =
    "Keep the weights after these epochs, as in 0,1,5,20; epoch 0 is the initial network";

/// The optimiser and what it minimises.
#[derive(Clone, Debug, clap::Args)]
#[command(
    next_help_heading = "Training",
    mut_arg("batch", |arg| with_default(arg, "128; all samples for gd")),
    mut_arg("weight_decay", |arg| with_default(arg, "0.01 for adamw, else 0")),
    mut_arg("learning_rate", |arg| with_default(arg, "0.001; 0.01 for adagrad, 0.05 for sgd and gd"))
)]
pub(crate) struct OptimiserOptions {
    #[command(flatten)]
    step: StepOptions,

    /// Optimiser
    #[arg(long, value_name = "NAME", default_value = "adam", value_parser = choice::<OptimiserName>())]
    optimiser: OptimiserName,

    /// Momentum of sgd, such as 0.9 [default: 0]
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    momentum: Option<f64>,

    /// Use Nesterov momentum in sgd
    #[arg(long)]
    nesterov: bool,

    #[arg(long, value_name = "STRENGTH", help = WEIGHT_DECAY, allow_negative_numbers = true)]
    weight_decay: Option<f64>,

    /// Loss [default: cross-entropy for classes, squared for numbers]
    #[arg(long, value_name = "NAME", value_parser = choice::<LossName>())]
    loss: Option<LossName>,
}

/// Optimiser, learning rate and length of a run.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingOptions {
    /// Passes over the training data
    #[arg(long, value_name = "N", default_value = "10")]
    epochs: NonZeroUsize,

    #[command(flatten)]
    optimiser: OptimiserOptions,

    /// Learning rate schedule
    #[arg(long, value_name = "NAME", default_value = "constant", value_parser = choice::<ScheduleName>())]
    schedule: ScheduleName,

    /// Epochs between two drops of the step schedule [default: 10]
    #[arg(long, value_name = "N")]
    step_every: Option<NonZeroUsize>,

    /// Drop the learning rate of the step schedule after these epochs instead, as in 100,150
    #[arg(long, value_name = "EPOCHS", value_delimiter = ',')]
    step_at: Vec<usize>,

    /// Factor by which the step schedule drops the learning rate
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1, allow_negative_numbers = true)]
    step_factor: f64,

    /// Epochs over which the learning rate first rises from zero, such as 0.5
    #[arg(long, value_name = "EPOCHS", default_value_t = 0.0, allow_negative_numbers = true)]
    warm_up: f64,

    /// Stop after the first epoch whose mean training loss is below this
    #[arg(long, value_name = "LOSS", allow_negative_numbers = true)]
    stop_loss: Option<f64>,

    /// Put N zeros around every image and cut a random window of the original size from it
    #[arg(long, value_name = "N")]
    crop_margin: Option<NonZeroUsize>,

    /// Flip half of the images left to right; not for letters and digits
    #[arg(long)]
    flip: bool,

    /// Keep the weights every N epochs
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<NonZeroUsize>,

    #[arg(long, value_name = "EPOCHS", value_delimiter = ',', help = CHECKPOINT_AT)]
    checkpoint_at: Vec<usize>,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,
}

impl OptimiserOptions {
    /// As data, with the defaults of everything else.
    pub(crate) fn spec(&self) -> TrainingSpec {
        TrainingSpec {
            batch: self.step.batch,
            optimiser: self.optimiser,
            learning_rate: self.step.learning_rate,
            momentum: self.momentum,
            nesterov: self.nesterov,
            weight_decay: self.weight_decay,
            loss: self.loss,
            ..TrainingSpec::default()
        }
    }
}

impl TrainingOptions {
    /// The precision to compute in.
    pub(super) fn precision(&self) -> Precision {
        self.precision.precision
    }

    /// As data.
    pub(super) fn spec(&self) -> TrainingSpec {
        TrainingSpec {
            epochs: self.epochs,
            schedule: self.schedule,
            step_every: self.step_every,
            step_at: self.step_at.clone(),
            step_factor: self.step_factor,
            warm_up: self.warm_up,
            stop_loss: self.stop_loss,
            crop_margin: self.crop_margin,
            flip: self.flip,
            checkpoint_every: self.checkpoint_every,
            checkpoint_at: self.checkpoint_at.clone(),
            seed: self.seed.seed,
            ..self.optimiser.spec()
        }
    }
}
